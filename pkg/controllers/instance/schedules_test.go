package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans/schedule"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// failing is a template that cannot be rendered.
const failing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ fail \"no space left\" }}'}\n"

// newScheduled starts a fixture whose plan backup runs each hour, and whose plan endless never ends. The Instance was deployed.
func newScheduled(t *testing.T, mods ...gen.VersionMod) *fixture {
	t.Helper()
	all := []gen.VersionMod{gen.ConfigMaps("save", 1), gen.Serial("backup", "save"), gen.Task("wait", v1beta1.DummyTask, v1beta1.TaskSpec{}),
		gen.Serial("endless", "wait"), gen.Serial("update", "app"), gen.Serial("check", "app")}
	f := newFixture(t, append(all, mods...)...)
	f.settle(t)
	f.schedule(v1beta1.Schedule{Name: "hourly", Plan: "backup", Cron: "0 * * * *"})
	f.settle(t)
	f.recorded()
	return f
}

// schedule gives the Instance schedules.
func (f *fixture) schedule(all ...v1beta1.Schedule) {
	f.change(func(i *v1beta1.Instance) { i.Spec.Schedules = all })
}

// request returns a change that asks for a run of a plan.
func request(plan string, uid types.UID) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: uid} }
}

// template changes a template of the OperatorVersion in place.
func (f *fixture) template(name, text string) {
	ov := &v1beta1.OperatorVersion{ObjectMeta: gen.Meta("ns", "web-1.0")}
	f.Read(ov)
	ov.Spec.Templates[name] = text
	ov.Generation++
	f.Put(ov)
}

// later sets the clock ahead, and reconciles.
func (f *fixture) later(t *testing.T, d time.Duration) {
	t.Helper()
	f.clock.Step(d)
	f.settle(t)
}

// scheduleStatus is the status of the first schedule in short: run, result, last and next.
func (f *fixture) scheduleStatus() string {
	text := func(at *metav1.Time) string {
		if at == nil {
			return "-"
		}
		return at.UTC().Format("15:04")
	}
	all := f.instance().Status.Schedules
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("run %d %s last %s next %s", all[0].LastRun, all[0].LastResult, text(all[0].Last), text(all[0].Next))
}

// causes lists the runs that were started, by plan and cause.
func (f *fixture) causes(t *testing.T) []string {
	t.Helper()
	i := f.instance()
	var out []string
	for n := int64(1); n <= i.Status.Baseline.Revision; n++ {
		record, err := f.r.History.Read(t.Context(), i, n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSuffix(record.Plan+": "+record.Cause+"; by "+record.RequestedBy, "; by "))
	}
	return out
}

// TestScheduledRun: G1, what is due is run once, and the reconcile after the run is the next time.
func TestScheduledRun(t *testing.T) {
	f := newScheduled(t)
	if got, want := f.scheduleStatus(), "run 0  last - next 04:00"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	f.clock.SetTime(time.Date(2026, 1, 2, 3, 59, 0, 0, time.UTC))
	if result := f.settle(t); result.RequeueAfter != time.Minute {
		t.Errorf("the next reconcile is after %s, want a minute", result.RequeueAfter)
	}
	f.later(t, time.Minute)
	if got, want := f.scheduleStatus(), "run 2 COMPLETE last 04:00 next 05:00"; got != want {
		t.Errorf("after: %s, want %s", got, want)
	}
	f.later(t, 10*time.Second)
	f.restart()
	f.settle(t)
	if diff := cmp.Diff([]string{"deploy: instance created", "backup: schedule hourly"}, f.causes(t)); diff != "" {
		t.Errorf("runs: -want +got: %s", diff)
	}
	i := f.instance()
	if st := i.Status.PlanStatus["backup"]; !st.Scheduled || st.Counted != nil || i.Status.Schedules[0].LastSuccess == nil {
		t.Errorf("status: %+v, %+v", st, i.Status.Schedules[0])
	}
}

