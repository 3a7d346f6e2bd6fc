package admission

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestDeadlines: P19, what the webhook refuses of deadlines, and of what it warns.
func TestDeadlines(t *testing.T) {
	good := v1beta1.Deadline{Plan: "deploy", After: "15m", Then: v1beta1.DeadlineFail}
	removed := v1beta1.Deadline{Plan: "gone", After: "15m", Then: v1beta1.DeadlineFail}
	short := v1beta1.Deadline{Plan: "deploy", After: "0s", Then: v1beta1.DeadlineFail}
	ov := &v1beta1.OperatorVersion{}
	ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": {}}
	for _, tc := range []struct {
		reason          string
		ov              *v1beta1.OperatorVersion
		old, edited     []v1beta1.Deadline
		refused, warned string
	}{
		{"a deadline", ov, nil, []v1beta1.Deadline{good}, "", ""},
		{"a plan that does not exist", ov, nil, []v1beta1.Deadline{good, removed}, `spec.deadlines[1].plan: plan "gone" does not exist`, ""},
		{"a plan that does not exist, without the version", nil, nil, []v1beta1.Deadline{removed}, "", ""},
		{"a wrong duration, without the version", nil, nil, []v1beta1.Deadline{short}, "spec.deadlines[0].after", ""},
		{"twice", ov, []v1beta1.Deadline{good}, []v1beta1.Deadline{good, good}, "spec.deadlines[1]: plan, step and then are those", ""},
		{"another one in front of it", ov, []v1beta1.Deadline{good}, []v1beta1.Deadline{{Plan: "deploy", After: "10h", Then: v1beta1.DeadlineFail}, good},
			"spec.deadlines[1]: plan, step and then are those", ""},
		{"the version does not have the plan any more", ov, []v1beta1.Deadline{removed}, []v1beta1.Deadline{good, removed}, "",
			`a deadline has no effect: spec.deadlines[1].plan: plan "gone" does not exist`},
		{"a deadline that is invalid is edited", ov, []v1beta1.Deadline{removed}, []v1beta1.Deadline{{Plan: "gone", After: "1m", Then: "Warn"}},
			`plan "gone" does not exist`, ""},
	} {
		old, edited := &v1beta1.Instance{}, &v1beta1.Instance{}
		old.Spec.Deadlines, edited.Spec.Deadlines = tc.old, tc.edited
		if tc.old == nil {
			old = nil
		}
		warnings, err := timing(old, edited, tc.ov)
		if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.refused)
		}
		if got := strings.Join(warnings, "; "); !strings.Contains(got, tc.warned) || (got == "") != (tc.warned == "") {
			t.Errorf("%s: warnings %q, want %q", tc.reason, got, tc.warned)
		}
	}
}
