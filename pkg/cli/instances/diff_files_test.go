package instances

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestSpecOfFile checks what stays of the live spec when a file is applied: what kudo has written, and no file has.
func TestSpecOfFile(t *testing.T) {
	live := &v1beta1.Instance{}
	live.Spec.Parameters = map[string]string{"FIXED": "default", "CHOSEN": "by user", "MEMORY": "1Gi"}
	live.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup", UID: "asked-before"}
	live.Status.Baseline = &v1beta1.Baseline{ImmutableDefaults: map[string]string{"FIXED": "default", "CHOSEN": "default"}}
	for _, tc := range []struct {
		reason, plan string
		given, want  map[string]string
	}{
		{"a default that was fixed at the creation", "", map[string]string{"MEMORY": "2Gi"}, map[string]string{"MEMORY": "2Gi", "FIXED": "default"}},
		{"a value of the file counts", "", map[string]string{"FIXED": "other"}, map[string]string{"FIXED": "other"}},
		{"a file without parameters", "restore", nil, map[string]string{"FIXED": "default"}},
	} {
		wanted := &v1beta1.Instance{}
		wanted.Spec.Parameters, wanted.Spec.PlanExecution.PlanName = tc.given, tc.plan
		got := specOfFile(live, wanted)
		if diff := cmp.Diff(tc.want, got.Parameters); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if tc.plan == "" && got.PlanExecution != live.Spec.PlanExecution || tc.plan != "" && got.PlanExecution.PlanName != tc.plan {
			t.Errorf("%s: %+v", tc.reason, got.PlanExecution)
		}
	}
	if live.Status.Baseline = nil; specOfFile(live, &v1beta1.Instance{}).Parameters != nil {
		t.Error("without a baseline, nothing was fixed")
	}
}
