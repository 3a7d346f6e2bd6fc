package placement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

var errDown = errors.New("down")

const (
	patchStatus = "patch Instance ns/web/status"
	patchMeta   = "patch Instance ns/web"
)

// firstAlone are waves of m1 and then the others.
func firstAlone() *v1beta1.Waves { return &v1beta1.Waves{Groups: [][]string{{"m1"}}} }

// TestPlace checks C12 and C33: an Instance is placed without a release until the engine has settled. The wave is committed before what it
// releases is placed, and nothing is written twice.
func TestPlace(t *testing.T) {
	f := newFixture(t, firstAlone())
	f.engine.shown = clusters.Observation{Members: f.engine.shown.Members} // it has bound nothing yet
	result, done, events := f.reconcile()
	if diff := cmp.Diff([]string{"observe", patchStatus, "place m1: m2: m3:"}, done); diff != "" || result.RequeueAfter != 0 {
		t.Errorf("not settled: again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	if diff := cmp.Diff([]string{"Normal " + v1beta1.EventWaveOpened + " Wave 1 of 2 of generation 1 is open"}, events); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
	f.expectCondition("not settled", v1beta1.ReadyCondition, "Unknown NotScheduled 0 of 3 clusters are ready; m1 is NotScheduled")
	f.expectCondition("not settled", v1beta1.ReconcilingCondition, "True NotScheduled")
	f.expect("nothing has changed, and the status is not written", "observe", "place m1: m2: m3:")
	f.settle()
	f.expect("settled: the members' states have changed", "observe", "place m1:u/1 m2: m3:", patchStatus)
	f.expect("nothing has changed", "observe", "place m1:u/1 m2: m3:")
	f.show("u/1", nil, "m1")
	f.expect("the next wave is committed first", "observe", patchStatus, "place m1:u/1 m2:u/1 m3:u/1")
	f.engine.shown.Settled = false
	f.expect("a cluster that reports its release keeps it while the engine is unsettled", "observe", "place m1:u/1 m2: m3:")
	f.settle()
	f.show("u/1", nil, "m1", "m2", "m3")
	f.expect("all are ready", "observe", "place m1:u/1 m2:u/1 m3:u/1", patchStatus)
	f.expectCondition("all are ready", v1beta1.ReadyCondition, "True MembersReady")
	f.expectCondition("all are ready", v1beta1.ReconcilingCondition, "")
	f.expect("nothing has changed", "observe", "place m1:u/1 m2:u/1 m3:u/1")
	i := f.instance()
	if i.Status.ObservedGeneration != 1 || len(i.Status.Members) != 3 || i.Status.Wave.State != v1beta1.WaveDone {
		t.Errorf("status %+v", i.Status)
	}
	if i.Status.AggregatedStatus.Status != v1beta1.Complete || len(i.Finalizers) > 0 {
		t.Errorf("aggregated %+v, finalizers %v", i.Status.AggregatedStatus, i.Finalizers)
	}
}

// TestPlaceTargets checks C13 and C46: what each cluster gets of the Instance.
func TestPlaceTargets(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	values := map[string]string{"REGION": "eu-2"}
	for _, tc := range []struct {
		reason string
		edit   func(i *v1beta1.Instance)
		want   []clusters.Target
	}{
		{"nothing is divided", func(*v1beta1.Instance) {}, []clusters.Target{{Name: "m1", Weight: 1}, {Name: "m2", Weight: 1}, {Name: "m3", Weight: 1}}},
		{"by weight", func(i *v1beta1.Instance) {
			i.Spec.Placement.Divide, i.Spec.Placement.Clusters[1].Weight = "REPLICAS", 4
		},
			[]clusters.Target{{Name: "m1", Weight: 1, Share: number(1)}, {Name: "m2", Weight: 4, Share: number(4)}, {Name: "m3", Weight: 1, Share: number(1)}}},
		{"with a value", func(i *v1beta1.Instance) {
			i.Spec.Parameters["REGION"], i.Spec.Placement.Clusters[2].Parameters = "eu-1", values
		}, []clusters.Target{{Name: "m1", Weight: 1}, {Name: "m2", Weight: 1}, {Name: "m3", Weight: 1, Parameters: values}}},
		{"in the order of spec", func(i *v1beta1.Instance) { slices.Reverse(i.Spec.Placement.Clusters) },
			[]clusters.Target{{Name: "m3", Weight: 1}, {Name: "m2", Weight: 1}, {Name: "m1", Weight: 1}}},
	} {
		f := newFixture(t, nil)
		f.change(tc.edit)
		f.reconcile()
		if len(f.engine.placed) != 1 {
			t.Errorf("%s: placed %d times: %s", tc.reason, len(f.engine.placed), f.condition(v1beta1.ReadyCondition))
			continue
		}
		got := f.engine.placed[0]
		for n := range tc.want {
			tc.want[n].Released = "u/1"
		}
		if diff := cmp.Diff(tc.want, got.Clusters); diff != "" || got.Instance.Name != "web" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestPlaceInterrupted checks C35: a hub that ends at any write goes on where it stood, and releases nothing that is not committed.
func TestPlaceInterrupted(t *testing.T) {
	f := newFixture(t, firstAlone())
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" {
			return nil, errDown
		}
		return nil, nil
	})
	result, done, events := f.reconcile()
	if diff := cmp.Diff([]string{"observe"}, done); diff != "" || result.RequeueAfter <= 0 || len(events) > 0 {
		t.Errorf("the wave cannot be committed: again after %s, events %v, -want +got:\n%s", result.RequeueAfter, events, diff)
	}
	f.Before(f.note)
	f.engine.errPlace = errDown
	result, done, events = f.reconcile()
	if diff := cmp.Diff([]string{"observe", patchStatus, "place m1:u/1 m2: m3:"}, done); diff != "" || result.RequeueAfter <= 0 || len(events) != 1 {
		t.Errorf("it cannot be placed: again after %s, events %v, -want +got:\n%s", result.RequeueAfter, events, diff)
	}
	f.engine.errPlace = nil
	f.loop = f.r.loop() // another process
	result, done, events = f.reconcile()
	if diff := cmp.Diff([]string{"observe", "place m1:u/1 m2: m3:"}, done); diff != "" || result.RequeueAfter != 0 || len(events) > 0 {
		t.Errorf("the next process: again after %s, events %v, -want +got:\n%s", result.RequeueAfter, events, diff)
	}
	f.engine.errObserve = errDown
	result, done, _ = f.reconcile()
	if diff := cmp.Diff([]string{"observe"}, done); diff != "" || result.RequeueAfter <= 0 {
		t.Errorf("the engine shows nothing: again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	f.engine.errObserve = nil
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "OperatorVersion" {
			return nil, errDown
		}
		return f.note(r)
	})
	result, done, _ = f.reconcile()
	if len(done) > 0 || result.RequeueAfter <= 0 {
		t.Errorf("the OperatorVersion cannot be read: again after %s, done %v", result.RequeueAfter, done)
	}
	f.Before(f.note)
	f.Remove(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta("ns", "web-1.0")})
	f.expect("it does not exist: the Instance is placed all the same", "observe", "place m1:u/1 m2: m3:")
}

