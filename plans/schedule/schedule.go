package schedule

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// maxSetBack bounds how far a clock can be set back so that no time is due again. After a larger step, due times are computed anew.
const maxSetBack = time.Hour

// maxMessage bounds the message of a schedule, in bytes.
const maxMessage = 512

// Input holds all inputs of Decide.
type Input struct {
	Instance *v1beta1.Instance
	// Version is the OperatorVersion that spec names, or nil if it does not exist.
	Version *v1beta1.OperatorVersionSpec
	// Started maps schedules to the last times for which this process has started runs. A user who writes the status cannot change them.
	Started map[string]time.Time
	Now     time.Time
}

// Due is a schedule whose plan is due.
type Due struct {
	Name, Plan string
	// Time is the last due time that has passed. One run serves all that have passed.
	Time time.Time
	// Next is the first due time in the future.
	Next time.Time
}

// Problem says why a schedule cannot run its plan.
type Problem struct {
	Name, Message string
}

// Decision is the result of Decide.
type Decision struct {
	// Status of the schedules, in the order of spec, before the due runs are started.
	Status []v1beta1.ScheduleStatus
	// Due lists the schedules whose plans can be started.
	Due []Due
	// Held lists the schedules that are due and wait for the end of an upgrade.
	Held []Due
	// Problems lists the schedules that cannot run as they are written.
	Problems []Problem
}

// Decide determines which schedules of an Instance are due. The table says what happens to due times that pass:
//
//	the schedule cannot run                                 they are dropped
//	it or the Instance is suspended, or being deleted       they are dropped
//	the first deploy is not complete                        they are dropped
//	an upgrade is requested or not complete                 they stay due, and are held
//	else                                                    one run serves them
//
// Times before the creation or the last change of a schedule are never due.
func Decide(in Input) Decision {
	var d Decision
	isHeld := IsUpgrading(in.Instance)
	seen := map[string]bool{}
	for _, s := range in.Instance.Spec.Schedules {
		if seen[s.Name] {
			d.Problems = append(d.Problems, Problem{s.Name, "it is there twice: give each schedule a name of its own"})
			continue
		}
		seen[s.Name] = true
		st := Find(in.Instance.Status.Schedules, s.Name)
		cron, err := Check(s, in.Version)
		if err != nil {
			d.Problems = append(d.Problems, Problem{s.Name, err.Error()})
		}
		if err != nil || s.Suspend || drops(in.Instance, st) {
			st.Next = nil
			d.Status = append(d.Status, st)
			continue
		}
		last := lastOf(st, in.Started[s.Name], in.Now)
		next := next(cron, st.Next, last, in.Now)
		st.Next = timeOf(next)
		d.Status = append(d.Status, st)
		if next.IsZero() || next.After(in.Now) {
			continue
		}
		due := Due{s.Name, s.Plan, cron.Latest(next.Add(-time.Second), in.Now), cron.Next(in.Now)}
		if isHeld {
			d.Held = append(d.Held, due)
		} else {
			d.Due = append(d.Due, due)
		}
	}
	return d
}

// Find returns a copy of the status of a schedule, or a new status.
func Find(all []v1beta1.ScheduleStatus, name string) v1beta1.ScheduleStatus {
	if st := find(all, name); st != nil {
		return *st.DeepCopy()
	}
	return v1beta1.ScheduleStatus{Name: name}
}

