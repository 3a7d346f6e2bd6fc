package instance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/gen"
)

// idOf names an object.
func idOf(apiVersion, kind, namespace, name string) apply.ID {
	return apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind), NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// TestInventory: what was read from the status is written as it was, in an order that does not depend on that of the map.
func TestInventory(t *testing.T) {
	reflected := &runtime.RawExtension{Raw: []byte(`{"phase":"Ready"}`)}
	want := []v1beta1.ResourceStatus{
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web", UID: "1", Hash: "h1"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "2", Hash: "h2", ObservedVersion: "7", FieldsHash: "f"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "b"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "a", UID: "3", Status: reflected, Omitted: []string{"status.nodes"}, StatusUnknown: true},
		{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "ns", Name: "a", UID: "3", Status: reflected, Omitted: []string{"status.nodes"}, StatusUnknown: true},
		{APIVersion: "a.example.org/v1", Kind: "Site", Namespace: "ns", Name: "web", UID: "4"},
		{APIVersion: "b.example.org/v1", Kind: "Site", Namespace: "ns", Name: "web", UID: "5"},
	}
	i := gen.Instance("web", webVersion("web-1.0"), nil)
	for range 5 {
		i.Status.Resources = slices.Clone(want)
		slices.Reverse(i.Status.Resources)
		a := pure(i)
		inventory := a.readInventory()
		if record := inventory[idOf("v1", "ConfigMap", "ns", "a")]; record != (apply.Record{UID: "2", Hash: "h2", Version: "7", Fields: "f"}) {
			t.Fatalf("the record is %+v", record)
		}
		a.writeInventory(inventory)
		if diff := cmp.Diff(want, a.Next.Status.Resources); diff != "" {
			t.Fatalf("-want +got: %s", diff)
		}
	}
}

// TestInventoryOfNothing: a status without objects has no list, so that it is the same as one that never had any.
func TestInventoryOfNothing(t *testing.T) {
	i := gen.Instance("web", webVersion("web-1.0"), nil)
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "1"}}
	a := pure(i)
	a.clusterScoped.set(types.NamespacedName{Namespace: "ns", Name: "web"}, a.readInventory())
	a.writeInventory(runner.Inventory{})
	if a.Next.Status.Resources != nil {
		t.Errorf("resources %v", a.Next.Status.Resources)
	}
	if got := a.clusterScoped.of(idOf("v1", "Namespace", "", "a")); len(got) > 0 {
		t.Errorf("changes of the object that it has no more enqueue %v", got)
	}
}

// TestStatusOfReplacedObject: the status that was taken from an object is not that of one that has its name and another uid.
func TestStatusOfReplacedObject(t *testing.T) {
	i := gen.Instance("web", webVersion("web-1.0"), nil)
	id := idOf("v1", "ConfigMap", "ns", "a")
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "1", Status: &runtime.RawExtension{Raw: []byte(`{}`)}}}
	a := pure(i)
	a.writeInventory(runner.Inventory{id: {UID: "2"}})
	if got := a.Next.Status.Resources; len(got) != 1 || got[0].UID != "2" || got[0].Status != nil {
		t.Errorf("resources %+v", got)
	}
}

// TestRecordIntent: what is about to be written for the first time, and what must not be done twice, is committed before; all else
// costs no request.
func TestRecordIntent(t *testing.T) {
	known, fresh := idOf("v1", "ConfigMap", "ns", "known"), idOf("v1", "ConfigMap", "ns", "fresh")
	for _, tc := range []struct {
		reason string
		ids    []apply.ID
		done   bool
		// committed is the run that the stored status knows.
		committed types.UID
		commits   int
	}{
		{"nothing is written", nil, false, "run", 0},
		{"an object is written again", []apply.ID{known}, false, "run", 0},
		{"an object is written for the first time", []apply.ID{known, fresh}, false, "run", 1},
		{"what must not be done twice is done", []apply.ID{known}, true, "run", 1},
		{"the run is not in the status yet", nil, false, "", 1},
		{"the status knows the run before", nil, false, "other", 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			f.change(func(i *v1beta1.Instance) {
				i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", UID: tc.committed, Status: v1beta1.Pending}}
				i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "known", UID: "1", Hash: "h"}}
			})
			a := f.action(t)
			a.run = &runner.Run{UID: "run", Plan: "deploy", Version: a.content}
			recorder := &progressRecorder{execution: a.execution, plan: "deploy", inventory: a.readInventory()}
			f.Requests()
			st := v1beta1.PlanStatus{Name: "deploy", UID: "run", Status: v1beta1.InProgress}
			if err := recorder.RecordIntent(t.Context(), st, runner.Intent{Objects: tc.ids, Next: func() []apply.ID { return nil }, Done: tc.done}); err != nil {
				t.Fatal(err)
			}
			if got := count(f.Requests(), "patch Instance ns/web/status"); got != tc.commits {
				t.Errorf("%d commits, want %d", got, tc.commits)
			}
			if got := a.Next.Status.PlanStatus["deploy"]; got.Status != v1beta1.InProgress {
				t.Errorf("the status of the plan is %+v", got)
			}
			if record := recorder.inventory[known]; record.UID != "1" || record.Hash != "h" {
				t.Errorf("the record of an object that is known was dropped: %+v", record)
			}
			if tc.commits == 0 {
				return
			}
			if st := f.instance().Status; st.PlanStatus["deploy"].UID != "run" || len(st.Resources) != len(recorder.inventory) {
				t.Errorf("stored are %+v and %+v", st.PlanStatus, st.Resources)
			}
		})
	}
}