// TestScheduleMissed: K31, a manager that was away over three times starts one run.
func TestScheduleMissed(t *testing.T) {
	f := newScheduled(t)
	f.restart()
	f.r.ticks = ticks{}
	f.later(t, 3*time.Hour)
	f.later(t, time.Minute)
	if got, want := f.scheduleStatus(), "run 2 COMPLETE last 06:00 next 07:00"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestScheduleFails: K31, a failed run changes neither Ready nor Stalled, and is over once the plan was complete.
func TestScheduleFails(t *testing.T) {
	f := newScheduled(t, gen.Template("save-0.yaml", failing))
	f.later(t, time.Hour)
	i := f.instance()
	if got := f.ready(); got != "True ResourcesReady" || conditionText(i, v1beta1.StalledCondition) != "" || i.Status.AggregatedStatus.Status != v1beta1.Complete {
		t.Errorf("ready is %q, %+v", got, i.Status)
	}
	failed := conditionText(i, v1beta1.ScheduleFailedCondition)
	if !strings.HasPrefix(failed, "True ScheduledRunFailed schedule hourly: run 2 of plan backup failed: ") || !strings.Contains(failed, "no space left") {
		t.Errorf("the condition is %q", failed)
	}
	if events := f.recorded(); !slices.ContainsFunc(events, func(e string) bool {
		return strings.HasPrefix(e, "Warning ScheduleFailed Schedule hourly failed: run 2 of plan backup: ")
	}) {
		t.Errorf("events: %q", events)
	}
	f.template("save-0.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: saved}\n")
	f.later(t, time.Hour)
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); got != "" {
		t.Errorf("after a complete run, the condition is %q", got)
	}
}

// TestScheduleHidesNothing: a run of a schedule that is complete does not hide that another plan has failed.
func TestScheduleHidesNothing(t *testing.T) {
	f := newScheduled(t)
	f.template("app-0.yaml", failing)
	f.change(parameter("VALUE", "2"))
	f.settle(t)
	before := []string{f.ready(), conditionText(f.instance(), v1beta1.StalledCondition)}
	if !strings.HasPrefix(before[1], "True PlanInFatalError plan update failed") {
		t.Fatalf("conditions: %q", before)
	}
	f.later(t, time.Hour)
	if got := f.scheduleStatus(); !strings.HasPrefix(got, "run 3 COMPLETE") {
		t.Errorf("the schedule is %s", got)
	}
	if diff := cmp.Diff(before, []string{f.ready(), conditionText(f.instance(), v1beta1.StalledCondition)}); diff != "" {
		t.Errorf("conditions: -before +after: %s", diff)
	}
}

// TestScheduleAfterFailure: a run of a schedule counts in place of a run of the same plan by hand that has failed.
func TestScheduleAfterFailure(t *testing.T) {
	f := newScheduled(t, gen.Template("save-0.yaml", failing))
	f.change(request("backup", "1"))
	f.settle(t)
	for _, step := range []struct {
		reason, template, ready string
	}{
		{"the schedule fails, too", failing, "False PlanInFatalError"},
		{"the schedule is complete", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: saved}\n", "True ResourcesReady"},
		{"it fails again, which does not count", failing, "True ResourcesReady"},
	} {
		f.template("save-0.yaml", step.template)
		f.later(t, time.Hour)
		if got := f.ready(); !strings.HasPrefix(got, step.ready) {
			t.Errorf("%s: ready is %q, want %q", step.reason, got, step.ready)
		}
	}
}

// TestScheduleShowsNothingOld: a complete run of a schedule does not bring back a failure that a later run by hand has mended.
func TestScheduleShowsNothingOld(t *testing.T) {
	f := newScheduled(t, gen.ConfigMaps("bad", 1), gen.Serial("other", "bad"), gen.Template("bad-0.yaml", failing))
	for _, plan := range []string{"other", "backup"} {
		f.change(func(i *v1beta1.Instance) {
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(plan)}
		})
		f.settle(t)
	}
	for range 2 {
		f.later(t, time.Hour)
		if got := f.ready(); got != "True ResourcesReady" || conditionText(f.instance(), v1beta1.StalledCondition) != "" {
			t.Errorf("ready is %q", got)
		}
	}
}

