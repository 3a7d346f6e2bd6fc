package plans

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestMarkStopped is P28: what was open when a user has ended a run is drawn as stopped, and the status that was read does not change.
func TestMarkStopped(t *testing.T) {
	run := func(status v1beta1.ExecutionStatus, message string, steps ...v1beta1.ExecutionStatus) v1beta1.PlanStatus {
		phase := v1beta1.PhaseStatus{Name: "p", Status: steps[len(steps)-1]}
		for _, s := range steps {
			phase.Steps = append(phase.Steps, v1beta1.StepStatus{Status: s, Tasks: []v1beta1.TaskStatus{{Status: s}}})
		}
		return v1beta1.PlanStatus{Status: status, Message: message, Phases: []v1beta1.PhaseStatus{phase}}
	}
	for _, tc := range []struct {
		reason      string
		given, want v1beta1.PlanStatus
	}{
		{"a user has ended it", run(v1beta1.FatalError, CancelMessage, v1beta1.Complete, v1beta1.InProgress),
			run(v1beta1.FatalError, CancelMessage, v1beta1.Complete, Stopped)},
		{"it waited", run(v1beta1.FatalError, CancelMessage, v1beta1.Pending), run(v1beta1.FatalError, CancelMessage, Stopped)},
		{"what never ran stays so", run(v1beta1.FatalError, CancelMessage, v1beta1.NeverRun),
			run(v1beta1.FatalError, CancelMessage, v1beta1.NeverRun)},
		{"it has failed", run(v1beta1.FatalError, "Job x failed", v1beta1.InProgress), run(v1beta1.FatalError, "Job x failed", v1beta1.InProgress)},
		{"it continues", run(v1beta1.InProgress, CancelMessage, v1beta1.InProgress),
			run(v1beta1.InProgress, CancelMessage, v1beta1.InProgress)},
	} {
		before := tc.given.DeepCopy()
		if diff := cmp.Diff(tc.want, MarkStopped(tc.given)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(*before, tc.given); diff != "" {
			t.Errorf("%s: what was given is changed:\n%s", tc.reason, diff)
		}
	}
}