// TestRecordNext: the names of objects of later steps are committed with those of a step, so that the later step needs no commit. They are in
// no inventory before, and leave the status if their step does not come.
func TestRecordNext(t *testing.T) {
	f := newFixture(t)
	f.change(func(i *v1beta1.Instance) {
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", UID: "run", Status: v1beta1.InProgress}}
	})
	a := f.action(t)
	a.run = &runner.Run{UID: "run", Plan: "deploy", Version: a.content}
	recorder := &progressRecorder{execution: a.execution, plan: "deploy", inventory: a.readInventory()}
	st := v1beta1.PlanStatus{Name: "deploy", UID: "run", Status: v1beta1.InProgress}
	record := func(done bool, now string, next ...string) int {
		t.Helper()
		f.Requests()
		st.Message += now
		err := recorder.RecordIntent(t.Context(), st, runner.Intent{Objects: []apply.ID{idOf("v1", "ConfigMap", "ns", now)}, Done: done, Next: func() (ids []apply.ID) {
			for _, name := range next {
				ids = append(ids, idOf("v1", "ConfigMap", "ns", name))
			}
			return ids
		}})
		if err != nil {
			t.Fatal(err)
		}
		return count(f.Requests(), "patch Instance ns/web/status")
	}
	stored := func() (names []string) {
		for _, r := range f.instance().Status.Resources {
			names = append(names, r.Name)
		}
		return names
	}
	for _, step := range []struct {
		reason, now string
		done        bool
		next        []string
		commits     int
		stored      []string
		written     int
	}{
		{"three names are committed", "a", false, []string{"b", "c"}, 1, []string{"a", "b", "c"}, 1},
		{"the second one was", "b", false, []string{"c"}, 0, []string{"a", "b", "c"}, 2},
		{"a commit for another reason keeps the third", "b", true, nil, 1, []string{"a", "b", "c"}, 2},
		{"a name that was not known", "d", false, []string{"e"}, 1, []string{"a", "b", "d", "e"}, 3},
	} {
		if got := record(step.done, step.now, step.next...); got != step.commits {
			t.Errorf("%s: %d commits", step.reason, got)
		}
		if got := stored(); !slices.Equal(got, step.stored) || len(recorder.inventory) != step.written {
			t.Errorf("%s: stored are %v, and the inventory has %v", step.reason, got, recorder.inventory)
		}
	}
	a.writeInventory(recorder.inventory)
	if got := a.Next.Status.Resources; len(got) != 3 {
		t.Errorf("the status has objects of a step that has not come: %v", got)
	}
}

// TestRecordIntentFails: an intent that cannot be committed is an error, so that nothing is written.
func TestRecordIntentFails(t *testing.T) {
	f := newFixture(t)
	a := f.action(t)
	a.Next.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
	a.run = &runner.Run{UID: "run", Version: a.content}
	f.change(func(i *v1beta1.Instance) { i.Annotations = texts{"changed": "meanwhile"} })
	recorder := &progressRecorder{execution: a.execution, plan: "deploy", inventory: runner.Inventory{}}
	if err := recorder.RecordIntent(t.Context(), v1beta1.PlanStatus{UID: "run"}, runner.Intent{Objects: []apply.ID{idOf("v1", "ConfigMap", "ns", "a")}, Next: func() []apply.ID { return nil }}); err == nil {
		t.Error("the Instance has changed in the meantime, and the intent is no error")
	}
}

