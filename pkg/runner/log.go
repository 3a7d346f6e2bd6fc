package runner

import (
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// LogValues returns the keys and values for the log of a run: the one that is running, or that ended last. It returns nil if
// there was none.
func LogValues(all map[string]v1beta1.PlanStatus) []any {
	plan, _ := plans.LatestRun(all)
	if plan == "" {
		return nil
	}
	return []any{"plan", plan, "run", string(all[plan].UID)}
}