// TestScheduleAfterMendedDeploy: a package whose deploy has failed, and whose update has mended it, has its schedules.
func TestScheduleAfterMendedDeploy(t *testing.T) {
	f := newScheduled(t, gen.Serial("update", "save"), gen.Template("app-0.yaml", failing))
	if got := f.ready(); !strings.HasPrefix(got, "False PlanInFatalError") || f.scheduleStatus() != "run 0  last - next -" {
		t.Fatalf("deploy: %s, %s", got, f.scheduleStatus())
	}
	f.change(request("update", "1"))
	f.settle(t)
	f.later(t, time.Hour)
	if got, want := f.scheduleStatus(), "run 3 COMPLETE last 04:00 next 05:00"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestScheduleOfFailedUpgrade: no other plan than that of the upgrade ends the upgrade, and the schedules that wait for it say so.
func TestScheduleOfFailedUpgrade(t *testing.T) {
	f := newScheduled(t)
	next := webVersion("web-2.0", gen.ConfigMaps("bad", 1), gen.Serial("upgrade", "bad"), gen.Template("bad-0.yaml", failing),
		gen.ConfigMaps("save", 1), gen.Serial("backup", "save"), gen.Serial("update", "app"))
	f.Put(next)
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
	f.settle(t)
	for n, change := range []func(*v1beta1.Instance){
		func(i *v1beta1.Instance) { i.Spec.Suspend = true },
		func(i *v1beta1.Instance) { i.Spec.Suspend = false },
		parameter("VALUE", "2"),
		request("backup", "1"),
	} {
		f.change(change)
		f.settle(t)
		if !f.instance().Status.Baseline.UpgradeIncomplete {
			t.Errorf("change %d has ended the upgrade", n)
		}
	}
	f.later(t, time.Hour)
	want := "True InvalidSchedule schedule hourly: plan backup is due and cannot be started: the upgrade to OperatorVersion ns/web-2.0 is not complete: "
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); !strings.HasPrefix(got, want) {
		t.Errorf("the condition is %q, want %q", got, want)
	}
	f.Read(next)
	next.Spec.Templates["bad-0.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n"
	next.Generation++
	f.Put(next)
	f.change(request("upgrade", "2"))
	f.settle(t)
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); got != "" || !strings.Contains(f.scheduleStatus(), "COMPLETE last 04:00") {
		t.Errorf("after the upgrade: %q, %s", got, f.scheduleStatus())
	}
}

// TestScheduleHeld: K31, what is due stays due while an upgrade has not been completed, and is run once afterwards.
func TestScheduleHeld(t *testing.T) {
	f := newScheduled(t)
	next := webVersion("web-2.0", gen.ConfigMaps("save", 1), gen.Serial("backup", "save"), gen.Serial("update", "app"), gen.Template("app-0.yaml", failing))
	f.Put(next)
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
	f.settle(t)
	if !f.instance().Status.Baseline.UpgradeIncomplete {
		t.Fatalf("the upgrade: %+v", f.instance().Status.Baseline)
	}
	f.later(t, 3*time.Hour)
	if got, want := f.scheduleStatus(), "run 0  last - next 04:00"; got != want {
		t.Errorf("while it has failed: %s, want %s", got, want)
	}
	f.Read(next)
	next.Spec.Templates["app-0.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
	next.Generation++
	f.Put(next)
	f.change(func(i *v1beta1.Instance) {
		i.Annotations = texts{v1beta1.RetryAnnotation: string(i.Status.PlanStatus["update"].UID)}
	})
	f.settle(t)
	if got, want := f.scheduleStatus(), "run 4 COMPLETE last 06:00 next 07:00"; got != want {
		t.Errorf("after it: %s, want %s", got, want)
	}
}

// TestSchedulePlanRemoved: a version without the plan is named in the condition, and changes nothing else.
func TestSchedulePlanRemoved(t *testing.T) {
	f := newScheduled(t)
	f.Put(webVersion("web-2.0", gen.Serial("update", "app")))
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
	f.settle(t)
	f.later(t, time.Hour)
	want := `True InvalidSchedule schedule hourly: plan "backup" does not exist in the OperatorVersion (plans: [deploy update]): name one of them, or remove the schedule`
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); got != want {
		t.Errorf("the condition is %q, want %q", got, want)
	}
	if got := f.ready(); got != "True ResourcesReady" {
		t.Errorf("ready is %q", got)
	}
	f.schedule()
	f.settle(t)
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition) + f.scheduleStatus(); got != "" {
		t.Errorf("after its removal: %q", got)
	}
}