// TestRefused checks C6 and C29: what stands in the way is the reason of Ready, and is looked for again, since no watch shows its end.
func TestRefused(t *testing.T) {
	foreign := &clusters.RefusedError{Reason: v1beta1.ReasonForeignPolicy, Message: "PropagationPolicy ns/kudo-web is of another owner"}
	f := newFixture(t, firstAlone())
	f.engine.errPlace = foreign
	for _, reason := range []string{"refused", "still refused"} {
		result, done, _ := f.reconcile()
		if result.RequeueAfter <= 0 || !slices.Contains(done, "place m1:u/1 m2: m3:") {
			t.Errorf("%s: again after %s, done %v", reason, result.RequeueAfter, done)
		}
		f.expectCondition(reason, v1beta1.ReadyCondition, "False ForeignPolicy PropagationPolicy ns/kudo-web is of another owner")
		f.expectCondition(reason, v1beta1.StalledCondition, "True ForeignPolicy")
	}
	f.engine.errPlace = nil
	if result := f.step("it no longer is", 1, v1beta1.WaveOpen, "m1"); result.RequeueAfter != 0 {
		t.Errorf("it no longer is: again after %s", result.RequeueAfter)
	}
	f.expectCondition("it no longer is", v1beta1.ReadyCondition, "Unknown ")
	f.expectCondition("it no longer is", v1beta1.StalledCondition, "")
	f.show("u/1", nil, "m1")
	f.engine.shown.Refused = &clusters.RefusedError{Reason: v1beta1.ReasonPolicyRefused, Message: "another policy has it"}
	f.step("the engine shows another policy: no wave opens", 1, v1beta1.WaveOpen, "m1")
	f.expectCondition("the engine shows another policy", v1beta1.ReadyCondition, "False PolicyRefused another policy has it")
	f.engine.shown.Refused = nil
	f.step("and does not any more", 2, v1beta1.WaveOpen, "m1 m2 m3")
}

