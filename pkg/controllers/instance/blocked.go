package instance

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/plans"
)

// reportBlocked puts into the status why nothing is started, with an event if that is new. The condition says it, and is not
// derived from the plans.
func (a *action) reportBlocked() {
	b := a.blocked
	a.Summarize = nil
	switch b.state {
	case installPending:
		a.setPending(a.start.Plan, b.reason, b.message)
		return
	case keyMissing:
		a.result.RequeueAfter = loop.RecheckInterval
	case specRefused:
		a.Next.Status.ObservedGeneration = a.Next.Generation
	case parametersMissing, accountMissing: // no watch shows that an account may read what it could not, and one may lag
		a.result.Transient = true
		a.Next.Status.ObservedGeneration = a.Next.Generation
	}
	conditions.SetRefused(a.Next, b.reason, b.message)
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.ReadyCondition)
	now := meta.FindStatusCondition(a.Next.Status.Conditions, v1beta1.ReadyCondition)
	if before == nil || before.Reason != now.Reason || before.Message != now.Message {
		a.EventAfterCommit(corev1.EventTypeWarning, b.event, "%s", b.message)
	}
}

// setPending shows a plan that is about to be started, and what it waits for. Nothing is started and no request is answered: the
// same is decided again when the wait is over.
func (a *action) setPending(plan, reason, message string) {
	a.Summarize = nil
	a.revertStatus()
	status := &a.Next.Status
	status.ObservedGeneration = a.Next.Generation
	status.PlanStatus = plans.WithNeverRun(status.PlanStatus, a.content.Spec.InstancePlans())
	if st := status.PlanStatus[plan]; st.Status == v1beta1.NeverRun {
		st.Status, st.Message = v1beta1.Pending, message
		status.PlanStatus[plan] = st
	}
	status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: message}
	conditions.SetRefused(a.Next, reason, message)
}

// revertStatus drops what the reconcile has put into the status. The PENDING marker of the last reconcile stays cleared.
func (a *action) revertStatus() {
	a.Next.Status = *a.Committed.Status.DeepCopy()
	a.clearPending()
}

// clearPending removes the PENDING marker of the last reconcile; the decision is made anew. An Instance that never ran anything
// has no plans listed then: one that lists plans and has no baseline would be taken for one of KUDO's.
func (a *action) clearPending() {
	status := &a.Next.Status
	for name, st := range status.PlanStatus {
		if st.Status == v1beta1.Pending && st.UID == "" {
			st.Status, st.Message = v1beta1.NeverRun, ""
			status.PlanStatus[name] = st
		}
	}
	if a.wasPending() && status.Baseline == nil {
		status.PlanStatus = nil
	}
}
