package preview

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/quota"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// The sensitive value of an Instance before an edit, and after it.
const (
	formerSecret = "former-horse"
	newSecret    = "hunter2-horse"
)

// secretNames are templates that make names of objects, and rules of a role, from a sensitive parameter.
const secretNames = `apiVersion: v1
kind: Secret
metadata: {name: '{{ .Params.SECRET }}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: 'x-{{ .Params.SECRET }}'}
data: {key: '{{ .Params.VALUE }}'}
---
apiVersion: v1
kind: Namespace
metadata: {name: '{{ .Params.SECRET }}'}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: '{{ .Name }}'}
rules: [{apiGroups: [''], resources: [pods], resourceNames: ['{{ .Params.SECRET }}'], verbs: [get]}]
`

// sensitiveWeb returns a version with a sensitive parameter. Its plan backup writes an object of a kind that the cluster does not serve.
func sensitiveWeb(name string) *v1beta1.OperatorVersion {
	version := web(gen.Param("SECRET", "standard", ""), gen.Template("s.yaml", secretNames), gen.Apply("secret", "s.yaml"),
		gen.Template("odd.yaml", "apiVersion: "+newSecret+".io/v1\nkind: Odd\nmetadata: {name: odd}\n"), gen.Apply("odd", "odd.yaml"),
		gen.Serial("deploy", "app", "secret"), gen.Serial("update", "app", "secret"), gen.Serial("backup", "odd"))
	version.Name, version.Spec.Version = "web-"+name, name
	for i := range version.Spec.Parameters {
		version.Spec.Parameters[i].Sensitive = version.Spec.Parameters[i].Name == "SECRET"
	}
	return version
}

