package instance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/schedule"
	"kudo.dev/kudo/plans/trigger"
)

// scheduler determines which schedules of the Instance are due, and records their runs.
type scheduler struct {
	*scope
	// decided is the time that the schedules were compared with; zero if they were not.
	decided time.Time
	// due lists the schedules whose plans are due, held those of them that wait for the end of an upgrade.
	due, held []schedule.Due
	// problems lists the schedules that cannot run their plans.
	problems []schedule.Problem
	// waits is set if the Instance waits for a place.
	waits bool
}

// ticks holds the times for which this process has started runs. A user who writes the status can remove them from it, and the same time
// must not be due again.
type ticks struct {
	mu    sync.Mutex
	known map[types.NamespacedName]startedTicks
}

// startedTicks are the times of one Instance, by schedule.
type startedTicks struct {
	uid   types.UID
	times map[string]time.Time
}

// of returns the times of an Instance, or nil if none are known.
func (t *ticks) of(key types.NamespacedName, uid types.UID) map[string]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[key]; known.uid == uid {
		return known.times
	}
	return nil
}

// add adds times to those of an Instance, and removes the times of schedules that the Instance does not have any more. It replaces the map,
// since callers of the method of read the former one.
func (t *ticks) add(key types.NamespacedName, uid types.UID, due []schedule.Due, has func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	times := map[string]time.Time{}
	if known := t.known[key]; known.uid == uid {
		maps.Copy(times, known.times)
		maps.DeleteFunc(times, func(name string, _ time.Time) bool { return !has(name) })
	}
	for _, d := range due {
		times[d.Name] = d.Time
	}
	if t.known == nil {
		t.known = map[types.NamespacedName]startedTicks{}
	}
	t.known[key] = startedTicks{uid, times}
}

// forget removes the times of an Instance.
func (t *ticks) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, key)
}

// observe determines the schedules that are due.
func (sch *scheduler) observe() {
	sch.decided = sch.Clock.Now()
	in := schedule.Input{Instance: sch.Next, Now: sch.decided, Started: sch.ticks.of(client.ObjectKeyFromObject(sch.Next), sch.Next.UID)}
	if sch.content != nil {
		in.Version = sch.content.Spec
	}
	d := schedule.Decide(in)
	sch.Next.Status.Schedules = d.Status
	sch.due, sch.held, sch.problems = d.Due, d.Held, d.Problems
}

// queueDue queues the plans of due schedules if another plan runs or starts. A run that starts for another reason serves the due schedules
// of its plan.
func (o *observer) queueDue() {
	if o.start == nil && !o.running {
		return
	}
	for _, due := range o.schedules.due {
		isStarted := o.start != nil && o.start.Plan == due.Plan
		if !isStarted && queuedPlan(o.decision.Queue, due.Plan) == nil {
			o.decision.Queue = append(o.decision.Queue, v1beta1.QueuedPlan{PlanName: due.Plan, Cause: o.schedules.dueCause(due.Plan)})
		}
	}
}

// observeDue selects the plan of the first due schedule for the start, if no plan runs or starts. If the plan cannot start, only the
// condition ScheduleFailed says so. The plan waits if the runs of all Instances leave no place.
func (o *observer) observeDue(ctx context.Context) error {
	if o.running || len(o.schedules.due) == 0 {
		return nil
	}
	plan := o.schedules.due[0].Plan
	o.start = &trigger.Request{Plan: plan, Cause: o.schedules.dueCause(plan)}
	if err := o.observeStart(ctx); err != nil {
		return err
	}
	if cause := o.blocked; cause != nil {
		o.blocked, o.start, o.result.Transient = nil, nil, true // no watch shows when it is over
		o.schedules.reportDue(o.schedules.due[0], cause.message)
		return nil
	}
	if err := o.seedPlaces(ctx); err != nil {
		return err
	}
	now := o.Clock.Now()
	if o.places.take(client.ObjectKeyFromObject(o.Next), o.ScheduledRuns, now) {
		return nil
	}
	o.start, o.schedules.waits = nil, true
	if free := o.places.nextFree(now); !free.IsZero() {
		o.result.RequeueAfter = max(free.Sub(now), time.Millisecond)
	}
	return nil
}

// dueCause returns the cause of a run that serves all due schedules of a plan.
func (sch *scheduler) dueCause(plan string) string {
	var names []string
	for _, due := range sch.due {
		if due.Plan == plan {
			names = append(names, due.Name)
		}
	}
	return trigger.CauseSchedule + " " + strings.Join(names, ", ")
}

// reportDue adds the reason for which a due run cannot start to the condition ScheduleFailed.
func (sch *scheduler) reportDue(due schedule.Due, message string) {
	sch.problems = append(slices.Clone(sch.problems), schedule.Problem{Name: due.Name, Message: "plan " + due.Plan +
		" is due and cannot be started: " + message})
}

