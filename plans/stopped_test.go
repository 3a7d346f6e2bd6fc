package plans

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestIsRetryRequested checks that the annotation counts for the failed run that it names, and for no other.
func TestIsRetryRequested(t *testing.T) {
	for _, tc := range []struct {
		reason, value string
		st            v1beta1.PlanStatus
		want          bool
	}{
		{"the failed run", "u", v1beta1.PlanStatus{UID: "u", Status: v1beta1.FatalError}, true},
		{"the run is the next one", "u", v1beta1.PlanStatus{UID: "v", Status: v1beta1.FatalError}, false},
		{"the run is complete", "u", v1beta1.PlanStatus{UID: "u", Status: v1beta1.Complete}, false},
		{"the run has no uid, and nothing is requested", "", v1beta1.PlanStatus{Status: v1beta1.FatalError}, false},
	} {
		if got := IsRetryRequested(map[string]string{v1beta1.RetryAnnotation: tc.value}, tc.st); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

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
			run(v1beta1.FatalError, CancelMessage, v1beta1.Complete, stopped)},
		{"it waited", run(v1beta1.FatalError, CancelMessage, v1beta1.Pending), run(v1beta1.FatalError, CancelMessage, stopped)},
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
