package history

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// former builds the record of a run of an Instance of the name with another uid, as a restore leaves it.
func former(instance *v1beta1.Instance, revision int64, snapshot string) *appsv1.ControllerRevision {
	r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta(instance.Namespace, Name(instance.Name, revision)), Revision: revision}
	r.Labels = map[string]string{v1beta1.HistoryLabel: "former", v1beta1.InstanceLabel: instance.Name}
	r.Data.Raw = fmt.Appendf(nil, `{"plan":"deploy","snapshot":%q}`, snapshot)
	return r
}

// TestIsFormer: R33: a record is one from before a restore only if it is that of an Instance of the name, and no other object has it.
func TestIsFormer(t *testing.T) {
	i := gen.Instance("web", gen.Version("ns", "v"), nil)
	i.UID = "own"
	other := i.DeepCopy()
	other.UID = "other"
	owned := func(by *v1beta1.Instance) func(*appsv1.ControllerRevision) {
		return func(r *appsv1.ControllerRevision) {
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(by, v1beta1.GroupVersion.WithKind("Instance"))}
		}
	}
	for _, tc := range []struct {
		reason string
		change func(*appsv1.ControllerRevision)
		want   bool
	}{
		{"a restore has dropped the owner", func(*appsv1.ControllerRevision) {}, true},
		{"the Instance has adopted it", owned(i), true},
		{"another Instance has it", owned(other), false},
		{"it is the Instance's own", func(r *appsv1.ControllerRevision) { r.Labels[v1beta1.HistoryLabel] = "own" }, false},
		{"kudo has not made it", func(r *appsv1.ControllerRevision) { delete(r.Labels, v1beta1.HistoryLabel) }, false},
		{"its number is not that of its name", func(r *appsv1.ControllerRevision) { r.Revision = 4 }, false},
		{"its number leaves none for new runs", func(r *appsv1.ControllerRevision) { r.Revision, r.Name = maxFormer, Name("web", maxFormer) }, false},
		{"it is of another namespace", func(r *appsv1.ControllerRevision) { r.Namespace = "elsewhere" }, false},
	} {
		r := former(i, 3, "")
		tc.change(r)
		if got := IsFormer(r, i); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// TestIsForeign: R32: a status is that of another Instance if none of its runs is one of this one.
func TestIsForeign(t *testing.T) {
	own, other := types.UID("5c8c4ff1-0000-4000-8000-000000000002"), types.UID("5c8c4ff1-0000-4000-8000-000000000003")
	of := func(owner types.UID, revision int64) v1beta1.PlanStatus {
		return v1beta1.PlanStatus{Revision: revision, UID: RunUID(owner, revision)}
	}
	for _, tc := range []struct {
		reason string
		all    map[string]v1beta1.PlanStatus
		want   bool
	}{
		{"nothing has run", nil, false},
		{"a plan that never ran has no number", map[string]v1beta1.PlanStatus{"deploy": {}}, false},
		{"KUDO gives no numbers", map[string]v1beta1.PlanStatus{"deploy": {UID: "x"}}, false},
		{"its own", map[string]v1beta1.PlanStatus{"deploy": of(own, 1), "update": of(own, 2)}, false},
		{"that of before", map[string]v1beta1.PlanStatus{"deploy": of(other, 1), "update": of(other, 2), "backup": {}}, true},
		{"one run is its own", map[string]v1beta1.PlanStatus{"deploy": of(other, 1), "update": of(own, 2)}, false},
	} {
		if got := IsForeign(own, tc.all); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// TestFormerRecords: R33: the first run takes the number after those of the runs from before, which stay, cannot be read as runs, and are
// trimmed like its own.
func TestFormerRecords(t *testing.T) {
	f := newFixture(t)
	for n := int64(1); n <= Limit; n++ {
		f.Put(former(f.instance, n, "web-1"))
	}
	err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1))
	if met := new(FormerError); !errors.As(err, &met) {
		t.Fatalf("the first run is recorded with %v", err)
	}
	for range 2 { // the second time after a crash
		newest, err := f.AdoptFormer(t.Context(), f.instance)
		if newest != Limit || err != nil {
			t.Fatalf("the newest run from before is %d: %v", newest, err)
		}
	}
	if record := f.record(t, f.instance, 1); !metav1.IsControlledBy(record, f.instance) || !IsFormer(record, f.instance) {
		t.Errorf("the record is not adopted: %+v", record.ObjectMeta)
	}
	if _, err := f.Store.Read(t.Context(), f.instance, 2); !Unusable(err) {
		t.Errorf("a run from before can be read: %v", err)
	}
	exists := func(n int64) bool {
		list := &appsv1.ControllerRevisionList{}
		if err := f.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Items {
			if r.Name == Name("web", n) {
				return true
			}
		}
		return false
	}
	for n := int64(Limit + 1); n <= 2*Limit; n++ {
		if err := f.RecordStart(t.Context(), f.instance, n, run(f.instance, n)); err != nil {
			t.Fatal(err)
		}
		if err := f.Trim(t.Context(), f.instance, n, ""); err != nil {
			t.Fatal(err)
		}
		if past := n - Limit; past > 1 && exists(past) {
			t.Errorf("run %d from before is kept beside run %d", past, n)
		}
	}
	if exists(1) {
		t.Error("the snapshot of the runs from before outlasts them")
	}
}
