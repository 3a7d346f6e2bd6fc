package admission

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestSchedules: G1, what the webhook refuses of schedules, and of what it warns.
func TestSchedules(t *testing.T) {
	nightly := v1beta1.Schedule{Name: "nightly", Plan: "backup", Cron: "0 3 * * *"}
	with := func(change func(*v1beta1.Schedule)) v1beta1.Schedule {
		s := nightly
		change(&s)
		return s
	}
	removed := with(func(s *v1beta1.Schedule) { s.Name, s.Plan = "removed", "gone" })
	ov := &v1beta1.OperatorVersion{}
	ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": {}, "backup": {}, "upgrade": {}, "cleanup": {}}
	for _, tc := range []struct {
		reason  string
		ov      *v1beta1.OperatorVersion
		old     []v1beta1.Schedule
		edited  []v1beta1.Schedule
		refused string
		warned  string
	}{
		{"a schedule", ov, nil, []v1beta1.Schedule{nightly}, "", ""},
		{"a plan that does not exist", ov, nil, []v1beta1.Schedule{removed}, `spec.schedules[removed]: plan "gone" does not exist`, ""},
		{"a plan that does not exist, without the version", nil, nil, []v1beta1.Schedule{removed}, "", ""},
		{"a wrong cron, without the version", nil, nil, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.Cron = "x" })}, `spec.schedules[nightly]: cron "x"`, ""},
		{"a wrong zone", ov, nil, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.TimeZone = "Moon" })}, `spec.schedules[nightly]: timeZone "Moon"`, ""},
		{"deploy", ov, nil, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.Plan = "deploy" })}, `plan "deploy" cannot be scheduled`, ""},
		{"upgrade", ov, nil, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.Plan = "upgrade" })}, `plan "upgrade" cannot be scheduled`, ""},
		{"cleanup", ov, nil, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.Plan = "cleanup" })}, `plan "cleanup" cannot be scheduled`, ""},
		{"a name that is there twice", ov, nil, []v1beta1.Schedule{nightly, with(func(s *v1beta1.Schedule) { s.Cron = "0 4 * * *" })}, "it is there twice", ""},
		{"the version does not have the plan any more", ov, []v1beta1.Schedule{removed}, []v1beta1.Schedule{removed, nightly}, "", `spec.schedules[removed] does not run: plan "gone" does not exist`},
		{"a schedule that cannot be right is edited", ov, []v1beta1.Schedule{removed}, []v1beta1.Schedule{with(func(s *v1beta1.Schedule) { s.Name, s.Plan = "removed", "gone too" })}, `plan "gone too" does not exist`, ""},
	} {
		old, edited := &v1beta1.Instance{Spec: v1beta1.InstanceSpec{Schedules: tc.old}}, &v1beta1.Instance{Spec: v1beta1.InstanceSpec{Schedules: tc.edited}}
		if tc.old == nil {
			old = nil
		}
		warnings, err := schedules(old, edited, tc.ov)
		if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.refused)
		}
		if got := strings.Join(warnings, "; "); !strings.Contains(got, tc.warned) || (got == "") != (tc.warned == "") {
			t.Errorf("%s: warnings %q, want %q", tc.reason, got, tc.warned)
		}
	}
}