// computeSensitive returns the preview of an upgrade that changes a sensitive value. The account may do nothing; whether it may do
// something in the whole cluster is not known if an error is given.
func computeSensitive(t *testing.T, value string, unknown error) *Preview {
	t.Helper()
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		switch r.Kind {
		case "LocalSubjectAccessReview":
			return &authorizationv1.LocalSubjectAccessReview{}, nil
		case "SubjectAccessReview":
			return &authorizationv1.SubjectAccessReview{}, unknown
		}
		return nil, nil
	})
	old, next := sensitiveWeb("0.1.0"), sensitiveWeb("0.2.0")
	next.Spec.Templates["c.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	edit := Edit{Verb: "upgrade", Before: l.running(old, "i-a", "x-"+formerSecret, formerSecret), Old: old, Version: next}
	edit.Before.Spec.Parameters["SECRET"] = formerSecret
	edit.After = changed(edit.Before, func(i *v1beta1.Instance) {
		i.Spec.OperatorVersion.Name = next.Name
		i.Spec.Parameters["SECRET"] = value
	})
	o := l.options()
	o.DefaultAccount = types.NamespacedName{Namespace: "ns", Name: "kudo"}
	p, err := Compute(t.Context(), o, edit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// formsOf returns a preview in all its forms.
func formsOf(t *testing.T, p *Preview) string {
	t.Helper()
	var out strings.Builder
	asJSON, err := json.Marshal(p)
	asYAML, yamlErr := yaml.Marshal(p)
	if err := errors.Join(err, yamlErr, p.WriteText(&out), p.WriteMarkdown(&out)); err != nil {
		t.Fatal(err)
	}
	return out.String() + string(asJSON) + string(asYAML)
}

// TestSensitiveNames checks that no form of a preview shows a sensitive value from which a template makes names of objects: neither objects
// nor rights nor reasons do (P7, P11). The digest does not depend on the value.
func TestSensitiveNames(t *testing.T) {
	p := computeSensitive(t, newSecret, nil)
	refused := computeSensitive(t, newSecret, apierrors.NewForbidden(schema.GroupResource{Resource: "reviews"}, newSecret, errors.New("no")))
	for form, got := range map[string]string{"all forms": formsOf(t, p), "all forms of one in which not all is known": formsOf(t, refused)} {
		if strings.Contains(got, newSecret) || strings.Contains(got, formerSecret) || strings.Count(got, "Secret ns/"+params.Masked) != 2 {
			t.Errorf("%s show a sensitive value, or no object that is named by it:\n%s", form, got)
		}
	}
	r := p.Rights
	for name, rules := range map[string][]rbacv1.PolicyRule{"needed": r.Needed, "neededCluster": r.NeededCluster, "missing": r.Missing, "missingCluster": r.MissingCluster,
		"added": r.Added, "addedCluster": r.AddedCluster, "removed": r.Removed, "removedCluster": r.RemovedCluster, "unknown": nil} {
		text, err := json.Marshal(rules)
		if name == "unknown" {
			text, err = json.Marshal(r.Unknown)
		}
		if err != nil || !strings.Contains(string(text), params.Masked) {
			t.Errorf("%s masks nothing: %s, %v", name, text, err)
		}
	}
	if len(refused.Rights.Unknown) != 2 || refused.Rights.MissingCluster != nil {
		t.Errorf("the account may not be asked about: %q", refused.Rights.Unknown)
	}
	if again := computeSensitive(t, newSecret, nil); again.Digest != p.Digest || !reflect.DeepEqual(again.Rights, p.Rights) {
		t.Errorf("the same edit has another digest, or other rights: %s", cmp.Diff(p.Rights, again.Rights))
	}
	if guess := computeSensitive(t, "battery-horse", nil); guess.Digest != p.Digest {
		t.Errorf("the digest is that of one value: %s", cmp.Diff(p.Objects, guess.Objects, cmp.AllowUnexported(Object{}, Field{})))
	}
}

// TestMaskNames checks that sensitive values are masked wherever a preview names an object, or explains what becomes of it (P7).
func TestMaskNames(t *testing.T) {
	preview := func(secret string) *Preview {
		return &Preview{
			Objects: []Object{{Namespace: "ns", Name: "a-" + secret, Why: "as " + secret, Restart: &Restart{Why: "Secret " + secret + " changes"}, Blame: []runner.Blame{{Field: "spec.ports[name=" + secret + "]"}}}},
			Stays:   []Stay{{Object: "ConfigMap ns/" + secret, Why: "of " + secret, Holders: []string{"Instance ns/" + secret}}},
			Shared:  []Share{{Object: "Namespace " + secret, Holders: []string{"Instance ns/" + secret, "Instance ns/i"}}},
			Basis:   []Basis{{Object: "Secret ns/" + secret}, {Object: "Secret ns/i"}},
		}
	}
	mask := params.NewMask([]string{newSecret})
	p := preview(newSecret)
	p.maskNames(mask)
	child := &computation{touches: &touches{notes: &notes{mask: mask}}}
	maskReads(p.Basis, &computation{touches: &touches{notes: &notes{}}, children: []*computation{child}})
	if diff := cmp.Diff(preview(params.Masked), p, cmp.AllowUnexported(Object{})); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := (Definition{Name: newSecret + ".example.com"}).masked(mask); got.Name != params.Masked+".example.com" {
		t.Errorf("a definition is named %s", got.Name)
	}
}

// secretChild is a template of an Instance whose name and values are made from a sensitive parameter.
const secretChild = `apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: 'kid-{{ .Params.SECRET }}'}
spec: {operatorVersion: {name: web-0.1.0, kind: OperatorVersion}, parameters: {VALUE: '{{ .Params.SECRET }}'}}
`

// TestSensitiveChildren checks that the preview of an Instance which a template makes shows no sensitive value of its maker (P7, P13).
func TestSensitiveChildren(t *testing.T) {
	child, parent := web(), web(gen.Param("SECRET", "standard", ""), gen.Template("kid.yaml", secretChild), gen.Apply("kid", "kid.yaml"), gen.Serial("deploy", "kid", "app"))
	parent.Name, parent.Spec.Operator.Name = "parent-0.1.0", "parent"
	parent.Spec.Parameters[len(parent.Spec.Parameters)-1].Sensitive = true
	edit := Edit{Verb: "install", After: gen.Instance("i", parent, map[string]string{"SECRET": newSecret}), Version: parent, Versions: []*v1beta1.OperatorVersion{child, parent}}
	p := newLab(t).compute(edit)
	if got := formsOf(t, p); strings.Contains(got, newSecret) || len(p.Children) != 1 || p.Children[0].Subject != "Instance ns/kid-"+params.Masked {
		t.Errorf("a preview shows a sensitive value, or no child:\n%s", got)
	}
	digest := p.Digest
	edit.After.Spec.Parameters["SECRET"] = "battery-horse"
	if p := newLab(t).compute(edit); p.Digest != digest {
		t.Error("the digest is that of one value")
	}
}

// TestSensitiveFailure checks that a failure shows no sensitive value that the API server has named: neither the new nor the former one (P7).
func TestSensitiveFailure(t *testing.T) {
	version := web(gen.Param("SECRET", "standard", ""))
	version.Spec.Parameters[len(version.Spec.Parameters)-1].Sensitive = true
	l := newLab(t)
	before := l.running(version, "i-a")
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Kind == "ConfigMap" && len(r.Query["dryRun"]) > 0 {
			return nil, apierrors.NewBadRequest("may not change from " + formerSecret + " to " + newSecret)
		}
		return nil, nil
	})
	before.Spec.Parameters["SECRET"] = formerSecret
	p := l.compute(Edit{Verb: "update", Before: before, After: changed(changed(before, set("SECRET", newSecret)), set("VALUE", "other")), Version: version})
	if got := formsOf(t, p); !p.Fails() || strings.Contains(got, newSecret) || strings.Contains(got, formerSecret) {
		t.Errorf("a failure shows a sensitive value, or there is none:\n%s", got)
	}
}

