package instance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/deadline"
)

// enforceDeadlines enforces the deadlines of spec on the run after its tasks were done, and reports whether it has cancelled the run. A run
// that fails by a deadline is left to finishIfEnded, and an Instance whose cleanup plan fails by one keeps its finalizer. enforceDeadlines
// also notes the steps that take longer than usual.
func (e *execution) enforceDeadlines(ctx context.Context, name string, st *v1beta1.PlanStatus) bool {
	plan, now := e.run.Version.Spec.Plans[name], e.Clock.Now()
	in := deadline.Input{Deadlines: e.Next.Spec.Deadlines, Name: name, Plan: plan, Run: *st, Now: now}
	if queue := e.Next.Status.Queue; len(queue) > 0 {
		in.Waiting = queue[0].PlanName
	}
	active := e.findActiveRun(name, *st)
	if active != nil {
		in.Usual = active.usual
	}
	d := deadline.Decide(in)
	if d.NeedsUsual && active != nil {
		active.usual = e.usualDurations(ctx, name, st.Revision)
		in.Usual = active.usual
		d = deadline.Decide(in)
	}
	for _, text := range plans.MarkLate(plan, st, d.Late, now) {
		e.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventDeadlineExceeded, "Plan %s: %s", name, text)
	}
	e.nextDeadline = d.Next
	switch {
	case d.Fail != nil && d.Fail.Step != nil:
		plans.FailStep(st, *d.Fail.Step, d.Fail.Message, now)
	case d.Fail != nil:
		plans.Fail(st, d.Fail.Message, now)
	case d.Cancel != "" && e.Next.DeletionTimestamp == nil:
		plans.Fail(st, plans.CancelMessage, now)
		e.result.Transient = false
		e.endRun(name, *st, metrics.OutcomeCancelled)
		e.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanCancelled, "Execution of plan %s was cancelled, since %s", name, d.Cancel)
		return true
	}
	return false
}

// usualDurations reads how long the steps of a plan usually take. If they cannot be read, they count as unknown, since they are only shown
// to users.
func (e *execution) usualDurations(ctx context.Context, plan string, revision int64) map[string]time.Duration {
	usual, err := e.History.UsualDurations(ctx, e.Next, plan, revision)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("how long the steps of the plan usually take is not known", "plan", plan, "reason", err.Error())
		return map[string]time.Duration{}
	}
	return usual
}

// reportDeadlines sets the condition DeadlineIgnored at the end of a reconcile, and warns once of each of its messages. It leaves the
// condition as it was if the OperatorVersion was not looked at.
func (a *action) reportDeadlines() {
	if !a.read || a.deleted {
		return
	}
	var version *v1beta1.OperatorVersionSpec
	if a.content != nil {
		version = a.content.Spec
	}
	problems := deadline.Check(a.Next.Spec.Deadlines, version)
	var ignored []string
	for n := range a.Next.Spec.Deadlines {
		if p, wrong := problems[n]; wrong {
			ignored = append(ignored, p.String())
		}
	}
	conditions.SetDeadlineIgnored(a.Next, ignored)
	now := meta.FindStatusCondition(a.Next.Status.Conditions, v1beta1.DeadlineIgnoredCondition)
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.DeadlineIgnoredCondition)
	if now != nil && (before == nil || before.Message != now.Message) {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventDeadlineIgnored, "%s", now.Message)
	}
}

// requeueForRun requests a reconcile at the time at which the next deadline passes, or the next look for a culprit is due.
func (e *execution) requeueForRun() {
	name, _ := e.activePlan()
	for _, at := range []time.Time{e.nextDeadline, e.nextSearch} {
		if name != "" && !at.IsZero() {
			e.requeueAt(at)
		}
	}
}

// requeueAt requests a reconcile at a time, unless an earlier one is requested.
func (s *scope) requeueAt(at time.Time) {
	if wait := max(at.Sub(s.Clock.Now()), time.Millisecond); s.result.RequeueAfter == 0 || wait < s.result.RequeueAfter {
		s.result.RequeueAfter = wait
	}
}
