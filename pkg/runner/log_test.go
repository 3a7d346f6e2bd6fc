package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestLogValues checks which run the log of an object names.
func TestLogValues(t *testing.T) {
	ended := v1beta1.PlanStatus{Status: v1beta1.Complete, UID: "u1", Revision: 1}
	running := v1beta1.PlanStatus{Status: v1beta1.InProgress, UID: "u2", Revision: 2}
	never := v1beta1.PlanStatus{Status: v1beta1.NeverRun}
	for _, tc := range []struct {
		reason string
		all    map[string]v1beta1.PlanStatus
		want   []any
	}{
		{"one is running", map[string]v1beta1.PlanStatus{"deploy": ended, "backup": running, "update": never}, []any{"plan", "backup", "run", "u2"}},
		{"one has ended", map[string]v1beta1.PlanStatus{"deploy": ended, "update": never}, []any{"plan", "deploy", "run", "u1"}},
		{"nothing has run", map[string]v1beta1.PlanStatus{"deploy": never}, nil},
	} {
		if diff := cmp.Diff(tc.want, LogValues(tc.all)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}
