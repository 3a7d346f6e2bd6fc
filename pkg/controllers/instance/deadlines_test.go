package instance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// newEndless starts a fixture whose plans deploy and cleanup never end, with deadlines.
func newEndless(t *testing.T, all ...v1beta1.Deadline) *fixture {
	t.Helper()
	f := newFixture(t, gen.Task("wait", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("deploy", "wait", "app"), gen.Serial("cleanup", "wait"),
		gen.Serial("backup", "app"))
	f.change(func(i *v1beta1.Instance) { i.Spec.Deadlines = all })
	f.settle(t)
	return f
}

// deploying returns the status of the plan deploy.
func (f *fixture) deploying() v1beta1.PlanStatus { return f.instance().Status.PlanStatus["deploy"] }

// TestDeadlineTimer (P19): the Instance is reconciled when a deadline passes, by a manager that was started in between, too; then the
// step fails and nothing is written any more. A new deadline starts no run.
func TestDeadlineTimer(t *testing.T) {
	d := v1beta1.Deadline{Plan: "deploy", Step: "main/step-0", After: "3s", Then: v1beta1.DeadlineWarn}
	f := newEndless(t, d)
	if got := f.reconcile(t).RequeueAfter; got <= 0 || got > 3*time.Second {
		t.Errorf("the next reconcile is in %s, and the deadline in 3s", got)
	}
	f.recorded()
	f.restart()
	f.later(t, 3*time.Second)
	if st := f.deploying(); st.Status != v1beta1.InProgress || !strings.HasSuffix(st.Message, "(past the deadline of 3s)") {
		t.Errorf("after the deadline, the plan is %s: %q", st.Status, st.Message)
	}
	if got := f.recorded(); count(got, "Warning DeadlineExceeded Plan deploy: past the deadline of 3s") != 1 {
		t.Errorf("events: %q", got)
	}
	before := f.instance().ResourceVersion
	f.restart()
	f.later(t, time.Minute)
	if got := f.recorded(); len(got) > 0 || f.instance().ResourceVersion != before {
		t.Errorf("a deadline that has passed is written again; events %q", got)
	}
	d.Then, d.After = v1beta1.DeadlineFail, "30s"
	f.change(func(i *v1beta1.Instance) { i.Spec.Deadlines = []v1beta1.Deadline{d} })
	f.settle(t)
	if st := f.deploying(); st.Status != v1beta1.FatalError || !strings.HasPrefix(st.Message, "step main/step-0 of plan deploy was not complete by its deadline of 30s") ||
		st.Revision != 1 {
		t.Errorf("the failed run: %d, %s: %q", st.Revision, st.Status, st.Message)
	}
}

// TestDeadlineOfCleanup (P19): a cleanup that fails by its deadline keeps the finalizer, and a deadline cannot give it up, whatever the
// spec says that was written without the webhook.
func TestDeadlineOfCleanup(t *testing.T) {
	f := newEndless(t, v1beta1.Deadline{Plan: "cleanup", After: "10s", Then: v1beta1.DeadlineFail},
		v1beta1.Deadline{Plan: "cleanup", After: "1s", Then: v1beta1.DeadlineCancel})
	if got := conditionText(f.instance(), v1beta1.DeadlineIgnoredCondition); !strings.Contains(got, "spec.deadlines[1].then: plan cleanup cannot be ended") {
		t.Errorf("condition %q", got)
	}
	now := metav1.NewTime(f.clock.Now())
	f.change(func(i *v1beta1.Instance) { i.DeletionTimestamp = &now })
	f.settle(t)
	f.later(t, 5*time.Second)
	if st := f.instance().Status.PlanStatus["cleanup"]; st.Status != v1beta1.InProgress {
		t.Fatalf("before its deadline, cleanup is %s: %s", st.Status, st.Message)
	}
	f.later(t, 5*time.Second)
	i := f.instance()
	if st := i.Status.PlanStatus["cleanup"]; st.Status != v1beta1.FatalError || len(i.Finalizers) == 0 {
		t.Errorf("cleanup is %s, finalizers %v", st.Status, i.Finalizers)
	}
}

// TestDeadlineIgnored (P19): an invalid deadline is warned of once, and the condition goes with it.
func TestDeadlineIgnored(t *testing.T) {
	f := newEndless(t, v1beta1.Deadline{Plan: "gone", After: "1s", Then: v1beta1.DeadlineFail}, v1beta1.Deadline{Plan: "deploy", After: "soon", Then: "Fail"})
	f.restart()
	f.later(t, time.Minute)
	want := []string{`spec.deadlines[0].plan: plan "gone" does not exist`, `spec.deadlines[1].after: "soon" is no duration`}
	text, events := conditionText(f.instance(), v1beta1.DeadlineIgnoredCondition), f.recorded()
	for _, w := range want {
		if !strings.Contains(text, w) || strings.Count(strings.Join(events, "\n"), w) != 1 {
			t.Errorf("%s: condition %q, events %q", w, text, events)
		}
	}
	if st := f.deploying(); st.Status != v1beta1.InProgress {
		t.Errorf("the plan is %s: %s", st.Status, st.Message)
	}
	f.change(func(i *v1beta1.Instance) { i.Spec.Deadlines = nil })
	f.settle(t)
	if text := conditionText(f.instance(), v1beta1.DeadlineIgnoredCondition); text != "" {
		t.Errorf("without deadlines: %q", text)
	}
}

// newEndlessSecond starts a fixture whose first run of deploy is complete, and whose second one never ends.
func newEndlessSecond(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.settle(t)
	endless := webVersion("web-1.0", gen.Task("wait", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("deploy", "wait"))
	endless.Generation++
	f.Put(endless)
	f.change(func(i *v1beta1.Instance) {
		i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy", UID: "again"}
	})
	f.settle(t)
	return f
}

// TestSlowStep (P19): a step that takes longer than in the runs before is said to do so, without an event; the history is read once a run,
// and only if a step lasts a minute.
func TestSlowStep(t *testing.T) {
	f := newEndlessSecond(t)
	if st := f.deploying(); st.Revision != 2 || st.Status != v1beta1.InProgress {
		t.Fatalf("run %d is %s: %s", st.Revision, st.Status, st.Message)
	}
	records := func() (n int) {
		for _, request := range f.Requests() {
			if strings.HasPrefix(request, "get ControllerRevision") {
				n++
			}
		}
		return n
	}
	f.recorded()
	f.Requests()
	f.later(t, 59*time.Second)
	if st, n := f.deploying(), records(); n > 0 || strings.Contains(st.Message, "usual") {
		t.Errorf("within a minute, %d records are read: %q", n, st.Message)
	}
	f.later(t, time.Second)
	if st, n := f.deploying(), records(); n != 1 || !strings.HasSuffix(st.Message, "(longer than usual: at most 0s before)") {
		t.Errorf("after a minute, %d records are read: %q", n, st.Message)
	}
	before := f.instance().ResourceVersion
	f.later(t, time.Hour)
	if n := records(); n > 0 || f.instance().ResourceVersion != before {
		t.Errorf("the history is read again (%d records), or the status is written again", n)
	}
	if got := f.recorded(); len(got) > 0 {
		t.Errorf("events: %q", got)
	}
}

// TestSlowStepUnread (P19): a history that cannot be read does not hold up the run.
func TestSlowStepUnread(t *testing.T) {
	f := newEndlessSecond(t)
	f.failReads("ControllerRevision")
	f.later(t, time.Hour)
	if st := f.deploying(); st.Status != v1beta1.InProgress || strings.Contains(st.Message, "usual") {
		t.Errorf("the run is %s: %q", st.Status, st.Message)
	}
}