// TestEngineSilent checks C30: while the engine's reports are not fresh, nothing of them counts, and no wave opens.
func TestEngineSilent(t *testing.T) {
	f := newFixture(t, firstAlone())
	f.step("the first wave", 1, v1beta1.WaveOpen, "m1")
	f.show("u/1", nil, "m1")
	f.engine.shown.Silent = "Karmada has not renewed its Lease for 2m"
	f.step("silent", 1, v1beta1.WaveOpen, "m1")
	f.expectCondition("silent", v1beta1.ReadyCondition, "Unknown EngineSilent Karmada has not renewed its Lease for 2m")
	f.expectCondition("silent", v1beta1.ReconcilingCondition, "True EngineSilent")
	f.show("u/1", failed, "m1")
	f.step("silent, and an old report of a failure", 1, v1beta1.WaveOpen, "m1")
	f.engine.shown.Silent = ""
	f.show("u/1", nil, "m1")
	f.step("it speaks", 2, v1beta1.WaveOpen, "m1 m2 m3")
}

// TestWaves checks C33 to C35: waves open one after the other, soak by the clock of the hub, and begin anew with a change.
func TestWaves(t *testing.T) {
	f := newFixture(t, &v1beta1.Waves{Groups: [][]string{{"m2"}, {"m1"}}, Soak: &metav1.Duration{Duration: time.Minute}})
	f.step("the first wave", 1, v1beta1.WaveOpen, "m2")
	f.show("u/1", func(r *clusters.Report) { r.PlanStatus = v1beta1.InProgress }, "m2")
	f.step("its plan runs", 1, v1beta1.WaveOpen, "m2")
	f.show("u/1", nil, "m2")
	if result := f.step("it is ready", 1, v1beta1.WaveSoaking, "m2"); result.RequeueAfter != time.Minute {
		t.Errorf("again after %s, want the soak time", result.RequeueAfter)
	}
	f.clock.Step(40 * time.Second)
	if result := f.step("it soaks", 1, v1beta1.WaveSoaking, "m2"); result.RequeueAfter != 20*time.Second {
		t.Errorf("again after %s, want what is left", result.RequeueAfter)
	}
	f.clock.Step(20 * time.Second)
	f.step("the next wave", 2, v1beta1.WaveOpen, "m1 m2")
	f.change(func(i *v1beta1.Instance) { i.Generation, i.Spec.Placement.Waves.Paused = 2, true })
	f.step("a change begins at the first wave", 1, v1beta1.WaveOpen, "m2")
	if got := f.engine.placed[len(f.engine.placed)-1].Clusters[1].Released; got != "u/2" {
		t.Errorf("released %q, want the new generation", got)
	}
	f.show("u/2", nil, "m2")
	f.step("it is ready", 1, v1beta1.WaveSoaking, "m2")
	f.clock.Step(time.Minute)
	f.step("paused holds the next release", 1, v1beta1.WavePaused, "m2")
	f.expectCondition("paused", v1beta1.ReadyCondition, "Unknown WavePaused")
	f.expectCondition("paused waits for a user", v1beta1.ReconcilingCondition, "")
	f.change(func(i *v1beta1.Instance) { i.Generation, i.Spec.Placement.Waves.Paused = 3, false }) // an edit like any other
	f.step("it goes on", 1, v1beta1.WaveOpen, "m2")
	f.show("u/3", nil, "m2")
	f.step("it is ready", 1, v1beta1.WaveSoaking, "m2")
	f.clock.Step(time.Minute)
	f.step("the next wave", 2, v1beta1.WaveOpen, "m1 m2")
	f.show("u/3", nil, "m1")
	f.step("it is ready", 2, v1beta1.WaveSoaking, "m1 m2")
	f.clock.Step(time.Minute)
	f.step("what no group names comes last", 3, v1beta1.WaveOpen, "m1 m2 m3")
	f.show("u/3", nil, "m3")
	f.step("it is ready", 3, v1beta1.WaveSoaking, "m1 m2 m3")
	f.clock.Step(time.Minute)
	f.step("the end", 3, v1beta1.WaveDone, "m1 m2 m3")
	f.expectCondition("the end", v1beta1.ReadyCondition, "True MembersReady")
}