// start records in the status of the due schedules of a plan that a run serves them.
func (sch *scheduler) start(plan string, revision int64) {
	started := slices.DeleteFunc(slices.Clone(sch.due), func(d schedule.Due) bool { return d.Plan != plan })
	for _, due := range started {
		schedule.Start(sch.Next.Status.Schedules, due, revision)
	}
	if len(started) == 0 {
		return
	}
	key, uid, all := client.ObjectKeyFromObject(sch.Next), sch.Next.UID, sch.Next.Spec.Schedules
	sch.AfterCommit(func() {
		sch.ticks.add(key, uid, started, func(name string) bool {
			return slices.ContainsFunc(all, func(s v1beta1.Schedule) bool { return s.Name == name })
		})
	})
}

// endSchedules records the end of a run in the status of the schedules that it served.
func (e *execution) endSchedules(plan string, run v1beta1.PlanStatus) {
	for _, name := range schedule.End(e.Next, plan, run, e.Clock.Now()) {
		e.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventScheduleFailed, "Schedule %s failed: run %d of plan %s: %s", name, run.Revision,
			plan, run.Message)
	}
}

// report sets the condition ScheduleFailed at the end of a reconcile. It leaves the condition as it was if the schedules were not
// looked at.
func (sch *scheduler) report(cause *blocked) {
	if sch.decided.IsZero() {
		return
	}
	sch.reportWaits(cause)
	reason := v1beta1.ReasonScheduledRunFailed
	var failed []string
	for _, p := range sch.problems {
		reason = v1beta1.ReasonInvalidSchedule
		failed = append(failed, "schedule "+p.Name+": "+p.Message)
	}
	for _, s := range sch.Next.Status.Schedules {
		if s.Message != "" {
			failed = append(failed, "schedule "+s.Name+": "+s.Message)
		}
	}
	conditions.SetScheduleFailed(sch.Next, reason, failed)
}

// reportWaits reports the due schedules that nothing but a change by a user lets run: a spec that cannot be acted upon, or an upgrade that
// has failed.
func (sch *scheduler) reportWaits(cause *blocked) {
	if running, _ := sch.activePlan(); running != "" {
		return
	}
	switch {
	case cause != nil:
		for _, due := range slices.Concat(sch.due, sch.held) {
			sch.reportDue(due, cause.message)
		}
	case schedule.IsUpgrading(sch.Next) && len(sch.Next.Status.Queue) == 0:
		for _, due := range sch.held {
			sch.reportDue(due, "the upgrade to OperatorVersion "+sch.Next.OperatorVersionKey().String()+" is not complete: correct what has failed "+
				"and run kubectl kudo plan retry, or kubectl kudo rollback")
		}
	}
}

// requeue requests a reconcile at the next time of a schedule. A schedule that was due when the schedules were looked at waits
// for another event.
func (sch *scheduler) requeue() {
	if sch.Next.DeletionTimestamp != nil {
		return
	}
	now := sch.Clock.Now()
	decided := sch.decided
	if decided.IsZero() {
		decided = now
	}
	for _, s := range sch.Next.Status.Schedules {
		if s.Next == nil || !s.Next.After(decided) {
			continue
		}
		sch.requeueAt(s.Next.Time)
	}
}

// occupyPlace records whether a scheduled run of the Instance is active.
func (sch *scheduler) occupyPlace(occupied bool) {
	sch.enqueueAll(sch.places.set(client.ObjectKeyFromObject(sch.Next), occupied, sch.ScheduledRuns, sch.Clock.Now()))
}

// leavePlaces removes the Instance from the waiting list of places, unless the Instance waits.
func (sch *scheduler) leavePlaces() {
	if !sch.waits {
		sch.enqueueAll(sch.places.leave(client.ObjectKeyFromObject(sch.Next), sch.ScheduledRuns, sch.Clock.Now()))
	}
}

// forgetSchedules removes the times and the place of an Instance that does not exist any more.
func (r *Reconciler) forgetSchedules(key types.NamespacedName) {
	r.ticks.forget(key)
	r.enqueueAll(r.places.forget(key, r.ScheduledRuns, r.Clock.Now()))
}

// enqueueAll requests reconciles of the Instances that can take a place now.
func (r *Reconciler) enqueueAll(next []types.NamespacedName) {
	for _, key := range next {
		r.Enqueue(key)
	}
}

// seedPlaces takes places for the scheduled runs that were active before this process started.
func (r *Reconciler) seedPlaces(ctx context.Context) error {
	if r.places.isSeeded() {
		return nil
	}
	list := &v1beta1.InstanceList{}
	if err := r.Client.List(ctx, list); err != nil {
		return err
	}
	running := map[types.NamespacedName]time.Time{}
	for n := range list.Items {
		i := &list.Items[n]
		if st := i.Status.PlanStatus[plans.Running(i.Status.PlanStatus)]; st.Scheduled {
			running[client.ObjectKeyFromObject(i)] = startOf(st)
		}
	}
	r.places.seed(running, r.Clock.Now())
	return nil
}

// startOf returns when a run was started; zero if that is not known.
func startOf(run v1beta1.PlanStatus) time.Time {
	if run.StartedTimestamp == nil {
		return time.Time{}
	}
	return run.StartedTimestamp.Time
}
