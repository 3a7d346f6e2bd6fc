package history

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestEntries: people see the runs of an owner in order, each with what came of it, and none of another owner.
func TestEntries(t *testing.T) {
	owner := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "1"}}
	owner.Status.Baseline = &v1beta1.Baseline{Revision: 3}
	owner.Status.PlanStatus = map[string]v1beta1.PlanStatus{"update": {Name: "update", Status: v1beta1.InProgress, Revision: 3}}
	record := func(revision int64, controller types.UID, data, outcome string) appsv1.ControllerRevision {
		r := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: Name("web", revision),
			Labels: map[string]string{v1beta1.HistoryLabel: string(controller)}}, Revision: revision,
			Data: runtime.RawExtension{Raw: []byte(data)}}
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "web", UID: controller,
			Controller: new(true)}}
		if outcome != "" {
			r.Annotations = map[string]string{outcomeAnnotation: outcome}
		}
		return r
	}
	started := `","started":"2026-01-02T03:04:05.000000Z"}`
	got := Entries([]appsv1.ControllerRevision{
		record(3, "1", `{"plan":"update","parameters":{"N":"2"},"cause":"parameters changed: N`+started, ""),
		record(1, "1", `{"plan":"deploy","parameters":{"N":"1"},"sensitive":["P`+`"],"cause":"instance created`+started,
			`{"status":"COMPLETE"}`),
		record(2, "1", `{"plan":"update","cause":"x`+started, `{"status":"IN_PROGRESS"}`),
		record(2, "other", `{"plan":"deploy","cause":"of another owner`+started, ""),
		record(4, "1", `not JSON`, ""),
	}, owner)
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	want := []Entry{
		{Revision: 1, Plan: "deploy", Status: v1beta1.Complete, Started: at, Cause: "instance created", Parameters: map[string]string{"N": "1"},
			Sensitive: []string{"P"}},
		{Revision: 2, Plan: "update", Status: Superseded, Started: at, Finished: &at, Cause: "x"},
		{Revision: 3, Plan: "update", Status: v1beta1.InProgress, Started: at, Cause: "parameters changed: N",
			Parameters: map[string]string{"N": "2"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestList: the runs of an Instance are found by its name, also those from before a restore, and those of an OperatorVersion by its uid.
func TestList(t *testing.T) {
	f := newFixture(t)
	for _, owner := range []client.Object{f.instance, f.version} {
		for revision := range int64(2) {
			if err := f.RecordStart(t.Context(), owner, revision+1, run(owner, revision+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	former := f.instance.DeepCopy()
	former.UID = "5c8c4ff1-0000-4000-8000-0000000000ff"
	if err := f.RecordStart(t.Context(), former, 3, run(former, 3)); err != nil {
		t.Fatal(err)
	}
	restored := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: former.Namespace, Name: NameFor(former, 3)}}
	f.Server.Read(restored)
	restored.OwnerReferences = nil // a restore takes owners away that do not exist
	f.Put(restored)
	for _, tc := range []struct {
		reason string
		owner  client.Object
		former []bool
	}{
		{"an Instance, and its former self", f.instance, []bool{false, false, true}},
		{"an OperatorVersion", f.version, []bool{false, false}},
		{"an Instance of the name in another namespace", &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: f.instance.Name}}, nil},
	} {
		found, err := List(t.Context(), f.Client(), tc.owner)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, e := range found {
			got = append(got, e.Former)
		}
		if diff := cmp.Diff(tc.former, got); diff != "" {
			t.Errorf("%s: runs from before a restore: -want +got: %s", tc.reason, diff)
		}
	}
	f.Before(func(r apitest.Request) (any, error) { return nil, errors.New("etcd is full") })
	if found, err := List(t.Context(), f.Client(), f.instance); err == nil {
		t.Errorf("an error is an empty list: %v", found)
	}
}

// TestEntriesNeedAnOwner: what is neither an Instance nor an OperatorVersion has no runs, and an Instance without a status has those that are
// recorded, with nothing known of their ends.
func TestEntriesNeedAnOwner(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1)); err != nil {
		t.Fatal(err)
	}
	found, err := List(t.Context(), f.Client(), f.instance)
	if err != nil || len(found) != 1 || found[0].Revision != 1 || found[0].Status != "" || found[0].Finished != nil || found[0].Unread != nil {
		t.Errorf("%+v (%v)", found, err)
	}
	if all := planStatus(&v1beta1.Operator{}); all != nil {
		t.Errorf("an Operator has plans: %v", all)
	}
}
