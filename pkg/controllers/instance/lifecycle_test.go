package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/gen"
)

// TestDeploy: of a new Instance, the run is recorded, then committed, and only then anything is written; the record is not read back.
func TestDeploy(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	order := slices.DeleteFunc(f.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "watch ") || strings.HasPrefix(r, "get ") && !strings.HasPrefix(r, "get ControllerRevision")
	})
	want := []string{"create ControllerRevision ns/", "patch Instance ns/web/status", "apply ConfigMap ns/web-app-0", "patch Instance ns/web/status"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("requests: -want +got: %s", diff)
	}
	i := f.instance()
	base := i.Status.Baseline
	if base.OperatorVersion != "ns/web-1.0" || base.Revision != 1 || base.RunAs != "ns/kudo" || base.Snapshot != "web-1" || !strings.HasPrefix(base.ContentHash, "1.") {
		t.Errorf("baseline %+v", base)
	}
	if resources := i.Status.Resources; len(resources) != 1 || resources[0].UID == "" || resources[0].Hash == "" {
		t.Errorf("inventory %+v", resources)
	}
	if got := f.ready(); got != "True ResourcesReady" || i.Status.ObservedGeneration != 1 || i.Status.AggregatedStatus != (v1beta1.AggregatedStatus{Status: v1beta1.Complete}) {
		t.Errorf("Ready is %q, generation %d, %+v", got, i.Status.ObservedGeneration, i.Status.AggregatedStatus)
	}
}

// TestIdle: an Instance of which nothing has changed costs no write, and is not polled.
func TestIdle(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.recorded()
	f.Requests()
	for range 3 {
		if result := f.reconcile(t); result.RequeueAfter != 0 {
			t.Errorf("it is reconciled again after %s", result.RequeueAfter)
		}
	}
	f.restart()
	f.reconcile(t)
	for _, r := range f.Requests() {
		if !strings.HasPrefix(r, "get ") && !strings.HasPrefix(r, "watch ") {
			t.Errorf("it costs a request: %s", r)
		}
	}
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("events %q", got)
	}
}

// TestUpdate: a change of a parameter starts a run that has the new value and refers to the snapshot of the run before.
func TestUpdate(t *testing.T) {
	f := newFixture(t, gen.Serial("update", "app"))
	f.settle(t)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"VALUE": "2", "UNKNOWN": "x"} })
	f.recorded()
	f.settle(t)
	i := f.instance()
	if st := i.Status.PlanStatus["update"]; st.Revision != 2 || st.Status != v1beta1.Complete {
		t.Errorf("plan update is %+v", st)
	}
	record, err := f.r.History.Read(t.Context(), i, 2)
	if err != nil || record.Snapshot != "web-1" || len(record.Spec) > 0 || record.Upgrade || record.Cause != "parameters changed: VALUE" {
		t.Errorf("the record is %+v (%v)", record, err)
	}
	config := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}
	f.Read(config)
	if config.Data["key"] != "2" {
		t.Errorf("the object has %v", config.Data)
	}
	const ignored = "Warning UnknownParameter spec.parameters UNKNOWN are not defined by OperatorVersion ns/web-1.0 and ignored: remove or correct them"
	if got := f.recorded(); count(got, ignored) != 1 {
		t.Errorf("events %q", got)
	}
	f.change(func(i *v1beta1.Instance) { i.Annotations = texts{"a": "b"} })
	f.settle(t)
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("the same generation has the events %q again", got)
	}
}

