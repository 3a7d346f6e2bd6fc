package share

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// fixedComparer is a CRDComparer with one answer.
type fixedComparer struct {
	breaks   error
	superset bool
}

func (v fixedComparer) CheckUpdate(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
	return v.breaks
}

func (v fixedComparer) IsSuperset(_, _ *unstructured.Unstructured) bool { return v.superset }

// TestDefinitionPolicy checks what becomes of a definition that differs from that of the package.
func TestDefinitionPolicy(t *testing.T) {
	breaks := fixedComparer{breaks: errors.New("field a was removed")}
	for name, tc := range map[string]struct {
		reason   string
		managed  bool
		holders  func(*fixture) []*v1beta1.Installation
		policy   Policy
		safety   CRDComparer
		action   apply.Action
		owners   []string
		writes   []string
		mismatch string
	}{
		"Superset": {"an Instance joins a definition that holds more than it wants", true, (*fixture).database, Policy{Tarball: true}, fixedComparer{superset: true},
			apply.Configured, []string{"ns-db-1.0", "ns-web-1.0"}, []string{"patch CustomResourceDefinition ships.example.com"}, ""},
		"OthersSuperset": {"it uses one that kudo did not create", false, nil, Policy{Tarball: true}, fixedComparer{superset: true}, apply.Unchanged, nil, nil, ""},
		"NoTarball": {"the definition of an OperatorVersion must match", false, nil, Policy{}, fixedComparer{superset: true},
			apply.Failed, nil, nil, "(kudo did not create it)"},
		"Fail": {"crdUpdatePolicy Fail leaves what others hold", true, (*fixture).database, Policy{Tarball: true}, fixedComparer{},
			apply.Failed, []string{"ns-db-1.0"}, nil, "(crdUpdatePolicy is Fail, which leaves a CustomResourceDefinition that differs as it is)"},
		"Safe": {"a safe change is made, and no owner is dropped", true, (*fixture).database, Policy{Tarball: true, SafeCRDs: true}, fixedComparer{},
			apply.Configured, []string{"ns-db-1.0", "ns-web-1.0", guardian}, []string{"apply CustomResourceDefinition ships.example.com"}, ""},
		"Unsafe": {"one that breaks objects is not", true, (*fixture).database, Policy{Tarball: true, SafeCRDs: true}, breaks,
			apply.Failed, []string{"ns-db-1.0"}, nil, "(field a was removed)"},
		"OwnUnsafe": {"not even if no other owner holds the definition", true, nil, Policy{}, breaks, apply.Failed, nil, nil, "(field a was removed)"},
		"NoComparer": {"without a comparer the package decides", true, nil, Policy{}, nil,
			apply.Configured, []string{"ns-web-1.0", guardian}, []string{"apply CustomResourceDefinition ships.example.com"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.safety = tc.safety
			var holders []*v1beta1.Installation
			if tc.holders != nil {
				holders = tc.holders(f)
			}
			live := shipDefinition(t, holders...)
			live.Object["status"] = parse(t, "{conditions: [{type: Established, status: 'True'}]}").Object
			if !tc.managed {
				live.SetAnnotations(nil)
			}
			f.Put(live)
			wanted := shipDefinition(t)
			if err := unstructured.SetNestedStringSlice(wanted.Object, []string{"sh"}, "spec", "names", "shortNames"); err != nil {
				t.Fatal(err)
			}
			change := f.install(t, f.Session(f.web, tc.policy, nil), wanted)
			var mismatch *MismatchError
			if change.Action != tc.action || errors.As(change.Err, &mismatch) != (tc.mismatch != "") || change.Err != nil && !strings.Contains(change.Err.Error(), tc.mismatch) {
				t.Errorf("%s: %v, %v", tc.reason, change.Action, change.Err)
			}
			diff := cmp.Diff(tc.owners, owners(f.Server.Get(live))) + cmp.Diff(tc.writes, writes(f.Requests()), cmpopts.EquateEmpty())
			if diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// database are the holders of an object that only the operator db holds.
func (f *fixture) database() []*v1beta1.Installation { return []*v1beta1.Installation{f.db} }

// TestHolders checks whom a message names, for people: owners go before field managers, and the guard owner is none.
func TestHolders(t *testing.T) {
	f := newFixture(t)
	deleted := &v1beta1.Installation{}
	deleted.Name, deleted.UID = "deleted", "deleted"
	config := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	guard := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: guardian, UID: "guard"}
	managers := []metav1.ManagedFieldsEntry{
		{Manager: "helm"}, {Manager: "kubelet", Subresource: "status"}, {Manager: "kubectl"}, {Manager: "helm"},
	}
	for _, tc := range []struct {
		reason string
		owners []metav1.OwnerReference
		fields []metav1.ManagedFieldsEntry
		want   []string
	}{
		{"an object that names none", nil, nil, nil},
		{"OperatorVersions, in the order of the owners", []metav1.OwnerReference{reference(f.newer), reference(f.db)}, managers, []string{"OperatorVersion ns/web-2.0", "OperatorVersion ns/db-1.0"}},
		{"an Installation that does not exist stands for itself", []metav1.OwnerReference{reference(deleted), config}, nil, []string{"Installation deleted", "ConfigMap x"}},
		{"field managers, each once, but not those of the status", []metav1.OwnerReference{guard}, managers, []string{"field manager helm, kubectl"}},
		{"only the status has a manager", nil, managers[1:2], nil},
	} {
		live := role(t, "get", false)
		live.SetOwnerReferences(tc.owners)
		live.SetManagedFields(tc.fields)
		if diff := cmp.Diff(tc.want, f.Holders(t.Context(), live)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestOtherHolders checks P13: the other holders of an object are its owners and the Instances whose plans write it. Instances that are
// deleted do not count.
func TestOtherHolders(t *testing.T) {
	f := newFixture(t)
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: name, UID: types.UID(name)}
	}
	deleted := map[types.UID]string{"gone": "kudo/ns/gone", "child": "kudo/ns/child"}
	for _, tc := range []struct {
		reason   string
		owners   []metav1.OwnerReference
		managers []string
		want     []string
	}{
		{"no others", []metav1.OwnerReference{owner("gone"), owner("child")}, []string{"kudo/ns/gone", "kudo/ns/child", manager}, nil},
		{"an Instance that writes it", nil, []string{"kudo/ns/gone", "kudo/team-b/site", "kubectl"}, []string{"Instance team-b/site"}},
		{"an owner, and an Instance", []metav1.OwnerReference{owner("gone"), owner("other"), reference(f.db)}, []string{"kudo/team-b/site"},
			[]string{"Instance other", "OperatorVersion ns/db-1.0", "Instance team-b/site"}},
		{"other field managers, if there is nothing else", nil, []string{"kudo/ns/gone", "helm", "kudo/a/b/c", "kudo/a"}, []string{"field manager helm, kudo/a/b/c, kudo/a"}},
	} {
		live := role(t, "get", false)
		live.SetOwnerReferences(tc.owners)
		var fields []metav1.ManagedFieldsEntry
		for _, name := range tc.managers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: name})
		}
		live.SetManagedFields(fields)
		if diff := cmp.Diff(tc.want, f.OtherHolders(t.Context(), live, deleted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestSuperseded checks when a newer version of the same operator is the one that has changed an object.
func TestSuperseded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		owners func(*fixture) []*v1beta1.Installation
		policy v1beta1.SharedUpdates
		holder func(*fixture) *v1beta1.Installation
		want   bool
	}{
		"Newer":   {"the newer version may change it", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web, f.newer} }, v1beta1.SameOperatorUpdates, nil, true},
		"Policy":  {"it may not", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web, f.newer} }, "", nil, false},
		"Left":    {"the holder does not own it", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.newer} }, v1beta1.SameOperatorUpdates, nil, false},
		"Alone":   {"no other owner", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web} }, v1beta1.SameOperatorUpdates, nil, false},
		"Other":   {"another operator", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.db, f.newer} }, v1beta1.SameOperatorUpdates, func(f *fixture) *v1beta1.Installation { return f.db }, false},
		"Older":   {"the holder is the newer one", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web, f.newer} }, v1beta1.SameOperatorUpdates, func(f *fixture) *v1beta1.Installation { return f.newer }, false},
		"Deleted": {"the newer Installation does not exist any more", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web, former(f.newer)} }, v1beta1.SameOperatorUpdates, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, name := range []string{"web-1.0", "web-2.0", "db-1.0"} {
				ov := gen.Version("ns", name)
				if f.Server.Read(ov); tc.policy != "" {
					ov.Spec.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: tc.policy}
				}
				f.Put(ov)
			}
			holder := f.web
			if tc.holder != nil {
				holder = tc.holder(f)
			}
			got, err := f.Session(holder, Policy{}, nil).superseded(t.Context(), role(t, "get", true, tc.owners(f)...))
			if err != nil || got != tc.want {
				t.Errorf("%s: %v, %v", tc.reason, got, err)
			}
		})
	}
}

