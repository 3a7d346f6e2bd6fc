package plans

import (
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func equal(a, b *v1beta1.PlanStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// Running returns the name of the plan that runs, or "".
func Running(all map[string]v1beta1.PlanStatus) string {
	for _, name := range Names(all) {
		if all[name].Status.IsRunning() {
			return name
		}
	}
	return ""
}

// AppliesSpec reports whether a plan makes an Instance what its spec says; other plans do something with what is there.
func AppliesSpec(plan string) bool {
	return plan == v1beta1.DeployPlan || plan == v1beta1.UpdatePlan || plan == v1beta1.UpgradePlan
}

// LatestPlan returns the name of the run that is running or while idle, of the one that ended last; "" if none ever ran.
func LatestPlan(all map[string]v1beta1.PlanStatus) string {
	if running := Running(all); running != "" {
		return running
	}
	last := ""
	for _, name := range Names(all) {
		st := all[name]
		if st.Status == v1beta1.NeverRun || st.Status == "" {
			continue
		}
		if last == "" || later(st, all[last]) {
			last = name
		}
	}
	return last
}

// later compares by run number. KUDO kept no numbers: its runs came before all numbered ones, and go by time.
func later(a, b v1beta1.PlanStatus) bool {
	if a.Revision != b.Revision {
		return a.Revision > b.Revision
	}
	if a.LastUpdatedTimestamp == nil || b.LastUpdatedTimestamp == nil {
		return b.LastUpdatedTimestamp == nil && a.LastUpdatedTimestamp != nil
	}
	return a.LastUpdatedTimestamp.After(b.LastUpdatedTimestamp.Time)
}

// Names returns the names of plans in order.
func Names[V any](all map[string]V) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Aggregate sums up all plans: the one that runs, else the last that ran.
func Aggregate(all map[string]v1beta1.PlanStatus) v1beta1.AggregatedStatus {
	last := LatestPlan(all)
	if last == "" {
		return v1beta1.AggregatedStatus{}
	}
	st := all[last]
	out := v1beta1.AggregatedStatus{Status: st.Status, Message: st.Message}
	if st.Status.IsRunning() {
		out.ActivePlanName = last
	}
	return out
}

// WithNeverRun adds the plans of an OperatorVersion that are not in the status yet as NEVER_RUN, as KUDO does. Plans that an
// upgrade took away stay with their last run.
func WithNeverRun(all map[string]v1beta1.PlanStatus, defined map[string]v1beta1.Plan) map[string]v1beta1.PlanStatus {
	if all == nil {
		all = map[string]v1beta1.PlanStatus{}
	}
	for name, plan := range defined {
		st, known := all[name]
		if !known || st.Status == v1beta1.NeverRun {
			all[name] = NotRunStatus(name, plan)
		}
	}
	return all
}

// FirstDefined returns the first of the names that is a defined plan, or "".
func FirstDefined(defined map[string]v1beta1.Plan, names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { _, ok := defined[n]; return ok })
	if i < 0 {
		return ""
	}
	return names[i]
}