// TestUpgrade: the first run of another version holds its snapshot, and prunes at its end what the version does not name any more.
func TestUpgrade(t *testing.T) {
	f := newFixture(t, gen.ConfigMaps("old", 2), gen.Serial("deploy", "app", "old"))
	f.settle(t)
	kept := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-old-1")}
	f.Read(kept)
	kept.Annotations[v1beta1.KeepAnnotation] = ""
	f.Put(kept)
	f.Put(webVersion("web-2.0"))
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
	f.recorded()
	f.settle(t)
	i := f.instance()
	if base := i.Status.Baseline; base.OperatorVersion != "ns/web-2.0" || base.Snapshot != "web-2" {
		t.Errorf("baseline %+v", base)
	}
	if f.Get(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-old-0")}) != nil || f.Get(kept) == nil {
		t.Error("what the version does not name is deleted, unless it is annotated")
	}
	if len(i.Status.Resources) != 1 || i.Status.Resources[0].Name != "web-app-0" {
		t.Errorf("inventory %+v", i.Status.Resources)
	}
	want := []string{
		"Normal PlanStarted Execution of plan deploy started",
		"Normal ResourcePruned ConfigMap ns/web-old-0 is no longer part of the operator and was deleted",
		"Normal ResourceKept ConfigMap ns/web-old-1 is no longer part of the operator and was kept: it is annotated kudo.dev/keep",
		"Normal PlanFinished Execution of plan deploy finished with status COMPLETE",
	}
	got := f.recorded()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestPruneOfUnknownNames: an upgrade whose version names objects that cannot be rendered deletes nothing.
func TestPruneOfUnknownNames(t *testing.T) {
	f := newFixture(t, gen.ConfigMaps("old", 1), gen.Serial("deploy", "app", "old"))
	f.settle(t)
	f.Put(webVersion("web-2.0", gen.Template("broken.yaml", "{{ .Params.NONE }}"), gen.Apply("broken", "broken.yaml"), gen.Serial("other", "broken")))
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
	f.recorded()
	f.settle(t)
	if st := f.instance().Status; st.PlanStatus["deploy"].Status != v1beta1.Complete || len(st.Resources) != 2 {
		t.Errorf("plan deploy is %s, inventory %+v", st.PlanStatus["deploy"].Status, st.Resources)
	}
	const keeps = "Warning ResourceKept objects of the old version were kept, since the objects of the new version cannot be determined: "
	if got := f.recorded(); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, keeps) }) {
		t.Errorf("events %q", got)
	}
	if f.Get(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-old-0")}) == nil {
		t.Error("an object of the old version was deleted")
	}
}

// TestCancel: the annotation ends the run that it names, and no other.
func TestCancel(t *testing.T) {
	f := newFixture(t, waiting)
	f.settle(t)
	cancel := func(uid string) {
		f.change(func(i *v1beta1.Instance) { i.Annotations = texts{v1beta1.CancelAnnotation: uid} })
	}
	for _, uid := range []string{"", "other"} {
		cancel(uid)
		if result := f.settle(t); result.RequeueAfter > loop.RecheckInterval || !f.instance().Status.PlanStatus["deploy"].Status.IsRunning() {
			t.Fatalf("the uid %q ends the run", uid)
		}
	}
	f.recorded()
	cancel(string(f.instance().Status.PlanStatus["deploy"].UID))
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || st.Message != "cancelled" || st.Revision != 1 {
		t.Errorf("plan deploy is %+v", st)
	}
	if got := f.recorded(); count(got, "Normal PlanCancelled Execution of plan deploy was cancelled") != 1 {
		t.Errorf("events %q", got)
	}
	if got := conditionText(f.instance(), v1beta1.StalledCondition); got != "True PlanInFatalError plan deploy failed: cancelled" {
		t.Errorf("Stalled is %q", got)
	}
	f.recorded()
	f.settle(t)
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("the annotation that stays has the events %q", got)
	}
}

// TestRetry: the annotation runs the failed run again that it names, as what it was, and once.
func TestRetry(t *testing.T) {
	f := newFixture(t, waiting)
	f.settle(t)
	uid := string(f.instance().Status.PlanStatus["deploy"].UID)
	f.change(func(i *v1beta1.Instance) { i.Annotations = texts{v1beta1.RetryAnnotation: uid} })
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; st.Revision != 1 {
		t.Fatalf("a run that has not ended is retried: %+v", st)
	}
	f.change(func(i *v1beta1.Instance) { i.Annotations[v1beta1.CancelAnnotation] = uid })
	for range 3 {
		f.settle(t)
	}
	i := f.instance()
	if st := i.Status.PlanStatus["deploy"]; st.Revision != 2 || !st.Status.IsRunning() {
		t.Fatalf("plan deploy is %+v", st)
	}
	record, err := f.r.History.Read(t.Context(), i, 2)
	if err != nil || record.Cause != "retry of run 1" || record.Upgrade {
		t.Errorf("the record is %+v (%v)", record, err)
	}
}