// TestScheduleOfNewInstance: the status that says that deploy is complete also says when the schedule is due, since people read the status
// after install --wait.
func TestScheduleOfNewInstance(t *testing.T) {
	f := newFixture(t, gen.ConfigMaps("save", 1), gen.Serial("backup", "save"))
	f.schedule(v1beta1.Schedule{Name: "hourly", Plan: "backup", Cron: "0 * * * *"})
	for range 20 {
		f.reconcile(t)
		if f.instance().Status.PlanStatus["deploy"].Status == v1beta1.Complete {
			break
		}
	}
	got, want := f.scheduleStatus(), "run 0  last - next "+f.clock.Now().UTC().Truncate(time.Hour).Add(time.Hour).Format("15:04")
	if got != want {
		t.Errorf("the schedule is %q, want %q", got, want)
	}
}

// TestScheduleQueues: what is due while a plan runs waits in the queue, at one place a plan.
func TestScheduleQueues(t *testing.T) {
	f := newScheduled(t)
	f.schedule(v1beta1.Schedule{Name: "hourly", Plan: "update", Cron: "0 * * * *"}, v1beta1.Schedule{Name: "again", Plan: "backup", Cron: "0 * * * *"},
		v1beta1.Schedule{Name: "third", Plan: "backup", Cron: "0 4 * * *"})
	f.settle(t)
	f.later(t, time.Hour)
	want := []string{"deploy: instance created", "update: schedule hourly", "backup: schedule again, third"}
	if diff := cmp.Diff(want, f.causes(t)); diff != "" {
		t.Errorf("runs: -want +got: %s", diff)
	}
	if got := f.ready(); got != "True ResourcesReady" {
		t.Errorf("ready is %q", got)
	}
}

// TestScheduleEndsEndless: a plan that is never done ends when another one is due, as it does for others that wait.
func TestScheduleEndsEndless(t *testing.T) {
	f := newScheduled(t)
	f.change(request("endless", "1"))
	f.settle(t)
	f.later(t, time.Hour)
	if got := f.scheduleStatus(); !strings.HasPrefix(got, "run 3 COMPLETE") {
		t.Errorf("the schedule is %s", got)
	}
	if got := f.ready(); got != "True ResourcesReady" || conditionText(f.instance(), v1beta1.StalledCondition) != "" {
		t.Errorf("no user has asked for the end, and ready is %q", got)
	}
}

// TestScheduleQueuedWithoutVersion: a plan that a schedule has queued makes a missing OperatorVersion no fault of the Instance.
func TestScheduleQueuedWithoutVersion(t *testing.T) {
	f := newScheduled(t)
	f.change(func(i *v1beta1.Instance) {
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "backup", Cause: "schedule hourly"}}
	})
	f.Remove(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta("ns", "web-1.0")})
	f.later(t, time.Hour)
	if got := f.ready(); got != "True ResourcesReady" {
		t.Errorf("ready is %q", got)
	}
	if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); !strings.Contains(got, "waits for OperatorVersion ns/web-1.0") {
		t.Errorf("the condition is %q", got)
	}
}

// TestScheduleConditionStays: the end of a requested run does not remove the condition and add it again, which would change its transition
// time.
func TestScheduleConditionStays(t *testing.T) {
	f := newScheduled(t)
	f.schedule(v1beta1.Schedule{Name: "x", Plan: "nope", Cron: "0 * * * *"})
	f.settle(t)
	hour := metav1.NewTime(time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC))
	f.change(func(i *v1beta1.Instance) {
		meta.FindStatusCondition(i.Status.Conditions, v1beta1.ScheduleFailedCondition).LastTransitionTime = hour
		i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "endless", UID: "u1"}
	})
	f.settle(t)
	f.change(func(i *v1beta1.Instance) {
		i.Annotations = texts{v1beta1.CancelAnnotation: string(i.Status.PlanStatus["endless"].UID)}
	})
	f.settle(t)
	i := f.instance()
	c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ScheduleFailedCondition)
	if c == nil || !c.LastTransitionTime.Equal(&hour) || i.Status.PlanStatus["endless"].Status != v1beta1.FatalError {
		t.Errorf("the condition is %+v", c)
	}
}

