package share

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestInventories: an object that several Installations hold is listed once, with each holder, and with what is wrong.
func TestInventories(t *testing.T) {
	crd := v1beta1.HeldResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "books.x.io"}
	role := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader", State: v1beta1.HoldCreated}
	held := func(r v1beta1.HeldResource, state v1beta1.HoldState, message string) v1beta1.HeldResource {
		r.State, r.Message = state, message
		return r
	}
	installation := func(name string, resources ...v1beta1.HeldResource) v1beta1.Installation {
		i := v1beta1.Installation{Spec: v1beta1.InstallationSpec{Subject: v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "a",
			Name: name}}}
		i.Status.Resources = resources
		return i
	}
	got := Inventories([]v1beta1.Installation{
		installation("two", held(crd, v1beta1.HoldMismatch, "differs in .spec")),
		installation("one", held(crd, v1beta1.HoldCreated, ""), role),
	})
	want := []*SharedObject{
		{APIVersion: role.APIVersion, Kind: "ClusterRole", Name: "reader", State: "OK", HeldBy: []string{"OperatorVersion a/one (Created)"}},
		{APIVersion: crd.APIVersion, Kind: "CustomResourceDefinition", Name: "books.x.io", State: "Mismatch", Message: "differs in .spec",
			HeldBy: []string{"OperatorVersion a/one (Created)", "OperatorVersion a/two (Mismatch)"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(SharedObject{}, "Holds")); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got[1].Holds[1].Subject.Name != "two" || got[1].Holds[1].State != v1beta1.HoldMismatch {
		t.Errorf("holders as values are in the order of the texts: %v", got[1].Holds)
	}
	if Inventories(nil) == nil {
		t.Error("no Installations are an empty list, as programs read it")
	}
}

// TestReadLive: the live object says whether kudo has made it, and who owns it; the state that a holder has found has precedence over the
// existence of the object.
func TestReadLive(t *testing.T) {
	role := func(name, metadata string) *unstructured.Unstructured {
		return parse(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+name+", "+metadata+"}")
	}
	owners := `ownerReferences: [{apiVersion: kudo.dev/v1beta1, kind: Installation, name: i, uid: u}]`
	f := newFixture(t, role("ours", `annotations: {kudo.dev/managed: "true"}, `+owners), role("foreign", ""),
		role("ending", `deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x]`), role("differs", ""))
	for _, tc := range []struct {
		reason, name, found, state string
		managed                    bool
		owners                     []string
	}{
		{"kudo has made it", "ours", stateOK, "OK", true, []string{"Installation i"}},
		{"kudo has not made it", "foreign", stateOK, "OK", false, nil},
		{"it is being deleted", "ending", stateOK, "Terminating", false, nil},
		{"it does not exist", "absent", stateOK, "Missing", false, nil},
		{"a holder has found that it differs", "differs", "Mismatch", "Mismatch", false, nil},
		{"a holder has found that it differed, and it does not exist", "absent", "Mismatch", "Mismatch", false, nil},
	} {
		o := &SharedObject{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: tc.name, State: tc.found}
		if err := f.ReadLive(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.State != tc.state || o.Managed != tc.managed || !slices.Equal(o.Owners, tc.owners) {
			t.Errorf("%s: %+v", tc.reason, o)
		}
	}
	f.Before(func(apitest.Request) (any, error) { return nil, errors.New("etcd is full") })
	if err := f.ReadLive(t.Context(), &SharedObject{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "ours"}); err == nil {
		t.Error("an error is no error")
	}
}
