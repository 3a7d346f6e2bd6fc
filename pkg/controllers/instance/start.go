package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// startPlan starts a run, and executes it. It waits for the CustomResourceDefinitions of the Instance.
func (a *action) startPlan(ctx context.Context) error {
	if !a.running && !trigger.IsScheduled(a.start.Cause) { // a schedule changes no condition, and deploy has installed them
		if there, err := a.awaitCRDs(ctx); err != nil || !there {
			return err
		}
	}
	given, err := a.valuesExceptDeferred(ctx, a.decision.Deferred)
	if err != nil {
		return err
	}
	upgrade := a.start.Upgrade
	if a.decision.Restart {
		if upgrade, err = a.isUpgrade(ctx); err != nil {
			return err
		}
	}
	queue := a.Next.Status.Queue
	a.adoptDecision(*a.decision)
	err = a.startRun(ctx, a.start.Plan, a.start.Cause, a.content, upgrade, given)
	if err != nil {
		return a.refuseStart(ctx, err)
	}
	a.announceQueued(queue)
	return a.continueRun(ctx)
}

// A new Instance checks each formerInterval whether the records of a former one of its name are deleted, since no watch shows it. After
// formerPatience it checks with back-off, since a finalizer can keep such a record for ever.
const (
	formerInterval = time.Second
	formerPatience = 2 * time.Minute
)

// refuseStart reports why a run could not be recorded, and returns transient errors. Nothing was started, and no request is
// answered.
func (a *action) refuseStart(ctx context.Context, cause error) error {
	if isTooLarge(cause) {
		cause = fmt.Errorf("%w: the record is too large to be stored: shorten the parameters, or the templates of the package", cause)
	}
	refused, taken, former := refusedSpec(cause), new(history.TakenError), new(history.FormerOwnerError)
	switch {
	case errors.As(cause, &former) && !a.running && !trigger.IsScheduled(a.start.Cause):
		a.setPending(a.start.Plan, v1beta1.ReasonWaitingForDeletion, former.Error())
		if a.Clock.Since(a.Next.CreationTimestamp.Time) < formerPatience {
			a.result.RequeueAfter = formerInterval
		} else {
			a.result.Transient = true
		}
		return nil
	case errors.As(cause, &taken):
		refused = nameTaken(taken)
		a.result.Transient = true // no watch shows that the name is free
	case !cannotBeStored(cause):
		return cause
	}
	isScheduled := trigger.IsScheduled(a.start.Cause)
	a.revertStatus()
	if isScheduled {
		a.result.Transient = true
		a.schedules.reportDue(a.schedules.due[0], refused.message)
		return a.checkObjects(ctx)
	}
	return a.refuse(ctx, refused)
}

// refuse says why the spec cannot be acted upon. A running plan continues.
func (a *action) refuse(ctx context.Context, cause *blocked) error {
	a.blocked = cause
	if a.running {
		return a.continueRun(ctx)
	}
	a.reportBlocked()
	return nil
}

// acknowledge notes that spec has been decided upon, and adopts a decision that starts nothing.
func (a *action) acknowledge() {
	if a.decision == nil {
		return
	}
	a.Next.Status.ObservedGeneration = a.Next.Generation
	a.warnIgnoredParameters(a.decision.Ignored)
	if a.start == nil {
		queue := a.Next.Status.Queue
		a.adoptDecision(*a.decision)
		a.announceQueued(queue)
	}
}

// cannotBeStored reports whether a run can never be recorded, as with a name that is too long for a label.
func cannotBeStored(err error) bool { return apierrors.IsInvalid(err) || isTooLarge(err) }

// isTooLarge reports whether a write was refused for its size. What is more than etcd takes, or than the API server sends to it, is
// answered with a 500, like transient errors.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil &&
		(strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "trying to send message larger than max"))
}

// adoptDecision puts a decision into the status. The baseline keeps the fields that plans/trigger does not know.
func (a *action) adoptDecision(decision trigger.Decision) {
	status := &a.Next.Status
	status.Queue = decision.Queue
	a.setQueueRequesters()
	if base := decision.Baseline; base != nil {
		if old := status.Baseline; old != nil {
			base.Revision, base.Snapshot, base.ContentHash = old.Revision, old.Snapshot, old.ContentHash
			base.Suspended, base.Sensitive, base.RunAs, base.UpgradeIncomplete = old.Suspended, old.Sensitive, old.RunAs, old.UpgradeIncomplete
			base.Completed = old.Completed
		} else if plans.LacksVersion(base, status.PlanStatus) { // KUDO has run it
			base.Completed = new(v1beta1.NewPackageVersion(a.content.Spec))
		}
		status.Baseline = base
	}
	a.setBaselineGeneration()
}

// announceQueued records an event for each plan of the queue that was not in the queue before.
func (a *action) announceQueued(before []v1beta1.QueuedPlan) {
	for _, q := range a.Next.Status.Queue {
		if queuedPlan(before, q.PlanName) == nil {
			behind := ""
			if running, _ := a.activePlan(); running != "" {
				behind = " behind plan " + running
			}
			a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanQueued, "Plan %s is queued%s: %s%s", q.PlanName, behind, q.Cause,
				byUser(q.RequestedBy))
		}
	}
}

// warnIgnoredParameters warns once of parameters that the OperatorVersion does not define.
func (a *action) warnIgnoredParameters(names []string) {
	if len(names) > 0 && a.Committed.Status.ObservedGeneration != a.Next.Generation {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventUnknownParameter, "spec.parameters %s are not defined by OperatorVersion %s "+
			"and ignored: remove or correct them",
			strings.Join(names, ", "), a.Next.OperatorVersionKey())
	}
}