// TestSensitiveCapacity checks that names of resources are masked that a template makes from a sensitive value (P7, P12).
func TestSensitiveCapacity(t *testing.T) {
	c := &notes{mask: params.NewMask([]string{newSecret})}
	sum := corev1.ResourceList{}
	one := &quota.Usage{Resources: corev1.ResourceList{"requests.example.com/" + newSecret: resource.MustParse("3"), corev1.ResourcePods: resource.MustParse("1")}}
	c.addUsage(sum, one)
	c.addUsage(sum, one)
	if diff := cmp.Diff(corev1.ResourceList{"requests.example.com/" + params.Masked: resource.MustParse("6"), corev1.ResourcePods: resource.MustParse("2")}, sum); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestSensitiveRelease checks that names are masked of what a version holds whose install plan makes them from a sensitive value (P7).
func TestSensitiveRelease(t *testing.T) {
	version := web(gen.Param("SECRET", "standard", ""))
	version.UID = "version-uid"
	version.Spec.Parameters[len(version.Spec.Parameters)-1].Sensitive = true
	version.Spec.InstallParameters = map[string]string{"SECRET": newSecret}
	holder := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: version.InstallationName(), UID: "holder-uid"}}
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: holder.Name, UID: holder.UID}
	held := &corev1.ConfigMap{ObjectMeta: gen.Meta("apps", "n-"+newSecret)}
	held.OwnerReferences, held.Annotations = []metav1.OwnerReference{owner}, map[string]string{v1beta1.ManagedAnnotation: "true"}
	l := newLab(t)
	live := l.Put(held)
	holder.Status.Resources = []v1beta1.HeldResource{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: held.Name, UID: live.GetUID(), State: v1beta1.HoldCreated}}
	l.Put(holder)
	p, err := ComputeRelease(t.Context(), l.options(), Release{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := formsOf(t, p); strings.Contains(got, newSecret) || len(p.Objects) != 1 || p.Objects[0].Effect != Delete {
		t.Errorf("a preview shows a sensitive value, or no object:\n%s", got)
	}
}