// former is an Installation of before that had the name.
func former(i *v1beta1.Installation) *v1beta1.Installation {
	i = i.DeepCopy()
	i.UID = "former"
	return i
}

// TestVersionOfInstallation checks that only the OperatorVersion that was installed counts.
func TestVersionOfInstallation(t *testing.T) {
	for reason, edit := range map[string]func(*v1beta1.Installation){
		"the subject":                            func(*v1beta1.Installation) {},
		"another OperatorVersion has its name":   func(i *v1beta1.Installation) { i.Spec.Subject.UID = "former" },
		"it does not exist":                      func(i *v1beta1.Installation) { i.Spec.Subject.Name = "deleted" },
		"the subject is an Instance of its name": func(i *v1beta1.Installation) { i.Spec.Subject.Kind = "Instance" },
	} {
		f := newFixture(t)
		i := f.web.DeepCopy()
		edit(i)
		got, err := f.version(t.Context(), i)
		if err != nil || (got != nil) != (reason == "the subject") {
			t.Errorf("%s: %v, %v", reason, got, err)
		}
	}
}

// TestOwnersThatCannotBeRead checks that an owner that cannot be read does not count as absent: nothing is changed.
func TestOwnersThatCannotBeRead(t *testing.T) {
	for _, kind := range []string{"Installation", "OperatorVersion"} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			live := f.Put(role(t, "list", true, f.web, f.db))
			f.Before(func(r apitest.Request) (any, error) {
				if r.Verb == "get" && r.Kind == kind && r.Name != "web-1.0" {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, r.Name, errors.New("no"))
				}
				return nil, nil
			})
			s := f.Session(f.web, Policy{SameOperator: true}, nil)
			change := f.install(t, s, role(t, "get", false))
			var mismatch *MismatchError
			if change.Err == nil || !strings.Contains(change.Err.Error(), "is forbidden: no") || errors.As(change.Err, &mismatch) {
				t.Errorf("a change: %v", change.Err)
			}
			if superseded, err := s.superseded(t.Context(), live); superseded || !apierrors.IsForbidden(err) {
				t.Errorf("superseded: %v, %v", superseded, err)
			}
			if kind == "Installation" {
				r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", UID: live.GetUID(), State: v1beta1.HoldCreated}
				if got := s.Release(t.Context(), r, true); got.Err == nil || !strings.Contains(got.Err.Error(), "read Installation ns-db-1.0: ") {
					t.Errorf("a release: %+v", got)
				}
			}
			if diff := cmp.Diff(live, f.Server.Get(live)); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}