// find returns the status of a schedule, or nil.
func find(all []v1beta1.ScheduleStatus, name string) *v1beta1.ScheduleStatus {
	if i := slices.IndexFunc(all, func(s v1beta1.ScheduleStatus) bool { return s.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// drops reports whether due times that pass now are never served. While a later run of deploy is not over, due times stay due.
func drops(i *v1beta1.Instance, st v1beta1.ScheduleStatus) bool {
	base := i.Status.Baseline
	return i.DeletionTimestamp != nil || i.Spec.Suspend || base == nil || base.Suspended ||
		st.Next == nil && i.Status.PlanStatus[v1beta1.DeployPlan].Status != v1beta1.Complete && !plans.HasArrived(i.Status.PlanStatus)
}

// IsUpgrading reports whether an upgrade is requested or not complete. A backup that ran then could replace the one that a rollback needs.
func IsUpgrading(i *v1beta1.Instance) bool {
	base := i.Status.Baseline
	return base != nil && (base.UpgradeIncomplete || base.OperatorVersion != i.OperatorVersionKey().String())
}

// lastOf returns the time that the last run was started for, or zero if the clock was set back by more than maxSetBack since then.
func lastOf(st v1beta1.ScheduleStatus, started, now time.Time) time.Time {
	last := started
	if st.Last != nil && st.Last.After(now.Add(maxSetBack)) { // the status must not hide what the process remembers
		st.Last = nil
	}
	if st.Last != nil && st.Last.After(last) {
		last = st.Last.Time
	}
	if last.After(now.Add(maxSetBack)) {
		return time.Time{}
	}
	return last
}

// next returns the next due time, which may have passed. It returns the stored time if that is a due time of the schedule as it is now.
func next(cron *Cron, stored *metav1.Time, last, now time.Time) time.Time {
	from := now
	if last.After(now) {
		from = last
	}
	fresh := cron.Next(from)
	if stored == nil || !stored.After(last) || !cron.IsDue(stored.Time) || !fresh.IsZero() && fresh.Before(stored.Time) {
		return fresh
	}
	return stored.Time
}

// timeOf returns a time as the API has it; nil for none.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.UTC())
	return &out
}

// excluded are plans that no schedule may run.
var excluded = []string{v1beta1.DeployPlan, v1beta1.UpgradePlan, v1beta1.CleanupPlan}

// Check returns the due times of a schedule, or an error that says why the schedule cannot run. It does not check the plan if version is
// nil.
func Check(s v1beta1.Schedule, version *v1beta1.OperatorVersionSpec) (*Cron, error) {
	cron, err := Parse(s.Cron, s.TimeZone)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(excluded, s.Plan):
		return nil, fmt.Errorf("plan %q cannot be scheduled: name a plan other than %v", s.Plan, excluded)
	case version == nil:
		return cron, nil
	}
	defined := version.InstancePlans()
	if _, ok := defined[s.Plan]; !ok {
		return nil, fmt.Errorf("plan %q does not exist in the OperatorVersion (plans: %v): name one of them, or remove the schedule", s.Plan,
			plans.Names(defined))
	}
	return cron, nil
}

// Start records in the status of a due schedule that a run serves it.
func Start(all []v1beta1.ScheduleStatus, due Due, run int64) {
	if st := find(all, due.Name); st != nil {
		st.Last, st.Next, st.LastRun, st.LastResult = timeOf(due.Time), timeOf(due.Next), run, v1beta1.InProgress
	}
}

// End records the end of a run in the schedules that it served, and returns the names of those that failed. A complete run counts as a
// success of all schedules of its plan, whoever has asked for the run.
func End(i *v1beta1.Instance, plan string, run v1beta1.PlanStatus, now time.Time) (failed []string) {
	planOf := map[string]string{}
	for _, s := range i.Spec.Schedules {
		planOf[s.Name] = s.Plan
	}
	for n := range i.Status.Schedules {
		st := &i.Status.Schedules[n]
		mine := st.LastRun != 0 && st.LastRun == run.Revision && st.LastResult == v1beta1.InProgress
		if mine {
			st.LastResult = run.Status
		}
		switch {
		case run.Status == v1beta1.Complete && (mine || planOf[st.Name] == plan):
			st.Message, st.LastSuccess = "", timeOf(now.Truncate(time.Second))
		case run.Status == v1beta1.FatalError && mine:
			st.Message = text.Plain(fmt.Sprintf("run %d of plan %s failed: %s", run.Revision, plan, run.Message), maxMessage)
			failed = append(failed, st.Name)
		}
	}
	return failed
}

// Replace records that a run has replaced another run of the same plan.
func Replace(all []v1beta1.ScheduleStatus, before, now int64) {
	for n := range all {
		if all[n].LastRun == before && all[n].LastResult == v1beta1.InProgress {
			all[n].LastRun = now
		}
	}
}