// TestScheduleTimer: if the time comes between the look at the schedules and the end of the reconcile, another one follows at once.
func TestScheduleTimer(t *testing.T) {
	next := metav1.NewTime(time.Unix(1000, 0))
	a := pure(&v1beta1.Instance{Status: v1beta1.InstanceStatus{Schedules: []v1beta1.ScheduleStatus{{Name: "a", Next: &next}}}})
	a.schedules.decided = time.Unix(999, 0)
	a.schedules.requeue()
	if a.result.RequeueAfter != time.Millisecond {
		t.Errorf("the next reconcile is after %s", a.result.RequeueAfter)
	}
}

// TestScheduleOfRunningPlan: what is due for the plan that runs does not restart it.
func TestScheduleOfRunningPlan(t *testing.T) {
	i := &v1beta1.Instance{Spec: v1beta1.InstanceSpec{Schedules: []v1beta1.Schedule{{Name: "a", Plan: "backup", Cron: "* * * * *"}}}}
	i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: i.OperatorVersionKey().String()}
	due := metav1.NewTime(time.Unix(960, 0))
	i.Status.Schedules = []v1beta1.ScheduleStatus{{Name: "a", Next: &due}}
	for _, tc := range []struct {
		reason  string
		start   *trigger.Request
		running bool
		queued  []v1beta1.QueuedPlan
		want    []string
	}{
		{"it runs", nil, true, nil, []string{"backup: schedule a"}},
		{"another one runs, and a user has asked for it", nil, true, []v1beta1.QueuedPlan{{PlanName: "backup", Cause: "asked"}}, []string{"backup: asked"}},
		{"it is started by hand", &trigger.Request{Plan: "backup", Cause: "asked"}, false, nil, nil},
		{"another one is started", &trigger.Request{Plan: "update"}, false, []v1beta1.QueuedPlan{{PlanName: "other"}}, []string{"other: ", "backup: schedule a"}},
		{"nothing runs", nil, false, nil, nil},
	} {
		a := pure(i.DeepCopy())
		a.running, a.start, a.decision = tc.running, tc.start, &trigger.Decision{Queue: tc.queued}
		a.content = &runner.ParsedVersion{Spec: &v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{"backup": {}}}}
		a.schedules.observe()
		a.queueDue()
		var got []string
		for _, q := range a.decision.Queue {
			got = append(got, q.PlanName+": "+q.Cause)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestScheduleRequester: no user has asked for a run of a schedule, and an edit of schedules starts nothing.
func TestScheduleRequester(t *testing.T) {
	f := newScheduled(t)
	f.changeAs(t, "ann", func(i *v1beta1.Instance) { i.Spec.Schedules[0].Cron = "30 * * * *" })
	f.settle(t)
	if got := f.instance().Status.Baseline.Revision; got != 1 {
		t.Errorf("the edit has started run %d", got)
	}
	f.clock.Step(time.Hour)
	f.changeAs(t, "bob", func(i *v1beta1.Instance) { i.Spec.Schedules[0].TimeZone = "UTC" })
	f.settle(t)
	f.changeAs(t, "eve", parameter("VALUE", "2"))
	f.settle(t)
	want := []string{"deploy: instance created", "backup: schedule hourly", "update: parameters changed: VALUE; by eve"}
	if diff := cmp.Diff(want, f.causes(t)); diff != "" {
		t.Errorf("runs: -want +got: %s", diff)
	}
}

// TestScheduleBlocked: the condition of schedules says what blocks their runs, and Ready does not.
func TestScheduleBlocked(t *testing.T) {
	for _, tc := range []struct {
		reason string
		block  func(*fixture)
		mend   func(*fixture)
		want   string
	}{
		{"the account does not exist", func(f *fixture) { f.Remove(account("ns", "kudo")) }, func(f *fixture) { f.Put(account("ns", "kudo")) },
			"schedule hourly: plan backup is due and cannot be started: waits for ServiceAccount ns/kudo"},
		{"the record cannot be made", func(f *fixture) { f.Put(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}) },
			func(f *fixture) { f.Remove(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}) },
			"schedule hourly: plan backup is due and cannot be started: ControllerRevision ns/web-2"},
		{"the OperatorVersion does not exist", func(f *fixture) { f.Remove(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta("ns", "web-1.0")}) },
			func(f *fixture) {
				f.Put(webVersion("web-1.0", gen.ConfigMaps("save", 1), gen.Serial("backup", "save")))
			}, "schedule hourly: plan backup is due and cannot be started: waits for OperatorVersion ns/web-1.0"},
	} {
		f := newScheduled(t)
		tc.block(f)
		f.later(t, time.Hour)
		if got := conditionText(f.instance(), v1beta1.ScheduleFailedCondition); !strings.Contains(got, tc.want) {
			t.Errorf("%s: the condition is %q, want %q", tc.reason, got, tc.want)
		}
		if got := f.ready(); got != "True ResourcesReady" {
			t.Errorf("%s: ready is %q", tc.reason, got)
		}
		tc.mend(f)
		f.settle(t)
		if got, want := f.scheduleStatus(), "run 2 COMPLETE last 04:00 next 05:00"; got != want || conditionText(f.instance(), v1beta1.ScheduleFailedCondition) != "" {
			t.Errorf("%s: afterwards: %s, want %s", tc.reason, got, want)
		}
	}
}

