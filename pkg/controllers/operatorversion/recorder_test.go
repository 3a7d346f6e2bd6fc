package operatorversion

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
)

// idOf names a ConfigMap.
func idOf(name string) apply.ID {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetName(name)
	return apply.IDOf(obj)
}

func heldConfigMap(name string, state v1beta1.HoldState) v1beta1.HeldResource {
	return v1beta1.HeldResource{APIVersion: "v1", Kind: "ConfigMap", Name: name, State: state}
}

// states are the names and states of an inventory, in order.
func states(inventory share.Inventory) (out []string) {
	for _, r := range inventory {
		out = append(out, r.Name+" "+string(r.State))
	}
	return out
}

// TestRecordIntent checks that what is about to be written is in the inventory first, once, and that an error stops the write.
func TestRecordIntent(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), &v1beta1.Installation{})
	f.inventory = share.Inventory{heldConfigMap("a", v1beta1.HoldCreated)}
	h := &progressRecorder{f.action}
	st := f.Next.Status.PlanStatus["install"]
	for _, want := range [][]string{{"patch Installation ns-web/status"}, {}} {
		if err := h.RecordIntent(t.Context(), st, runner.Intent{Objects: []apply.ID{idOf("a"), idOf("b")}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.writes()); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
	}
	want := []string{"a " + string(v1beta1.HoldCreated), "b " + string(v1beta1.HoldPending)}
	f.Server.Read(f.installation)
	if diff := cmp.Diff(want, states(f.installation.Status.Resources)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	st.Message = "the toggle is done"
	if err := h.RecordIntent(t.Context(), st, runner.Intent{Done: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch OperatorVersion ns/web/status"}, f.writes()); diff != "" {
		t.Errorf("what must not be done twice is committed: -want +got: %s", diff)
	}
	f.Remove(f.installation)
	if err := h.RecordIntent(t.Context(), st, runner.Intent{Objects: []apply.ID{idOf("c")}, Done: true}); !apierror.IsObjectNotFound(err) || len(f.writes()) > 1 {
		t.Errorf("the Installation was deleted: %v, want an error before the status is written", err)
	}
}

// TestRecordEffects checks what becomes of the inventory.
func TestRecordEffects(t *testing.T) {
	mismatch := &share.MismatchError{ID: idOf("a"), Differences: []share.Difference{{Path: "data", Live: "1", Wanted: strings.Repeat("ä", maxMessage)}}}
	inventory := func() share.Inventory {
		a := heldConfigMap("a", v1beta1.HoldCreated)
		a.UID = "kept"
		return share.Inventory{a, heldConfigMap("b", v1beta1.HoldExisting)}
	}
	for _, tc := range []struct {
		reason  string
		effects runner.Effects
		want    []string
	}{
		{"nothing happened", runner.Effects{}, []string{"a Created", "b Existing"}},
		{"an object differs, and keeps its place", runner.Effects{Failed: []apply.Change{{ID: idOf("a"), Err: mismatch}}}, []string{"a Mismatch", "b Existing"}},
		{"an object that is not held differs", runner.Effects{Failed: []apply.Change{{ID: idOf("c"), Err: mismatch}}}, []string{"a Created", "b Existing", "c Mismatch"}},
		{"an object failed for another reason", runner.Effects{Failed: []apply.Change{{ID: idOf("a"), Err: errors.New("down")}}}, []string{"a Created", "b Existing"}},
		{"an object was deleted", runner.Effects{Deleted: []apply.ID{idOf("a"), idOf("c")}}, []string{"b Existing"}},
		{"an object of another client stays, so that it is known as such", runner.Effects{Deleted: []apply.ID{idOf("b")}}, []string{"a Created", "b Existing"}},
	} {
		f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), &v1beta1.Installation{})
		f.inventory, f.run = inventory(), &runner.Run{}
		tc.effects.Events = [][2]string{{"Reason", "a message"}, {"Reason", "a message"}}
		(&progressRecorder{f.action}).RecordEffects(tc.effects)
		if diff := cmp.Diff(tc.want, states(f.inventory)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(states(f.inventory), states(f.run.Held)); diff != "" {
			t.Errorf("%s: the run holds something else: %s", tc.reason, diff)
		}
		if r := f.inventory[0]; r.State == v1beta1.HoldMismatch && (r.UID != "kept" || len(r.Message) > maxMessage || !strings.HasSuffix(r.Message, "…")) {
			t.Errorf("%s: uid %s, a message of %d bytes", tc.reason, r.UID, len(r.Message))
		}
		if got := f.recorded(); len(got) != 1 {
			t.Errorf("%s: events %v, want each once", tc.reason, got)
		}
	}
}

// TestRecordReadopted shows P26: an event of the OperatorVersion names what its install plan has taken over again.
func TestRecordReadopted(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), &v1beta1.Installation{})
	f.run = &runner.Run{}
	(&progressRecorder{f.action}).RecordEffects(runner.Effects{Readopted: "Plan install took over again what was kept: ClusterRole app"})
	f.Next.Status.ObservedGeneration++
	if err := f.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Normal ObjectsReadopted Plan install took over again what was kept: ClusterRole app"}, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestReportNext checks that unstable objects are reported one after the other, first in the inventory and then as an event.
