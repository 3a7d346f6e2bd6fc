package preview

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// secret is a template that makes the version need Secrets, too.
var secret = gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-s'}\n")

// TestRights checks which rights a preview says that plans need, lack, and need newly (P11).
func TestRights(t *testing.T) {
	next := web(secret, gen.Apply("secret", "s.yaml"), gen.Serial("update", "app", "secret"))
	next.Name, next.Spec.Version = "web-0.2.0", "0.2.0"
	upgrade := func(i *v1beta1.Instance) {
		i.Spec.OperatorVersion.Name, i.Spec.ServiceAccountName = "web-0.2.0", "robot"
	}
	for name, tc := range map[string]struct {
		reason         string
		edit           Edit
		denied         string
		fallback       types.NamespacedName
		account        string
		lines          []string
		summary        string
		harmless, asks bool
	}{
		"Upgrade": {reason: "the difference to the version before", edit: Edit{After: changed(gen.Instance("i", web(), nil), upgrade), Version: next}, account: "ns/robot", asks: true,
			lines: []string{"+ secrets: create", "+ secrets: get, patch, delete (i-s)", "needs 3 rules (-o yaml lists them)"}, summary: "; rights +4"},
		"Lacks": {reason: "what the account lacks", edit: Edit{After: changed(gen.Instance("i", web(), nil), upgrade), Version: next}, denied: "secrets", account: "ns/robot", asks: true,
			lines:   []string{"✗ lacks secrets: create", "✗ lacks secrets: get, patch, delete (i-s)", "+ secrets: create", "+ secrets: get, patch, delete (i-s)", "needs 3 rules (-o yaml lists them)"},
			summary: "; rights +4, 4 missing"},
		"Given": {reason: "nothing is asked about an account that the command gives its rights", edit: Edit{After: changed(gen.Instance("i", web(), nil), upgrade), Version: next, GivesRights: true}, denied: "secrets", account: "ns/robot",
			lines: []string{"+ secrets: create", "+ secrets: get, patch, delete (i-s)", "needs 3 rules (-o yaml lists them)"}, summary: "; rights +4"},
		"Same":    {reason: "an edit that needs nothing new is harmless", edit: Edit{After: gen.Instance("i", web(), nil), Version: web()}, fallback: types.NamespacedName{Namespace: "ns", Name: "kudo"}, account: "ns/kudo", harmless: true, asks: true},
		"Unknown": {reason: "an account that is not known is said", edit: Edit{After: gen.Instance("i", web(), nil), Version: web()}, account: "/", lines: []string{"? not known: with whose rights the plans run: you may not read the settings of kudo", "needs 2 rules (-o yaml lists them)"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			var asked atomic.Bool
			l.watchWrites(func(r apitest.Request) (any, error) {
				if r.Kind != "LocalSubjectAccessReview" {
					return nil, nil
				}
				asked.Store(true)
				review := &authorizationv1.LocalSubjectAccessReview{}
				r.Decode(t, review)
				review.Status.Allowed = review.Spec.ResourceAttributes.Resource != tc.denied
				return review, nil
			})
			tc.edit.Verb, tc.edit.Before, tc.edit.Old = "upgrade", l.running(web(), "i-a"), web()
			tc.edit.After.Spec.Parameters = tc.edit.Before.Spec.Parameters
			tc.edit.After.Status = tc.edit.Before.Status
			o := l.options()
			o.DefaultAccount = tc.fallback
			p, err := Compute(t.Context(), o, tc.edit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.lines, p.Rights.lines()); diff != "" || p.Rights.Account != tc.account || p.Rights.summary() != tc.summary {
				t.Errorf("%s: %s: %q: %s", tc.reason, p.Rights.Account, p.Rights.summary(), diff)
			}
			if p.Raises(concernRights) == tc.harmless || asked.Load() != tc.asks {
				t.Errorf("%s: raises %t, asked %t", tc.reason, p.Raises(concernRights), asked.Load())
			}
		})
	}
}

// TestRunAccount checks with whose rights a preview runs plans: the Instances that they make get the account of the Instance, but for that of kudo.
func TestRunAccount(t *testing.T) {
	strict, privileged := types.NamespacedName{Namespace: "ns", Name: "kudo"}, types.NamespacedName{Namespace: "kudo-system", Name: "kudo-installer"}
	for _, tc := range []struct {
		reason   string
		named    string
		fallback types.NamespacedName
		last     string
		want     string
		own      bool
	}{
		{"the account of spec", "robot", privileged, "kudo-system/kudo-installer", "ns/robot", false},
		{"the default account", "", strict, "", "ns/kudo", false},
		{"that of kudo in a privileged namespace", "", privileged, "ns/kudo", "kudo-system/kudo-installer", true},
		{"a default account that is named as that of kudo", "", types.NamespacedName{Namespace: "ns", Name: "kudo-installer"}, "", "ns/kudo-installer", false},
		{"that of the last run where the settings are not known", "", types.NamespacedName{}, "ns/kudo", "ns/kudo", false},
		{"that of kudo in the last run", "", types.NamespacedName{}, "kudo-system/kudo-installer", "kudo-system/kudo-installer", true},
		{"a record that names no account", "", types.NamespacedName{}, "ns/", "ns/", true},
		{"nothing is known", "", types.NamespacedName{}, "", "/", true},
	} {
		i := gen.Instance("i", web(), nil)
		if i.Spec.ServiceAccountName = tc.named; tc.last != "" {
			i.Status.Baseline = &v1beta1.Baseline{RunAs: tc.last}
		}
		account, own := Options{DefaultAccount: tc.fallback, DefaultPrivileged: tc.fallback == privileged}.runAccount(i)
		if got := account.Namespace + "/" + account.Name; got != tc.want || own != tc.own {
			t.Errorf("%s: %s, of kudo: %t", tc.reason, got, own)
		}
	}
}

