package plans

import (
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestCompleteVersion shows G5: which runs make a version the one before, and which end an upgrade.
func TestCompleteVersion(t *testing.T) {
	all := []string{v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan, "backup"}
	for _, tc := range []struct {
		reason, plan string
		defined      []string
		upgrading    bool
		// want is the version before afterwards; still reports whether the upgrade goes on.
		want  string
		still bool
	}{
		{"the first deploy", v1beta1.DeployPlan, all, false, "2", false},
		{"an update of parameters", v1beta1.UpdatePlan, all, false, "2", false},
		{"another plan", "backup", all, false, "1", false},
		{"the plan of the upgrade", v1beta1.UpgradePlan, all, true, "2", false},
		{"an update while an upgrade is not complete", v1beta1.UpdatePlan, all, true, "1", true},
		{"a deploy while an upgrade is not complete", v1beta1.DeployPlan, all, true, "1", true},
		{"another plan while an upgrade is not complete", "backup", all, true, "1", true},
		{"an upgrade by update", v1beta1.UpdatePlan, all[:2], true, "2", false},
		{"an upgrade by update that deploy does not end", v1beta1.DeployPlan, all[:2], true, "1", true},
		{"an upgrade by deploy", v1beta1.DeployPlan, all[:1], true, "2", false},
	} {
		spec := &v1beta1.OperatorVersionSpec{Version: "2.0.0", AppVersion: "2", Plans: map[string]v1beta1.Plan{}}
		for _, plan := range tc.defined {
			spec.Plans[plan] = v1beta1.Plan{}
		}
		base := &v1beta1.Baseline{UpgradeIncomplete: tc.upgrading, Completed: &v1beta1.PackageVersion{AppVersion: "1"}}
		CompleteVersion(base, tc.plan, spec)
		if base.Completed.AppVersion != tc.want || base.UpgradeIncomplete != tc.still {
			t.Errorf("%s: the version before is %q, and an upgrade goes on: %v", tc.reason, base.Completed.AppVersion, base.UpgradeIncomplete)
		}
	}
	CompleteVersion(nil, v1beta1.DeployPlan, &v1beta1.OperatorVersionSpec{})
}

// TestLacksVersion shows G5: when the version before has to be found elsewhere.
func TestLacksVersion(t *testing.T) {
	status := func(plan string, status v1beta1.ExecutionStatus) map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{plan: {Status: status}, "backup": {Status: v1beta1.Complete}}
	}
	for _, tc := range []struct {
		reason string
		base   *v1beta1.Baseline
		all    map[string]v1beta1.PlanStatus
		want   bool
	}{
		{"a complete deploy", &v1beta1.Baseline{}, status(v1beta1.DeployPlan, v1beta1.Complete), true},
		{"a complete update", &v1beta1.Baseline{}, status(v1beta1.UpdatePlan, v1beta1.Complete), true},
		{"a deploy that has failed", &v1beta1.Baseline{}, status(v1beta1.DeployPlan, v1beta1.FatalError), false},
		{"a deploy that runs", &v1beta1.Baseline{}, status(v1beta1.DeployPlan, v1beta1.InProgress), false},
		{"another plan alone", &v1beta1.Baseline{}, status("check", v1beta1.Complete), false},
		{"no baseline", nil, status(v1beta1.DeployPlan, v1beta1.Complete), false},
		{"an upgrade that is not complete", &v1beta1.Baseline{UpgradeIncomplete: true}, status(v1beta1.DeployPlan, v1beta1.Complete), false},
		{"a version that is recorded", &v1beta1.Baseline{Completed: &v1beta1.PackageVersion{}}, status(v1beta1.DeployPlan, v1beta1.Complete), false},
	} {
		if got := LacksVersion(tc.base, tc.all); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
