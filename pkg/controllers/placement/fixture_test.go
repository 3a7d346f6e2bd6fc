package placement

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// engine is an Engine in memory, which shows what a test says.
type engine struct {
	shown clusters.Observation
	// left are the clusters that have a copy left.
	left []string
	// errors of the methods.
	errPlace, errObserve, errRemove error
	placed                          []clusters.Placed
	log                             func(format string, args ...any)
	events                          chan types.NamespacedName
}

// Place notes what each cluster gets: its name, and the template that it may act upon.
func (e *engine) Place(_ context.Context, placed clusters.Placed) error {
	var targets []string
	for _, t := range placed.Clusters {
		targets = append(targets, t.Name+":"+t.Released)
	}
	e.log("place %s", strings.Join(targets, " "))
	e.placed = append(e.placed, placed)
	return e.errPlace
}

func (e *engine) Observe(context.Context, *v1beta1.Instance) (clusters.Observation, error) {
	e.log("observe")
	return e.shown, e.errObserve
}

func (e *engine) Remove(context.Context, *v1beta1.Instance) ([]string, error) {
	e.log("remove")
	return e.left, e.errRemove
}

func (e *engine) Events() <-chan types.NamespacedName { return e.events }

func (e *engine) Access(context.Context, string) (*rest.Config, error) { return nil, nil }

// fixture is a controller on an API server in memory, with Instance ns/web, of uid u, on clusters m1 to m3.
type fixture struct {
	*apitest.Server
	t      *testing.T
	r      *Reconciler
	loop   *loop.Reconciler[*v1beta1.Instance]
	engine *engine
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	// log has what was asked of the engine and written to the API server, in order.
	log []string
}

func newFixture(t *testing.T, waves *v1beta1.Waves) *fixture {
	t.Helper()
	version := gen.Version("ns", "web-1.0", gen.Param("REPLICAS", "6", ""), gen.Param("REGION", "eu-1", ""))
	instance := gen.Instance("web", version, map[string]string{"REPLICAS": "6"})
	instance.UID, instance.Generation = "u", 1
	instance.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}, Waves: waves}
	f := &fixture{
		Server: apitest.Start(t, version, instance), t: t, events: record.NewFakeRecorder(100),
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	f.engine = &engine{events: make(chan types.NamespacedName)}
	f.engine.log = func(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }
	f.Before(f.note)
	f.r = &Reconciler{Client: f.Client(), Reader: f.Client(), Engine: f.engine, Events: f.events, Clock: f.clock}
	f.loop = f.r.loop()
	f.settle()
	return f
}

// note is a hook that logs what changes an object.
func (f *fixture) note(r apitest.Request) (any, error) {
	if r.Verb == "patch" || r.Verb == "update" {
		f.engine.log("%s", r)
	}
	return nil, nil
}

// settle has the engine show that it has acted upon what was placed, without a report of any cluster.
func (f *fixture) settle() {
	f.engine.shown = clusters.Observation{Settled: true, Bound: map[string]*int64{}, Members: map[string]clusters.Member{}}
	for _, name := range []string{"m1", "m2", "m3"} {
		f.engine.shown.Bound[name] = nil
		f.engine.shown.Members[name] = clusters.Member{Applied: true}
	}
}

// show has the engine show reports of clusters that are ready with the template, apart from what a test changes.
func (f *fixture) show(template string, edit func(r *clusters.Report), names ...string) {
	for _, name := range names {
		report := clusters.Report{Template: template, Released: template, Generation: 1, ObservedGeneration: 1, Ready: metav1.ConditionTrue, Plan: "deploy",
			PlanStatus: v1beta1.Complete, OperatorVersion: "ns/web-1.0"}
		if edit != nil {
			edit(&report)
		}
		f.engine.shown.Members[name] = clusters.Member{Applied: true, Report: &report}
	}
}

func failed(r *clusters.Report) { r.PlanStatus, r.Ready = v1beta1.FatalError, metav1.ConditionFalse }

// instance reads the Instance as it is stored.
func (f *fixture) instance() *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "web")}
	f.Read(i)
	return i
}

// change changes the Instance as another client would.
func (f *fixture) change(edit func(i *v1beta1.Instance)) {
	i := f.instance()
	edit(i)
	f.Put(i)
}

// reconcile reconciles the Instance once, and returns what follows, what was done and the events.
func (f *fixture) reconcile() (result ctrl.Result, done, events []string) {
	f.t.Helper()
	result, err := f.loop.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}})
	if err != nil {
		f.t.Fatal(err)
	}
	done, f.log = f.log, nil
	for len(f.events.Events) > 0 {
		events = append(events, <-f.events.Events)
	}
	return result, done, events
}

// expect reconciles the Instance once, and compares what was done.
func (f *fixture) expect(reason string, want ...string) {
	f.t.Helper()
	_, done, _ := f.reconcile()
	if diff := cmp.Diff(want, done); diff != "" {
		f.t.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// step reconciles the Instance, and compares the wave and the clusters that are released.
func (f *fixture) step(reason string, index int32, state v1beta1.WaveState, released string) ctrl.Result {
	f.t.Helper()
	result, _, _ := f.reconcile()
	wave := f.instance().Status.Wave
	if wave == nil || wave.Index != index || wave.State != state {
		f.t.Fatalf("%s: wave %+v, want %d %s", reason, wave, index, state)
	}
	if got := f.released(); got != released {
		f.t.Fatalf("%s: released %q, want %q", reason, got, released)
	}
	return result
}

// released returns the clusters that were released when the Instance was placed last.
func (f *fixture) released() string {
	var names []string
	for _, target := range f.engine.placed[len(f.engine.placed)-1].Clusters {
		if target.Released != "" {
			names = append(names, target.Name)
		}
	}
	return strings.Join(names, " ")
}

// condition returns a condition of the Instance in short; "" if it is not there.
func (f *fixture) condition(kind string) string {
	c := meta.FindStatusCondition(f.instance().Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
}

// expectCondition compares the beginning of a condition; "" if it is not to be there.
func (f *fixture) expectCondition(reason, kind, want string) {
	f.t.Helper()
	if got := f.condition(kind); !strings.HasPrefix(got, want) || want == "" && got != "" {
		f.t.Errorf("%s: condition %s is %q, want %q", reason, kind, got, want)
	}
}
