package instance

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/plans"
)

// uninstalled says what of the OperatorVersion is not installed yet, or not for long any more; empty if all is. Who runs the
// version already goes on with it: the release waits for him.
func (p *pass) uninstalled() string {
	ov := p.version
	base := p.written.Status.Baseline
	newcomer := base == nil || base.OperatorVersion != p.instance.OperatorVersionKey().String()
	if newcomer && ov.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(ov, v1beta1.OperatorVersionFinalizer) {
		return fmt.Sprintf("OperatorVersion %s/%s is being deleted, and what it installed is released: install it again when it is gone, or name another one", ov.Namespace, ov.Name)
	}
	if ov.Installed() {
		return ""
	}
	text := fmt.Sprintf("waits for the install plan %q of OperatorVersion %s/%s", ov.Spec.InstallPlan, ov.Namespace, ov.Name)
	switch a := ov.Status.AggregatedStatus; {
	case a.Status == "":
		return text
	case a.Message == "":
		return fmt.Sprintf("%s (%s)", text, a.Status)
	default:
		return fmt.Sprintf("%s (%s: %s)", text, a.Status, a.Message)
	}
}

// pending shows a plan that is about to be started, and what it waits for. Nothing is started and nothing is answered: the
// same is decided again when the wait is over.
func (p *pass) pending(ctx context.Context, plan, reason, message string) (bool, error) {
	p.pend(plan, reason, message)
	return true, p.commit(ctx)
}

func (p *pass) pend(plan, reason, message string) {
	p.instance.Status = *p.written.Status.DeepCopy()
	status := &p.instance.Status
	status.ObservedGeneration = p.instance.Generation
	status.PlanStatus = plans.List(status.PlanStatus, p.live.Spec.InstancePlans())
	if st := status.PlanStatus[plan]; st.Status == v1beta1.NeverRun {
		st.Status, st.Message = v1beta1.Pending, message
		status.PlanStatus[plan] = st
	}
	status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: message}
	conditions.Refused(p.instance, reason, message)
}

// wake forgets that a plan was pending: what is decided now counts. An Instance that never ran anything has no plans
// listed then: one that lists plans and has no baseline would be taken for one of KUDO's.
func (p *pass) wake(context.Context) (bool, error) {
	status := &p.instance.Status
	for name, st := range status.PlanStatus {
		if st.Status == v1beta1.Pending && st.UID == "" {
			st.Status, st.Message = v1beta1.NeverRun, ""
			status.PlanStatus[name] = st
		}
	}
	if p.waited() && status.Baseline == nil {
		status.PlanStatus = nil
	}
	return false, nil
}

// waited tells whether the Instance was pending when it was written last.
func (p *pass) waited() bool {
	ready := meta.FindStatusCondition(p.written.Status.Conditions, v1beta1.ReadyCondition)
	return ready != nil && (ready.Reason == v1beta1.ReasonWaitingForInstallPlan || ready.Reason == v1beta1.ReasonWaitingForCRDs)
}
