package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// shared is a version whose install plan writes a Namespace-wide ConfigMap of another namespace, and whose deploy plan writes its own.
func shared(name string) *v1beta1.OperatorVersion {
	ov := web(gen.InstallPlan("install"), gen.Template("shared.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common, namespace: apps}\ndata: {key: value}\n"),
		gen.Apply("shared", "shared.yaml"), gen.Serial("install", "shared"))
	ov.Name = name
	return ov
}

// TestInstallPlans checks what a preview says of install plans: objects that are created, joined, left alone, and that do not fit (P10).
func TestInstallPlans(t *testing.T) {
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	common := func(value string, managed bool) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: gen.Meta("apps", "common"), Data: map[string]string{"key": value}}
		if managed {
			c.Annotations = map[string]string{v1beta1.ManagedAnnotation: "true"}
			c.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage}
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: "other", UID: "other-uid"}}
		}
		return c
	}
	other := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other-uid"}}
	other.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "team-b", Name: "web-0.1.0"}
	for name, tc := range map[string]struct {
		reason string
		live   []client.Object
		want   []string
		why    string
	}{
		"Create": {"a new object is created, before the Instance's own", []client.Object{place}, []string{"plan install", "plan deploy", "create ConfigMap apps/common", "create ConfigMap ns/i-a"}, ""},
		"Join": {"an object that others hold is joined", []client.Object{place, other, common("value", true)}, []string{"plan install", "plan deploy", "join ConfigMap apps/common", "create ConfigMap ns/i-a"},
			"it is as the install plan wants it; OperatorVersion team-b/web-0.1.0 holds it, too"},
		"Existing": {"an object that kudo did not create is used as it is", []client.Object{place, common("value", false)}, []string{"plan install", "plan deploy", "unchanged ConfigMap apps/common", "create ConfigMap ns/i-a"},
			"kudo did not create it: it is used as it is, and never deleted"},
		"Mismatch":  {"an object that differs ends the install plan, and the Instance waits", []client.Object{place, other, common("another", true)}, []string{"plan install fails at main/step-0", "refused ConfigMap apps/common"}, ""},
		"Installed": {"an OperatorVersion that exists installs nothing more", []client.Object{place, shared("web-0.1.0")}, []string{"plan deploy", "create ConfigMap ns/i-a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for _, obj := range tc.live {
				l.Put(obj)
			}
			version := shared("web-0.1.0")
			p := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version, Versions: []*v1beta1.OperatorVersion{version}})
			if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
				t.Errorf("%s: %s%+v", tc.reason, diff, p)
			}
			if tc.why != "" && p.Objects[0].Why != tc.why {
				t.Errorf("%s: %q", tc.reason, p.Objects[0].Why)
			}
			if len(tc.want) == 4 && p.Runs[0].Of != "OperatorVersion ns/web-0.1.0" {
				t.Errorf("%s: %+v", tc.reason, p.Runs)
			}
		})
	}
}

// TestChildren checks that what children would do is shown as previews of their own (P13).
func TestChildren(t *testing.T) {
	child := web()
	child.Name, child.Spec.Operator.Name = "child-0.1.0", "child"
	parent := web(gen.Template("params.yaml", "VALUE: '{{ .Params.VALUE }}'\n"),
		gen.Task("kid", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", InstanceName: "kid", OperatorVersion: "0.1.0", ParameterFile: "params.yaml"}), gen.Serial("deploy", "kid", "app"))
	after := gen.Instance("i", parent, map[string]string{"VALUE": "next"})
	after.Spec.ServiceAccountName = "robot"
	for _, tc := range []struct {
		reason   string
		versions []*v1beta1.OperatorVersion
		want     []string
		unknown  string
	}{
		{"the version of the child comes with the edit", []*v1beta1.OperatorVersion{child, parent}, []string{"plan deploy", "create ConfigMap ns/kid-a"}, ""},
		{"the version of the child is nowhere", nil, nil, "OperatorVersion ns/child-0.1.0 cannot be read"},
	} {
		l := newLab(t)
		p := l.compute(Edit{Verb: "install", After: after, Version: parent, Versions: tc.versions})
		var got []string
		if len(p.Children) == 1 {
			got = brief(p.Children[0])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s%q", tc.reason, diff, brief(p))
		}
		unknown := slices.ContainsFunc(p.UnknownReasons, func(u string) bool { return strings.Contains(u, tc.unknown) })
		if tc.unknown != "" && !unknown {
			t.Errorf("%s: %q", tc.reason, p.UnknownReasons)
		}
		if tc.unknown == "" && (!p.IsChange() || p.Fails() || p.Children[0].Subject != "Instance ns/kid") {
			t.Errorf("%s: %+v", tc.reason, p.Children[0])
		}
	}
}
