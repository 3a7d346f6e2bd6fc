package operatorversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
)

// refusalInterval is the time after which it is noticed that a policy allows a refused package, since the labels of the namespace have
// changed.
const refusalInterval = 30 * time.Second

// errRunHeld ends the execution of a run whose content PackagePolicies refuse meanwhile.
var errRunHeld = errors.New("PackagePolicies refuse the package")

// observeVerdict asks the PackagePolicies for the OperatorVersion, unless it is being deleted.
func (r *Reconciler) observeVerdict(ctx context.Context, ov *v1beta1.OperatorVersion) (trust.Verdict, error) {
	if ov.DeletionTimestamp != nil {
		return trust.Verdict{Allowed: true}, nil
	}
	return r.Judge(ctx, trust.Request{Caller: metrics.CallerOperatorVersion, Version: ov,
		Identity: fmt.Sprintf("%s/%d", ov.UID, ov.Generation), Namespace: ov.Namespace})
}

// reportVerdict puts the verdict into the condition Verified, with an event if it is new. A cluster without policies has no verdicts.
func (a *action) reportVerdict() {
	v := a.verdict
	if v.Reason == "" {
		if a.Next.DeletionTimestamp == nil {
			meta.RemoveStatusCondition(&a.Next.Status.Conditions, v1beta1.VerifiedCondition)
		}
		return
	}
	status, kind, event := metav1.ConditionFalse, corev1.EventTypeWarning, v1beta1.EventPackageNotVerified
	switch {
	case v.Reason == trust.Verified:
		status, kind, event = metav1.ConditionTrue, corev1.EventTypeNormal, v1beta1.EventPackageVerified
	case v.Allowed && (v.Reason == trust.NoPolicy || v.Reason == trust.NotRequired):
		status, event = metav1.ConditionUnknown, ""
	}
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.VerifiedCondition)
	a.setCondition(v1beta1.VerifiedCondition, status, string(v.Reason), v.Message)
	if event != "" && (before == nil || before.Reason != string(v.Reason)) {
		a.EventAfterCommit(kind, event, "%s", v.Message)
	}
}

// requeueForVerdict requeues the OperatorVersion for when the verdict changes by the time alone. No watch shows that a refused one is
// allowed by the labels of its namespace, or since a package that vouches for it has appeared.
func (a *action) requeueForVerdict() {
	if !a.verdict.Allowed && a.Next.DeletionTimestamp == nil && (a.result.RequeueAfter == 0 || refusalInterval < a.result.RequeueAfter) {
		a.result.RequeueAfter = refusalInterval
	}
	if until := a.verdict.Until; !until.IsZero() {
		wait := max(until.Sub(a.Clock.Now()), time.Second)
		if a.result.RequeueAfter == 0 || wait < a.result.RequeueAfter {
			a.result.RequeueAfter = wait
		}
	}
}

// refusePackage says why the install plan does not run. What it has installed stays, and is not restored.
func (a *action) refusePackage() {
	a.result.RequeueAfter = refusalInterval
	a.Next.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: a.packageRefusal}
	a.reportBlocked(v1beta1.ReasonPackageNotVerified, a.packageRefusal)
}