// TestNeededRights checks that a preview lists all rules that the plans need, those of the namespace and those of the whole cluster apart,
// and how each differs from before (P11); and that a text counts them, and says nothing of an edit that leaves them as they are.
func TestNeededRights(t *testing.T) {
	rule := func(resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	configs := []rbacv1.PolicyRule{rule("configmaps", nil, "create"), rule("configmaps", []string{"i-a", "i-b"}, "get", "patch", "delete")}
	spaces := []rbacv1.PolicyRule{rule("namespaces", nil, "create"), rule("namespaces", []string{"i-n"}, "get", "patch", "delete")}
	wide := web(gen.Template("n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ .Name }}-n'}\n"), gen.Apply("space", "n.yaml"), gen.Serial("backup", "save", "space"))
	wide.Name = "wide-0.2.0"
	for name, tc := range map[string]struct {
		reason      string
		before, now *v1beta1.OperatorVersion
		want        Rights
		lines       []string
	}{
		"Creation": {reason: "a creation adds all", now: wide, want: Rights{Needed: configs, NeededCluster: spaces, Added: configs, AddedCluster: spaces}, lines: []string{"+ configmaps: create",
			"+ configmaps: get, patch, delete (i-a, i-b)", "+ in the whole cluster namespaces: create", "+ in the whole cluster namespaces: get, patch, delete (i-n)", "needs 4 rules, 2 of them in the whole cluster (-o yaml lists them)"}},
		"Wider": {reason: "an upgrade that needs more in the whole cluster", before: web(), now: wide, want: Rights{Needed: configs, NeededCluster: spaces, AddedCluster: spaces}, lines: []string{
			"+ in the whole cluster namespaces: create", "+ in the whole cluster namespaces: get, patch, delete (i-n)", "needs 4 rules, 2 of them in the whole cluster (-o yaml lists them)"}},
		"Narrower": {reason: "and one that needs less", before: wide, now: web(), want: Rights{Needed: configs, RemovedCluster: spaces}, lines: []string{
			"- in the whole cluster namespaces: create", "- in the whole cluster namespaces: get, patch, delete (i-n)", "needs 2 rules (-o yaml lists them)"}},
		"Same": {reason: "an edit that needs the same is quiet", before: wide, now: wide, want: Rights{Needed: configs, NeededCluster: spaces}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			edit := Edit{Verb: "edit", After: gen.Instance("i", tc.now, nil), Version: tc.now, GivesRights: true}
			if tc.before != nil {
				edit.Before, edit.Old = l.running(tc.before), tc.before
				edit.After = changed(edit.Before, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = tc.now.Name })
			}
			o := l.options()
			o.DefaultAccount = types.NamespacedName{Namespace: "ns", Name: "kudo"}
			p, err := Compute(t.Context(), o, edit)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Account, tc.want.Given = "ns/kudo", true
			if diff := cmp.Diff(&tc.want, p.Rights); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.lines, p.Rights.lines()); diff != "" {
				t.Errorf("%s: the text: -want +got: %s", tc.reason, diff)
			}
		})
	}
}

// TestRightsBounded checks that a text does not grow with the rules that a package has.
func TestRightsBounded(t *testing.T) {
	r := &Rights{Added: slices.Repeat([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods\x1b[31m"}, Verbs: []string{"get"}}}, 50)}
	if got := r.lines(); len(got) != maxRules+1 || got[maxRules] != "+ and 40 more rules" || strings.Contains(got[0], "\x1b") {
		t.Errorf("got %q", got)
	}
}

// TestRaises checks what --fail-on may name.
func TestRaises(t *testing.T) {
	claim := Object{Kind: "PersistentVolumeClaim", Effect: Delete}
	for _, tc := range []struct {
		reason string
		p      *Preview
		want   []string
	}{
		{"nothing", &Preview{Objects: []Object{{Effect: Modify}, {Kind: "PersistentVolumeClaim", Effect: Keep}}}, nil},
		{"a restart", &Preview{Objects: []Object{{Effect: Modify, Restart: &Restart{}}}}, []string{"restart"}},
		{"an object is deleted and written again", &Preview{Objects: []Object{{Effect: Recreate}}}, []string{"delete"}},
		{"a claim is deleted", &Preview{Objects: []Object{claim}}, []string{"delete", "data"}},
		{"so are those of a child", &Preview{Children: []*Preview{{Objects: []Object{claim}}}}, []string{"delete", "data"}},
		{"something is not known", &Preview{UnknownReasons: []string{"x"}}, []string{"unknown"}},
		{"rights that are not known", &Preview{Rights: &Rights{Unknown: []string{"x"}}}, []string{"rights"}},
		{"rights that are new in the whole cluster", &Preview{Rights: &Rights{AddedCluster: []rbacv1.PolicyRule{{}}}}, []string{"rights"}},
		{"rights that are missing in the whole cluster", &Preview{Rights: &Rights{MissingCluster: []rbacv1.PolicyRule{{}}}}, []string{"rights"}},
		{"rights that are needed as before, and those that are no longer needed", &Preview{Rights: &Rights{Needed: []rbacv1.PolicyRule{{}}, NeededCluster: []rbacv1.PolicyRule{{}}, RemovedCluster: []rbacv1.PolicyRule{{}}}}, nil},
	} {
		got := slices.DeleteFunc(Concerns(), func(concern string) bool { return !tc.p.Raises(concern) })
		if diff := cmp.Diff(tc.want, got, cmp.Transformer("list", func(l []string) string { return strings.Join(l, " ") })); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}
