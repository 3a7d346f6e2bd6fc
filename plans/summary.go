package plans

import (
	"fmt"
	"slices"
	"sort"
	"strings"

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

// Behind names the running plan that the queue of an Instance waits for, the object which that plan waits for, and the command that ends
// the plan. It returns "" while no plan runs.
func Behind(instance *v1beta1.Instance) string {
	running := Running(instance.Status.PlanStatus)
	if running == "" {
		return ""
	}
	out := fmt.Sprintf("behind plan %s (kubectl kudo plan cancel --instance %s -n %s ends it)", running, instance.Name, instance.Namespace)
	if message := instance.Status.PlanStatus[running].Message; message != "" {
		out += ", which waits for: " + message
	}
	return out
}

// Queued names the queued plans of an Instance and the plan that they wait for. It returns "" if no plan is queued or none runs.
func Queued(instance *v1beta1.Instance) string {
	behind := Behind(instance)
	var names []string
	for _, q := range instance.Status.Queue {
		names = append(names, q.PlanName)
	}
	switch {
	case behind == "" || len(names) == 0:
		return ""
	case len(names) == 1:
		return "plan " + names[0] + " is queued " + behind
	}
	return "plans " + strings.Join(names, ", ") + " are queued " + behind
}

// AppliesSpec reports whether a plan makes an Instance what its spec says; other plans do something with what is there.
func AppliesSpec(plan string) bool {
	return plan == v1beta1.DeployPlan || plan == v1beta1.UpdatePlan || plan == v1beta1.UpgradePlan
}

// CompleteVersion records in the baseline of an Instance, which may be nil, that a run of a plan of a version is complete. An upgrade ends
// with the plan that brings an Instance to the version: a version without the plan upgrade has update or deploy for that. Until then, no
// other plan completes the version.
func CompleteVersion(base *v1beta1.Baseline, plan string, version *v1beta1.OperatorVersionSpec) {
	if base == nil {
		return
	}
	if plan == FirstDefined(version.InstancePlans(), v1beta1.UpgradePlan, v1beta1.UpdatePlan, v1beta1.DeployPlan) {
		base.UpgradeIncomplete = false
	}
	if AppliesSpec(plan) && !base.UpgradeIncomplete {
		base.Completed = new(v1beta1.NewPackageVersion(version))
	}
}

// LacksVersion reports whether a version is complete and the baseline does not say which: KUDO, or a version of kudo that did not record
// it, has run the plans.
func LacksVersion(base *v1beta1.Baseline, all map[string]v1beta1.PlanStatus) bool {
	if base == nil || base.Completed != nil || base.UpgradeIncomplete {
		return false
	}
	for plan, st := range all {
		if AppliesSpec(plan) && st.Status == v1beta1.Complete {
			return true
		}
	}
	return false
}

// LatestRun returns the plan that runs and its run, or while idle, those of the last run that counts; "" if there is none. Runs of
// schedules count while they are running only.
func LatestRun(all map[string]v1beta1.PlanStatus) (plan string, run v1beta1.PlanStatus) {
	if running := Running(all); running != "" {
		return running, all[running]
	}
	for _, name := range Names(all) {
		st := CountedRun(all[name])
		if st.Status == v1beta1.NeverRun || st.Status == "" {
			continue
		}
		if plan == "" || later(st, run) {
			plan, run = name, st
		}
	}
	return plan, run
}

// CountedRun returns the last run of a plan that counts; its status is empty if there is none. A complete run of a schedule mends the
// failure of that run, and takes nothing else from it: the run keeps its number, so that the later of two runs stays the later one.
func CountedRun(st v1beta1.PlanStatus) v1beta1.PlanStatus {
	if st.Counts() {
		return st
	}
	run := v1beta1.PlanStatus{Name: st.Name}
	if c := st.Counted; c != nil {
		run.Status, run.Message, run.Revision, run.LastUpdatedTimestamp = c.Status, c.Message, c.Revision, c.LastUpdatedTimestamp
	}
	if run.Status == v1beta1.FatalError && st.Status == v1beta1.Complete {
		run.Status, run.Message = v1beta1.Complete, ""
	}
	return run
}

// NewCounted returns the run that counts if the next run of the plan does not, or nil if none does.
func NewCounted(before v1beta1.PlanStatus) *v1beta1.CountedRun {
	run := CountedRun(before)
	if !run.Status.IsTerminal() {
		return nil
	}
	return &v1beta1.CountedRun{
		Revision: run.Revision, Status: run.Status, Message: run.Message, LastUpdatedTimestamp: run.LastUpdatedTimestamp,
	}
}

// HasArrived reports whether an Instance is what its spec says: the last run of a plan that makes it so is complete.
func HasArrived(all map[string]v1beta1.PlanStatus) bool {
	newest := v1beta1.PlanStatus{}
	for name, st := range all {
		if AppliesSpec(name) && later(st, newest) {
			newest = st
		}
	}
	return newest.Status == v1beta1.Complete
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
	last, st := LatestRun(all)
	if last == "" {
		return v1beta1.AggregatedStatus{}
	}
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