// TestStopped checks C34: too many failures stop a change, with one event, until a user resumes it.
func TestStopped(t *testing.T) {
	f := newFixture(t, firstAlone())
	f.step("the first wave", 1, v1beta1.WaveOpen, "m1")
	f.show("u/1", failed, "m1")
	for _, want := range []int{1, 0} {
		_, _, events := f.reconcile()
		if len(events) != want || want > 0 && !strings.HasPrefix(events[0], "Warning "+v1beta1.EventWaveStopped+" wave 1 of 2 is stopped, since m1 failed: ") {
			t.Errorf("events %v, want %d", events, want)
		}
	}
	f.expectCondition("stopped", v1beta1.ReadyCondition, "False WaveStopped wave 1 of 2 is stopped")
	f.expectCondition("stopped", v1beta1.StalledCondition, "True WaveStopped")
	f.show("u/1", nil, "m1")
	f.step("it recovers, and no user has seen it", 1, v1beta1.WaveStopped, "m1")
	f.show("u/1", failed, "m1")
	f.change(func(i *v1beta1.Instance) { i.Annotations = map[string]string{v1beta1.ResumeAnnotation: "1"} })
	f.step("a user accepts the failure", 2, v1beta1.WaveOpen, "m1 m2 m3")
	f.show("u/1", failed, "m2")
	_, _, events := f.reconcile()
	if len(events) != 1 || !strings.Contains(events[0], "wave 2 of 2 is stopped") {
		t.Errorf("events %v, want that the second wave is stopped", events)
	}
	f.change(func(i *v1beta1.Instance) { i.Generation = 2 })
	f.step("another change begins anew", 1, v1beta1.WaveOpen, "m1")

	f = newFixture(t, firstAlone())
	f.step("the first wave", 1, v1beta1.WaveOpen, "m1")
	f.show("u/1", failed, "m1")
	f.engine.errPlace = &clusters.RefusedError{Reason: v1beta1.ReasonForeignPolicy, Message: "theirs"}
	if _, _, events := f.reconcile(); len(events) != 1 {
		t.Errorf("stopped and refused at once: events %v, want one", events)
	}
}