func TestReportNext(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.Complete}, nil), &v1beta1.Installation{})
	f.inventory = share.Inventory{heldConfigMap("a", v1beta1.HoldCreated), heldConfigMap("b", v1beta1.HoldCreated)}
	tracker := f.driftTracker()
	tracker.objects[idOf("b")] = &driftingObject{content: "x", due: unstable}
	f.recordMismatch(&f.inventory[1], "b differs")
	if got := f.mismatchMessage(f.inventory[1]); got != "b differs" || f.inventory[1].State != v1beta1.HoldCreated || len(f.recorded()) > 0 {
		t.Errorf("the status says %q, the inventory %s", got, f.inventory[1].State)
	}
	for _, step := range []struct {
		reason string
		after  time.Duration
		state  v1beta1.HoldState
		events int
		again  time.Duration
	}{
		{"it was just reported", time.Second, v1beta1.HoldCreated, 0, reportInterval - time.Second},
		{"the interval is over: the inventory has it", reportInterval - time.Second, v1beta1.HoldMismatch, 0, reportInterval},
		{"the event comes after the next interval", 0, v1beta1.HoldMismatch, 0, reportInterval},
		{"the event is recorded", reportInterval, v1beta1.HoldMismatch, 1, reportInterval},
		{"all of it is reported", reportInterval, v1beta1.HoldMismatch, 0, 0},
	} {
		f.clock.Step(step.after)
		f.result.RequeueAfter = 0
		f.reportNext()
		if tracker.objects[idOf("b")].found != "" && f.inventory[1].State == v1beta1.HoldMismatch {
			tracker.observe(f.clock.Now(), &f.inventory[1], "x")
		}
		if got := f.recorded(); f.inventory[1].State != step.state || len(got) != step.events || f.result.RequeueAfter != step.again {
			t.Errorf("%s: %s, events %v, again after %s, want %s, %d, %s", step.reason, f.inventory[1].State, got, f.result.RequeueAfter, step.state, step.events, step.again)
		}
	}
}

// TestAllowCompare checks that a client that changes objects again and again cannot cause more comparisons than the limit.
func TestAllowCompare(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.Complete}, nil), &v1beta1.Installation{})
	for n := range compareBurst + 3 {
		if got := f.allowCompare(); got != (n < compareBurst) {
			t.Errorf("comparison %d: allowed %t", n, got)
		}
	}
	if f.result.RequeueAfter != compareEvery {
		t.Errorf("again after %s, want %s: what is refused is not counted", f.result.RequeueAfter, compareEvery)
	}
	f.clock.Step(compareEvery)
	if !f.allowCompare() || f.allowCompare() {
		t.Error("one comparison is allowed after the time")
	}
}
