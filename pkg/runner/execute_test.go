package runner

import (
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// TestLasting: what must not be done twice is recorded before anything else is done.
func TestLasting(t *testing.T) {
	for _, tc := range []struct {
		reason, kind string
		state        plans.State
		want         bool
	}{
		{"a Pipe has ended", v1beta1.PipeTask, plans.Done, true},
		{"a Delete has ended: what comes next may make the object again", v1beta1.DeleteTask, plans.Done, true},
		{"it continues", v1beta1.PipeTask, plans.Waiting, false},
		{"it is tried again", v1beta1.DeleteTask, plans.Transient, false},
		{"an Apply may be done again", v1beta1.ApplyTask, plans.Done, false},
		{"a Dummy does nothing", v1beta1.DummyTask, plans.Done, false},
	} {
		if got := lasting(tc.kind, plans.Outcome{State: tc.state}); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