// TestLost checks C34: a cluster that is lost counts as failed after some time, for which the controller comes back without an event.
func TestLost(t *testing.T) {
	f := newFixture(t, &v1beta1.Waves{Groups: [][]string{{"m1"}}, MaxFailures: 1})
	f.step("the first wave", 1, v1beta1.WaveOpen, "m1")
	f.engine.shown.Members["m1"] = clusters.Member{Unreachable: "no answer"}
	if result := f.step("lost", 1, v1beta1.WaveOpen, "m1"); result.RequeueAfter != 5*time.Minute {
		t.Errorf("again after %s", result.RequeueAfter)
	}
	f.expectCondition("lost", v1beta1.ReadyCondition, "Unknown MembersLost 0 of 3 clusters are ready; m1 is Lost: no answer")
	f.clock.Step(4 * time.Minute)
	if result := f.step("still lost", 1, v1beta1.WaveOpen, "m1"); result.RequeueAfter != time.Minute {
		t.Errorf("again after %s", result.RequeueAfter)
	}
	f.clock.Step(time.Minute)
	f.step("lost for long: within the bound", 2, v1beta1.WaveOpen, "m1 m2 m3")
	if got := f.instance().Status.Wave.Failed; !slices.Equal(got, []string{"m1"}) {
		t.Errorf("failed %v", got)
	}
	for generation := int64(2); generation < 4; generation++ {
		f.change(func(i *v1beta1.Instance) { i.Generation, i.Spec.Placement.Waves.MaxFailures = generation, 0 })
		_, _, events := f.reconcile()
		if len(events) != 2 || !strings.HasPrefix(events[0], "Warning "+v1beta1.EventWaveStopped+" wave 1 of 2 is stopped, since m1 failed") {
			t.Errorf("a change that is stopped at once, as the one before: events %v", events)
		}
	}
}

// TestNotPlaced checks C37 and C52: without the webhook, what cannot be placed says so, and is not given to the engine.
func TestNotPlaced(t *testing.T) {
	for _, tc := range []struct {
		reason string
		edit   func(i *v1beta1.Instance)
		want   string
	}{
		{"it has no placement", func(i *v1beta1.Instance) { i.Spec.Placement = nil }, "False InvalidSpec spec.placement is missing, and a hub runs no plans"},
		{"a cluster twice", func(i *v1beta1.Instance) { i.Spec.Placement.Clusters[1].Name = "m1" }, "False InvalidSpec spec.placement.clusters[1].name: m1"},
		{"an unknown parameter", func(i *v1beta1.Instance) { i.Spec.Placement.Divide = "NODES" }, "False InvalidSpec spec.placement.divide: the Operator"},
		{"a version of another namespace", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = "other" },
			"False InvalidSpec spec.placement: spec.operatorVersion names other/web-1.0"},
	} {
		for _, finalizer := range []bool{false, true} {
			f := newFixture(t, nil)
			f.r.Finalizer = finalizer
			f.change(func(i *v1beta1.Instance) { i.Generation = 2; tc.edit(i) })
			f.expect(tc.reason, patchStatus)
			f.expect(tc.reason + ", still")
			f.expectCondition(tc.reason, v1beta1.ReadyCondition, tc.want)
			f.expectCondition(tc.reason, v1beta1.StalledCondition, "True InvalidSpec")
			f.expectCondition(tc.reason, v1beta1.ReconcilingCondition, "")
			if i := f.instance(); i.Status.ObservedGeneration != 2 || i.Status.Wave != nil || len(i.Finalizers) > 0 {
				t.Errorf("%s: finalizers %v, status %+v", tc.reason, i.Finalizers, i.Status)
			}
		}
	}
}

