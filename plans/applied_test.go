package plans

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestOnlyApplied: the status of a run may be withheld only while nothing of it is lost that cannot be found again.
func TestOnlyApplied(t *testing.T) {
	began := time.Unix(1000, 0)
	kinds := map[string]string{"app": v1beta1.ApplyTask, "more": v1beta1.ApplyTask, "job": v1beta1.PipeTask}
	state := func(modify ...func(*v1beta1.PlanStatus)) v1beta1.PlanStatus {
		step := func(tasks ...string) (s v1beta1.StepStatus) {
			for _, name := range tasks {
				s.Tasks = append(s.Tasks, v1beta1.TaskStatus{Name: name, Status: v1beta1.Pending})
			}
			return s
		}
		st := v1beta1.PlanStatus{UID: "run", Status: v1beta1.InProgress, Phases: []v1beta1.PhaseStatus{{Steps: []v1beta1.StepStatus{step("app"), step("more", "job")}}}}
		for _, m := range modify {
			m(&st)
		}
		return st
	}
	to := func(step, task int, status v1beta1.ExecutionStatus) func(*v1beta1.PlanStatus) {
		return func(st *v1beta1.PlanStatus) {
			s := &st.Phases[0].Steps[step]
			started := metav1.NewMicroTime(began.Add(time.Duration(step) * time.Second))
			s.StartedTimestamp, s.Tasks[task].Status, s.Tasks[task].Total = &started, status, 1
		}
	}
	unwritten := func(st *v1beta1.PlanStatus) { st.Phases[0].Steps[0].Tasks[0].Total = 0 }
	culprit := func(st *v1beta1.PlanStatus) { st.Phases[0].Steps[0].Tasks[0].Culprit = &v1beta1.Culprit{} }
	const waits, done = v1beta1.InProgress, v1beta1.Complete
	for _, tc := range []struct {
		reason        string
		before, after v1beta1.PlanStatus
		want          bool
	}{
		{"nothing was done", state(), state(), false},
		{"objects were written, and are awaited", state(), state(to(0, 0, waits)), true},
		{"they are still awaited", state(to(0, 0, waits)), state(to(0, 0, waits)), true},
		{"what was done before the commit stays done", state(to(0, 0, done)), state(to(0, 0, done), to(1, 0, waits)), true},
		{"a task that was done is not any more", state(to(0, 0, done)), state(to(0, 0, waits)), true},
		{"of two steps, the first one counts", state(), state(to(0, 0, waits), to(1, 0, waits)), true},
		{"a task is done", state(), state(to(0, 0, done), to(1, 0, waits)), false},
		{"a task has failed for now", state(), state(to(0, 0, v1beta1.TransientError)), false},
		{"a task has failed", state(), state(to(0, 0, v1beta1.FatalError)), false},
		{"nothing was written: the user learns what is awaited", state(), state(to(0, 0, waits), unwritten), false},
		{"what is the cause is known", state(), state(to(0, 0, waits), culprit), false},
		{"a task that runs once waits", state(), state(to(0, 0, waits), to(1, 1, waits)), false},
		{"the start of the run is not committed", v1beta1.PlanStatus{}, state(to(0, 0, waits)), false},
		{"the run has ended", state(), state(to(0, 0, waits), func(st *v1beta1.PlanStatus) { st.Status = done }), false},
		{"the plan has other steps", state(), state(to(0, 0, waits), func(st *v1beta1.PlanStatus) { st.Phases[0].Steps = st.Phases[0].Steps[:1] }), false},
	} {
		at, got := OnlyApplied(kinds, tc.before, tc.after)
		if got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
		if first := tc.after.Phases[0].Steps[0]; got && first.Tasks[0].Status == waits && !at.Equal(began) {
			t.Errorf("%s: it was begun at %s", tc.reason, at)
		}
	}
}
