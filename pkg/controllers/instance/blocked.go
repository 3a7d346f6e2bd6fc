package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
)

// blocked is a cause that has to be removed before anything is started.
type blocked struct {
	// state of an Instance that is idle.
	state state
	// reason of the condition, and event.
	reason, event string
	message       string
}

// refusedSpec says that spec cannot be acted upon as it is.
func refusedSpec(cause error) *blocked {
	return &blocked{specRefused, v1beta1.ReasonInvalidSpec, v1beta1.EventInvalidSpec, cause.Error()}
}

// nameTaken says that the next run cannot be recorded.
func nameTaken(cause *history.TakenError) *blocked {
	message := cause.Error() + ", or give the Instance another name"
	return &blocked{specRefused, v1beta1.ReasonRecordNameTaken, v1beta1.EventRecordNameTaken, message}
}

// versionMissing says that the OperatorVersion does not exist.
func (o *observer) versionMissing() *blocked {
	message := fmt.Sprintf("waits for OperatorVersion %s, which does not exist: install the package or correct spec.operatorVersion",
		o.Next.OperatorVersionKey())
	if o.Next.Spec.OperatorVersion.Name == "" {
		message = "spec.operatorVersion.name is empty: name the OperatorVersion to run"
	}
	return &blocked{versionMissing, v1beta1.ReasonOperatorVersionNotFound, v1beta1.EventInvalidOperatorVersion, message}
}

// versionPrivate returns why an OperatorVersion of another namespace must not be run, since the namespace is labeled private; nil if it
// may. The API server checks the verb use when the Instance is written, but the namespace may have been labeled since.
func (o *observer) versionPrivate(ctx context.Context) (refusal, err error) {
	key := o.Next.OperatorVersionKey()
	if key.Namespace == o.Next.Namespace {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	if err = o.readNamespace(ctx, key.Namespace, namespace); apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	if namespace.Labels[v1beta1.VersionsLabel] == v1beta1.PrivateVersions {
		refusal = fmt.Errorf("spec.operatorVersion names %s, and Namespace %s is labeled %s=%s: name an OperatorVersion of namespace %s", key,
			key.Namespace, v1beta1.VersionsLabel, v1beta1.PrivateVersions, o.Next.Namespace)
	}
	return refusal, err
}

// installPlanWait returns why the Instance must wait for the install plan of its OperatorVersion, or for the end of its release; empty if
// it need not. An Instance that already runs the version keeps running; the release waits for it.
func (o *observer) installPlanWait() string {
	ov := o.version
	base := o.Committed.Status.Baseline
	newcomer := base == nil || base.OperatorVersion != o.Next.OperatorVersionKey().String()
	if newcomer && ov.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(ov, v1beta1.OperatorVersionFinalizer) {
		return fmt.Sprintf("OperatorVersion %s/%s is being deleted, and what it installed is released: install it again once it is deleted, or "+
			"name another one", ov.Namespace, ov.Name)
	}
	if ov.Installed() && !history.IsForeign(ov.UID, ov.Status.PlanStatus) {
		return ""
	}
	text := fmt.Sprintf("waits for the install plan %q of OperatorVersion %s/%s", ov.Spec.InstallPlan, ov.Namespace, ov.Name)
	switch status := ov.Status.AggregatedStatus; {
	case status.Status == "":
		return text
	case status.Message == "":
		return fmt.Sprintf("%s (%s)", text, status.Status)
	default:
		return fmt.Sprintf("%s (%s: %s)", text, status.Status, status.Message)
	}
}

// reportBlocked puts into the status why nothing is started, with an event if that is new. The condition says it, and is not
// derived from the plans.
func (a *action) reportBlocked() {
	b := a.blocked
	a.Summarize = nil
	switch b.state {
	case installPending:
		a.setPending(a.start.Plan, b.reason, b.message)
		return
	case packageRefused:
		a.setPending(a.start.Plan, b.reason, b.message)
		a.result.RequeueAfter = loop.RecheckInterval // no watch shows that the labels of the namespace change
		a.announceBlocked()
		return
	case keyMissing, formatUnknown:
		a.result.RequeueAfter = loop.RecheckInterval
	case specRefused:
		a.Next.Status.ObservedGeneration = a.Next.Generation
	case parametersMissing, accountMissing: // no watch shows that an account has got rights, and a watch may lag
		a.result.Transient = true
		a.Next.Status.ObservedGeneration = a.Next.Generation
	}
	conditions.SetRefused(a.Next, b.reason, b.message)
	a.announceBlocked()
}

// announceBlocked records an event if the condition Ready says something new.
func (a *action) announceBlocked() {
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.ReadyCondition)
	now := meta.FindStatusCondition(a.Next.Status.Conditions, v1beta1.ReadyCondition)
	if before == nil || before.Reason != now.Reason || before.Message != now.Message {
		a.EventAfterCommit(corev1.EventTypeWarning, a.blocked.event, "%s", a.blocked.message)
	}
}

// reportFormatUnknown says that this version of kudo cannot read a record that is needed. The status and the run stay as they are for the
// version that can.
func (a *action) reportFormatUnknown(ctx context.Context, cause *history.FormatError) error {
	a.revertStatus()
	if a.deleted {
		return a.awaitCleanup(ctx, v1beta1.ReasonRecordFormatUnknown, v1beta1.EventRecordFormatUnknown, cause.Error()+". Or")
	}
	a.blocked = &blocked{formatUnknown, v1beta1.ReasonRecordFormatUnknown, v1beta1.EventRecordFormatUnknown, cause.Error()}
	a.reportBlocked()
	return nil
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
func (s *scope) revertStatus() {
	s.Next.Status = *s.Committed.Status.DeepCopy()
	s.clearPending()
}

// clearPending removes the PENDING marker of the last reconcile; the decision is made anew. An Instance that never ran anything
// has no plans listed then: one that lists plans and has no baseline would be taken for one of KUDO's.
func (s *scope) clearPending() {
	status := &s.Next.Status
	for name, st := range status.PlanStatus {
		if st.Status == v1beta1.Pending && st.UID == "" {
			st.Status, st.Message = v1beta1.NeverRun, ""
			status.PlanStatus[name] = st
		}
	}
	if s.wasPending() && status.Baseline == nil {
		status.PlanStatus = nil
	}
}