// TestFinalizer checks C47: with an engine that does not follow deletions itself, the finalizer is there before anything is placed, and goes
// when no cluster has a copy.
func TestFinalizer(t *testing.T) {
	f := newFixture(t, nil)
	f.r.Finalizer = true
	result, done, _ := f.reconcile()
	if diff := cmp.Diff([]string{patchMeta}, done); diff != "" || result.RequeueAfter != 1 {
		t.Errorf("nothing is placed or said before: again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	if got := f.instance().Finalizers; !slices.Equal(got, []string{v1beta1.PlacementFinalizer}) {
		t.Fatalf("finalizers %v", got)
	}
	f.expect("it is placed", "observe", patchStatus, "place m1:u/1 m2:u/1 m3:u/1")
	now := metav1.Now()
	f.change(func(i *v1beta1.Instance) { i.DeletionTimestamp = &now })
	f.engine.errRemove = errDown
	if result, done, _ := f.reconcile(); result.RequeueAfter <= 0 || !slices.Equal(done, []string{"remove"}) {
		t.Errorf("it cannot be removed: again after %s, done %v", result.RequeueAfter, done)
	}
	f.engine.errRemove, f.engine.left = nil, []string{"m2", "m3"}
	result, done, _ = f.reconcile()
	if diff := cmp.Diff([]string{"remove", patchStatus}, done); diff != "" || result.RequeueAfter != loop.RecheckInterval {
		t.Errorf("two are left: again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	f.expectCondition("two are left", v1beta1.ReadyCondition, "False MembersLost is being deleted, and waits for m2, m3")
	f.expectCondition("two are left", v1beta1.ReconcilingCondition, "True")
	f.expectCondition("two are left", v1beta1.StalledCondition, "")
	f.expect("nothing has changed", "remove")
	f.engine.left = nil
	f.expect("none is left", "remove", patchMeta)
	if f.Get(&v1beta1.Instance{ObjectMeta: gen.Meta("ns", "web")}) != nil {
		t.Error("the Instance is still there")
	}
	f.expect("there is no Instance")
}

// TestDeletion checks C36: an engine that follows deletions itself is asked for nothing, whoever still holds the Instance.
func TestDeletion(t *testing.T) {
	f := newFixture(t, nil)
	now := metav1.Now()
	f.change(func(i *v1beta1.Instance) { i.DeletionTimestamp, i.Finalizers = &now, []string{"example.org/theirs"} })
	result, done, events := f.reconcile()
	if len(done)+len(events) > 0 || result.RequeueAfter != 0 {
		t.Errorf("again after %s, done %v, events %v", result.RequeueAfter, done, events)
	}
}

// TestUsersOf checks that an OperatorVersion enqueues the Instances that name it, in its namespace.
func TestUsersOf(t *testing.T) {
	f := newFixture(t, nil)
	version := gen.Version("ns", "web-1.0")
	for _, name := range []string{"a", "b"} {
		i := gen.Instance(name, version, nil)
		if name == "b" {
			i.Spec.OperatorVersion.Name = "web-2.0"
		}
		f.Put(i)
	}
	f.Put(gen.Instance("c", gen.Version("other", "web-1.0"), nil))
	var got []string
	for _, r := range f.r.usersOf(t.Context(), version) {
		got = append(got, r.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ns/a", "ns/web"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.Before(func(apitest.Request) (any, error) { return nil, errDown })
	if got := f.r.usersOf(t.Context(), version); got != nil {
		t.Errorf("Instances cannot be listed: %v", got)
	}
}

// TestForward checks that the events of the engine reach the controller, and that the end of the manager ends the wait for either.
func TestForward(t *testing.T) {
	from, to := make(chan types.NamespacedName), make(chan event.TypedGenericEvent[types.NamespacedName])
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	run := func() { ended <- forward(from, to).Start(ctx) }
	go run()
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	from <- key
	if got := <-to; got.Object != key {
		t.Errorf("forwarded %v", got)
	}
	from <- key // which is not taken
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	go run() // nothing comes
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