// TestSchedulePlace: what finds no place waits, and is run once when there is one. What waits is not reconciled meanwhile.
func TestSchedulePlace(t *testing.T) {
	f := newScheduled(t)
	var enqueued []types.NamespacedName
	f.r.ScheduledRuns, f.r.Enqueue = 1, func(key types.NamespacedName) { enqueued = append(enqueued, key) }
	other := gen.Instance("other", webVersion("web-1.0"), nil)
	f.clock.Step(time.Hour)
	started := metav1.NewMicroTime(f.clock.Now())
	other.Status.PlanStatus = map[string]v1beta1.PlanStatus{"backup": {Name: "backup", Status: v1beta1.InProgress, Scheduled: true, StartedTimestamp: &started}}
	f.Put(other)
	if result := f.settle(t); result.RequeueAfter != maxOccupancy || len(f.instance().Status.Queue) != 0 {
		t.Errorf("while it waits: %+v, %+v", result, f.instance().Status.Queue)
	}
	f.later(t, 59*time.Minute)
	if got, want := f.scheduleStatus(), "run 0  last - next 04:00"; got != want || len(enqueued) != 0 {
		t.Errorf("while it waits: %s, want %s (%v)", got, want, enqueued)
	}
	f.r.forget(types.NamespacedName{Namespace: "ns", Name: "other"})
	if diff := cmp.Diff([]types.NamespacedName{f.key()}, enqueued); diff != "" {
		t.Errorf("enqueued: -want +got: %s", diff)
	}
	f.settle(t)
	if got, want := f.scheduleStatus(), "run 2 COMPLETE last 05:00 next 06:00"; got != want {
		t.Errorf("afterwards: %s, want %s", got, want)
	}
}

