package instance

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// startCleanup starts the cleanup plan, and ends a plan that is running. In a namespace that terminates, where no run can be
// recorded, no cleanup plan runs.
func (a *action) startCleanup(ctx context.Context) error {
	a.Summarize = a.summarize
	if name, st := a.activePlan(); name != "" {
		plans.Fail(&st, "ended, since the Instance is being deleted", a.Clock.Now())
		a.endRun(name, st, metrics.OutcomeCancelled)
	}
	a.Next.Status.Queue = nil
	if refusal, err := a.contentRefused(ctx, a.cleanupVersionKey(), a.cleanup); err != nil {
		return err
	} else if refusal != "" {
		return a.awaitCleanup(ctx, v1beta1.ReasonPackageNotVerified, v1beta1.EventPackageNotVerified, refusal+". Or")
	}
	if missing, err := a.accountMissing(ctx); err != nil {
		return err
	} else if missing != "" {
		return a.awaitCleanup(ctx, v1beta1.ReasonServiceAccountNotFound, v1beta1.EventServiceAccountMissing, "it "+missing+". Or")
	}
	values, err := a.cleanupValues(ctx)
	if err != nil {
		return err
	}
	cause := trigger.CauseDeletion
	if a.deletion == trigger.Hold {
		cause = trigger.CauseRetry + " cleanup"
	}
	err = a.startRun(ctx, v1beta1.CleanupPlan, cause, a.cleanup, false, values)
	terminating := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if apierrors.IsNotFound(err) { // the namespace may not exist anymore, or a revision was deleted in the meantime
		var failed error
		if terminating, failed = a.IsNamespaceTerminating(ctx); failed != nil {
			return failed
		}
	}
	taken := new(history.TakenError)
	switch {
	case terminating:
		return a.releaseInstance(ctx)
	case errors.As(err, &taken):
		a.result.Transient = true // nothing tells when the name is free
		return a.awaitCleanup(ctx, v1beta1.ReasonRecordNameTaken, v1beta1.EventRecordNameTaken, taken.Error()+", or")
	case cannotBeStored(err):
		a.Warn(v1beta1.EventCleanupSkipped, "plan cleanup was skipped, since its run cannot be recorded: %s", err)
		return a.releaseInstance(ctx)
	case err != nil:
		return err
	}
	return a.continueCleanup(ctx)
}

// awaitCleanup keeps an Instance that is being deleted until its cleanup plan can be started; the cause says what it waits for, and is
// followed by the other remedy. An Instance that never ran a plan is released, since there is nothing to clean up.
func (a *action) awaitCleanup(ctx context.Context, reason, event, cause string) error {
	if last, _ := plans.LatestRun(a.Next.Status.PlanStatus); last == "" {
		return a.releaseInstance(ctx)
	}
	terminating, err := a.IsNamespaceTerminating(ctx)
	switch {
	case err != nil:
		return err
	case terminating:
		return a.releaseInstance(ctx)
	}
	message := fmt.Sprintf("plan %s cannot be started: %s remove the finalizer %s, which leaves what the plan would clean up",
		v1beta1.CleanupPlan, cause, v1beta1.CleanupFinalizer)
	a.blocked = &blocked{cleanupDue, reason, event, message}
	a.reportBlocked()
	a.result.RequeueAfter = loop.RecheckInterval // no watch shows that the namespace terminates
	return nil
}

// cleanupVersionKey names the OperatorVersion whose cleanup plan counts.
func (a *action) cleanupVersionKey() types.NamespacedName {
	if base := a.Next.Status.Baseline; base != nil && a.cleanup != a.content {
		return key(base.OperatorVersion)
	}
	return a.Next.OperatorVersionKey()
}

// continueCleanup continues the cleanup plan. It releases the Instance when the plan is complete, and when it is canceled: then
// the cleanup is given up.
func (a *action) continueCleanup(ctx context.Context) error {
	if name, st := a.activePlan(); isCanceled(a.Next, name, st) {
		if err := a.cancelRun(ctx); err != nil {
			return err
		}
	}
	if active, _ := a.activePlan(); active != v1beta1.CleanupPlan {
		return a.releaseInstance(ctx)
	}
	if ended, err := a.executeRun(ctx); ended || err != nil {
		return err
	}
	if err := a.checkObjects(ctx); err != nil {
		return err
	}
	if a.Next.Status.PlanStatus[v1beta1.CleanupPlan].Status != v1beta1.Complete {
		return nil
	}
	if err := a.Commit(ctx); err != nil {
		return err
	}
	return a.releaseInstance(ctx)
}

// holdForCleanup keeps an Instance whose cleanup plan has failed, until it is retried or given up, or the namespace terminates.
func (a *action) holdForCleanup(ctx context.Context) error {
	a.result.RequeueAfter = loop.RecheckInterval // no watch shows that the namespace terminates
	return a.checkObjects(ctx)
}

// releaseInstance removes the finalizer, with which the Instance ends. The finalizer stays while the Instance owns objects that are to be
// kept.
func (a *action) releaseInstance(ctx context.Context) error {
	if a.releaseKept(ctx) {
		a.result.RequeueAfter = keepInterval
		return nil
	}
	a.result = loop.Done
	return a.SetFinalizer(ctx, v1beta1.CleanupFinalizer, false)
}