// TestSuspend: spec.suspend starts a run, unless the Instance never ran, and taking it back starts another one.
func TestSuspend(t *testing.T) {
	f := newFixture(t)
	f.change(func(i *v1beta1.Instance) { i.Spec.Suspend = true })
	f.settle(t)
	if base := f.instance().Status.Baseline; base.Revision != 1 || !base.Suspended {
		t.Fatalf("baseline %+v", base)
	}
	for revision, tc := range []struct {
		suspend bool
		cause   string
	}{{false, "spec.suspend taken back"}, {true, "spec.suspend set"}} {
		f.change(func(i *v1beta1.Instance) { i.Spec.Suspend = tc.suspend })
		f.settle(t)
		i := f.instance()
		record, err := f.r.History.Read(t.Context(), i, int64(revision)+2)
		if err != nil || record.Cause != tc.cause || record.Suspend != tc.suspend || i.Status.Baseline.Suspended != tc.suspend {
			t.Errorf("suspend %t: the record is %+v (%v), baseline %+v", tc.suspend, record, err, i.Status.Baseline)
		}
	}
}

// TestRetryRequest: the annotation asks for nothing but a failed run of a plan that Instances run and the version still has.
func TestRetryRequest(t *testing.T) {
	failed := func(status v1beta1.ExecutionStatus) v1beta1.PlanStatus {
		return v1beta1.PlanStatus{Status: status, UID: "uid", Revision: 7}
	}
	for _, tc := range []struct {
		reason, annotation string
		plans              map[string]v1beta1.PlanStatus
		want               *trigger.Request
	}{
		{"it names a failed run", "uid", map[string]v1beta1.PlanStatus{"deploy": failed(v1beta1.FatalError)}, &trigger.Request{Plan: "deploy", Cause: "retry of run 7"}},
		{"there is no annotation", "", map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.FatalError}}, nil},
		{"it names a run that is complete", "uid", map[string]v1beta1.PlanStatus{"deploy": failed(v1beta1.Complete)}, nil},
		{"it names another run", "other", map[string]v1beta1.PlanStatus{"deploy": failed(v1beta1.FatalError)}, nil},
		{"it names a run of the cleanup plan", "uid", map[string]v1beta1.PlanStatus{"cleanup": failed(v1beta1.FatalError)}, nil},
		{"it names a run of a plan that the version does not have", "uid", map[string]v1beta1.PlanStatus{"backup": failed(v1beta1.FatalError)}, nil},
	} {
		f := newFixture(t, cleansUp)
		f.change(func(i *v1beta1.Instance) {
			i.Status.PlanStatus = tc.plans
			if tc.annotation != "" {
				i.Annotations = texts{v1beta1.RetryAnnotation: tc.annotation}
			}
		})
		got, err := f.action(t).retryRequest(t.Context())
		if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(trigger.Request{})); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got: %s", tc.reason, err, diff)
		}
	}
}

// TestSuspendRequest: an Instance that has run asks for a plan if spec.suspend is not what its last run was started with.
func TestSuspendRequest(t *testing.T) {
	ran := func(suspended bool) *v1beta1.Baseline { return &v1beta1.Baseline{Revision: 1, Suspended: suspended} }
	for _, tc := range []struct {
		reason  string
		base    *v1beta1.Baseline
		suspend bool
		plans   string
		want    *trigger.Request
	}{
		{"it is set", ran(false), true, "deploy update", &trigger.Request{Plan: "update", Cause: "spec.suspend set"}},
		{"it is taken back", ran(true), false, "deploy update", &trigger.Request{Plan: "update", Cause: "spec.suspend taken back"}},
		{"the version has no plan update", ran(false), true, "deploy", &trigger.Request{Plan: "deploy", Cause: "spec.suspend set"}},
		{"the version has neither", ran(false), true, "backup upgrade", nil},
		{"it is as the last run has it", ran(true), true, "deploy", nil},
		{"it never ran", nil, true, "deploy", nil},
		{"it comes from KUDO, and nothing was recorded", &v1beta1.Baseline{}, true, "deploy", nil},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), nil)
		i.Spec.Suspend, i.Status.Baseline = tc.suspend, tc.base
		spec := &v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{}}
		for _, name := range strings.Fields(tc.plans) {
			spec.Plans[name] = v1beta1.Plan{}
		}
		a := pure(i)
		a.content = &runner.ParsedVersion{Spec: spec}
		if diff := cmp.Diff(tc.want, a.suspendRequest(), cmpopts.IgnoreUnexported(trigger.Request{})); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}