// TestSchedulePlaceOfLongRun: a run that takes more than an hour leaves its place to another Instance.
func TestSchedulePlaceOfLongRun(t *testing.T) {
	f := newScheduled(t)
	f.r.ScheduledRuns = 1
	other := gen.Instance("other", webVersion("web-1.0"), nil)
	other.Namespace = "elsewhere"
	other.Status.PlanStatus = map[string]v1beta1.PlanStatus{"backup": {Name: "backup", Status: v1beta1.InProgress, Scheduled: true}}
	f.Put(other)
	f.later(t, time.Hour)
	if got, want := f.scheduleStatus(), "run 2 COMPLETE last 04:00 next 05:00"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSchedulePlaceKept: a failed reconcile does not cost an Instance its place on the waiting list.
func TestSchedulePlaceKept(t *testing.T) {
	f := newScheduled(t)
	f.r.places.seed(nil, f.clock.Now())
	for _, name := range []string{"web", "later"} {
		f.r.places.take(types.NamespacedName{Namespace: "ns", Name: name}, 0, f.clock.Now())
	}
	failures := 0
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "OperatorVersion" {
			failures++
			return nil, errors.New("etcd is slow")
		}
		return nil, nil
	})
	if _, err := f.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key()}); err != nil || failures == 0 {
		t.Fatalf("%d requests have failed (%v)", failures, err)
	}
	if got := listed(f.r.places.next(1, f.clock.Now())); got != "ns/web" {
		t.Errorf("next is %s", got)
	}
}

// TestScheduleForged: whoever writes the status cannot have a plan run more often than its schedule says.
func TestScheduleForged(t *testing.T) {
	f := newScheduled(t)
	f.later(t, time.Hour)
	past := metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	for _, forge := range []func(*v1beta1.ScheduleStatus){
		func(s *v1beta1.ScheduleStatus) { s.Next = &past },
		func(s *v1beta1.ScheduleStatus) { s.Last, s.Next = nil, &past },
		func(s *v1beta1.ScheduleStatus) {
			now := metav1.NewTime(f.clock.Now())
			s.Last, s.Next = nil, &now
		},
		func(s *v1beta1.ScheduleStatus) { *s = v1beta1.ScheduleStatus{Name: "hourly"} },
	} {
		f.change(func(i *v1beta1.Instance) { forge(&i.Status.Schedules[0]) })
		f.settle(t)
	}
	if got := f.instance().Status.Baseline.Revision; got != 2 {
		t.Errorf("there are %d runs, want 2", got)
	}
	if got := f.instance().Status.Schedules[0].Next; got.UTC().Hour() != 5 {
		t.Errorf("next is %s", got)
	}
}

// TestTicks: what this process remembers is of one Instance, and not of another one of the same name.
func TestTicks(t *testing.T) {
	var known ticks
	key, now := types.NamespacedName{Namespace: "ns", Name: "web"}, time.Unix(1000, 0)
	all := func(string) bool { return true }
	known.add(key, "a", []schedule.Due{{Name: "x", Time: now}, {Name: "removed", Time: now}}, all)
	known.add(key, "a", []schedule.Due{{Name: "y", Time: now.Add(time.Hour)}}, func(name string) bool { return name != "removed" })
	if diff := cmp.Diff(map[string]time.Time{"x": now, "y": now.Add(time.Hour)}, known.of(key, "a")); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := known.of(key, "b"); got != nil {
		t.Errorf("another Instance has %v", got)
	}
	known.add(key, "b", []schedule.Due{{Name: "x", Time: now}}, all)
	if got := known.of(key, "a"); got != nil {
		t.Errorf("the former Instance has %v", got)
	}
	known.forget(key)
	if got := known.of(key, "b"); got != nil {
		t.Errorf("after its end, there is %v", got)
	}
}

// TestScheduleOfDeleted: an Instance that is being deleted is not reconciled for its schedules.
func TestScheduleOfDeleted(t *testing.T) {
	next := metav1.NewTime(time.Unix(1060, 0))
	a := pure(&v1beta1.Instance{Status: v1beta1.InstanceStatus{Schedules: []v1beta1.ScheduleStatus{{Name: "a", Next: &next}}}})
	a.schedules.requeue()
	if a.result.RequeueAfter != time.Minute {
		t.Errorf("a living one is reconciled after %s", a.result.RequeueAfter)
	}
	a.result.RequeueAfter = time.Second
	a.schedules.requeue()
	if a.result.RequeueAfter != time.Second {
		t.Errorf("an earlier request for a reconcile is after %s", a.result.RequeueAfter)
	}
	a.result.RequeueAfter, a.Next.DeletionTimestamp = 0, &next
	a.schedules.requeue()
	if a.result.RequeueAfter != 0 {
		t.Errorf("a deleted one is reconciled after %s", a.result.RequeueAfter)
	}
}