// TestRecordEffects: the inventory follows what a task did, and each warning is recorded once a run.
func TestRecordEffects(t *testing.T) {
	f := newFixture(t)
	a := f.action(t)
	a.run = &runner.Run{UID: "run", Version: a.content}
	kept, written, deleted := idOf("v1", "ConfigMap", "ns", "kept"), idOf("v1", "ConfigMap", "ns", "written"), idOf("v1", "ConfigMap", "ns", "deleted")
	recorder := &progressRecorder{execution: a.execution, plan: "deploy", inventory: runner.Inventory{kept: {UID: "1"}, written: {}, deleted: {UID: "3"}}}
	effects := runner.Effects{
		Written: []apply.Change{{ID: written, Record: apply.Record{UID: "2", Hash: "h"}}}, Deleted: []apply.ID{deleted, idOf("v1", "Secret", "ns", "unknown")},
		Events: [][2]string{{"FieldDropped", "field a"}, {"FieldDropped", "field b"}, {"FieldDropped", "field a"}},
	}
	for range 2 {
		recorder.RecordEffects(effects)
	}
	if diff := cmp.Diff(runner.Inventory{kept: {UID: "1"}, written: {UID: "2", Hash: "h"}}, recorder.inventory); diff != "" {
		t.Errorf("inventory: -want +got: %s", diff)
	}
	if diff := cmp.Diff([]string{"Warning FieldDropped field a", "Warning FieldDropped field b"}, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
	a.run = &runner.Run{UID: "next"}
	recorder.RecordEffects(effects)
	if got := f.recorded(); len(got) != 2 {
		t.Errorf("the next run has the events %q", got)
	}
	a.run = nil
	recorder.RecordEffects(runner.Effects{Events: [][2]string{{"FieldDropped", "field c"}}})
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("without a run, events %q", got)
	}
}

// TestRecordReadopted shows P26: an event names what a plan and a CRD tarball have taken over again, once it is committed.
func TestRecordReadopted(t *testing.T) {
	f := newFixture(t)
	a := f.action(t)
	crd := func(name string, readopted bool) apply.Change {
		return apply.Change{ID: idOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name), Readopted: readopted}
	}
	(&progressRecorder{execution: a.execution, plan: "deploy", inventory: runner.Inventory{}}).RecordEffects(runner.Effects{Readopted: "Plan deploy took over again what was kept: 100% of it"})
	a.crds.announceReadopted(apply.ChangeSet{crd("new.example.org", false)})
	a.crds.announceReadopted(apply.ChangeSet{crd("new.example.org", false), crd("kept.example.org", true)})
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("before the commit, events %q", got)
	}
	a.Next.Status.ObservedGeneration++
	if err := a.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"Normal ObjectsReadopted Plan deploy took over again what was kept: 100% of it",
		"Normal ObjectsReadopted The Instance took over again what was kept: CustomResourceDefinition kept.example.org"}
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestFinishedRun: the end of a run is in the status, in the events and in what is remembered.
func TestFinishedRun(t *testing.T) {
	for _, tc := range []struct {
		status v1beta1.ExecutionStatus
		events []string
	}{
		{v1beta1.Complete, []string{"Normal PlanFinished Execution of plan deploy finished with status COMPLETE"}},
		{v1beta1.FatalError, []string{"Warning PlanFailed Plan deploy failed: it broke", "Normal PlanFinished Execution of plan deploy finished with status FATAL_ERROR"}},
	} {
		f := newFixture(t)
		a := f.action(t)
		a.Next.Status.PlanStatus = plans.WithNeverRun(nil, a.content.Spec.Plans)
		a.setActiveRun(&runner.Run{UID: "run", Plan: "deploy", Subject: runner.Subject{UID: instanceUID}}, "1")
		st := v1beta1.PlanStatus{Name: "deploy", UID: "run", Status: tc.status, Message: "it broke"}
		a.finishRun("deploy", st)
		if a.run != nil || a.findActiveRun("deploy", st) != nil || a.result.RequeueAfter != 1 {
			t.Errorf("%s: run %v, requeued after %s", tc.status, a.run, a.result.RequeueAfter)
		}
		if got := f.recorded(); len(got) > 0 {
			t.Errorf("%s: events %q before the commit", tc.status, got)
		}
		if err := a.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.events, f.recorded()); diff != "" {
			t.Errorf("%s: events: -want +got: %s", tc.status, diff)
		}
	}
}
