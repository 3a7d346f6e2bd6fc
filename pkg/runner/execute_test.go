package runner

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestDoneOnce: what must not be done twice is written down before anything else is done.
func TestDoneOnce(t *testing.T) {
	kinds := map[string]string{"apply": v1beta1.ApplyTask, "delete": v1beta1.DeleteTask, "pipe": v1beta1.PipeTask, "dummy": v1beta1.DummyTask}
	status := func(uid types.UID, task string, status v1beta1.ExecutionStatus) v1beta1.PlanStatus {
		return v1beta1.PlanStatus{UID: uid, Phases: []v1beta1.PhaseStatus{{Steps: []v1beta1.StepStatus{{Tasks: []v1beta1.TaskStatus{{Name: task, Status: status}}}}}}}
	}
	for _, tc := range []struct {
		reason, task string
		before, now  v1beta1.ExecutionStatus
		last         types.UID
		want         bool
	}{
		{"a Pipe has ended", "pipe", v1beta1.InProgress, v1beta1.Complete, "a", true},
		{"a Delete has ended: what comes next may make the object again", "delete", v1beta1.Pending, v1beta1.Complete, "a", true},
		{"that is known", "pipe", v1beta1.Complete, v1beta1.Complete, "a", false},
		{"of the run before", "pipe", v1beta1.Complete, v1beta1.Complete, "b", true},
		{"it goes on", "pipe", v1beta1.Pending, v1beta1.InProgress, "a", false},
		{"an Apply may be done again", "apply", v1beta1.Pending, v1beta1.Complete, "a", false},
		{"a Dummy does nothing", "dummy", v1beta1.Pending, v1beta1.Complete, "a", false},
	} {
		if got := DoneOnce(kinds, status(tc.last, tc.task, tc.before), status("a", tc.task, tc.now)); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
