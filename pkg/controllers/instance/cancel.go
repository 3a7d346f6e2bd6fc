package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
)

// cancelRun ends the run, as its annotation asks.
func (a *action) cancelRun(ctx context.Context) error {
	name, st := a.activePlan()
	plans.Fail(&st, plans.CancelMessage, a.Clock.Now())
	a.endRun(name, st, metrics.OutcomeCancelled)
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanCancelled, "Execution of plan %s was cancelled%s", name,
		byUser(a.runRequester()))
	a.Summarize = a.summarize
	return a.Commit(ctx)
}
