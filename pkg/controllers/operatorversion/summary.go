package operatorversion

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// deriveConditions sums the status up:
//
//	never succeeded, runs      Installed False InstallPlanInProgress
//	never succeeded, failed    Installed False InstallPlanFailed        Stalled True
//	succeeded once             Installed True: what it installed is there
//	succeeded, failed later    Installed True                           Stalled True
func (a *action) deriveConditions() {
	status := &a.Next.Status
	last, st := plans.LatestRun(status.PlanStatus)
	if last == "" {
		return
	}
	status.AggregatedStatus = plans.Aggregate(status.PlanStatus)
	switch {
	case st.Status == v1beta1.Complete:
		a.setCondition(v1beta1.InstalledCondition, metav1.ConditionTrue, v1beta1.ReasonInstallPlanComplete, "")
	case meta.IsStatusConditionTrue(status.Conditions, v1beta1.InstalledCondition):
	case st.Status == v1beta1.FatalError:
		a.setCondition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonInstallPlanFailed, st.Message)
	default:
		a.setCondition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonInstallPlanInProgress, "plan "+last+" is running")
	}
	if st.Status == v1beta1.FatalError {
		a.setCondition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInFatalError, "plan "+last+" failed: "+st.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.StalledCondition)
	}
	var wrong []v1beta1.ObjectDrift
	if st.Status == v1beta1.Complete {
		for _, r := range a.inventory {
			if message := a.mismatchMessage(r); message != "" {
				wrong = append(wrong, a.driftOf(r, message))
			}
		}
	}
	status.Drift = conditions.ListDrift(status.Drift, wrong, a.Clock.Now())
}

// driftOf returns the entry of status.drift for an object that differs from the package. The inventory holds the message only. Fields and
// writer come from the comparison of this reconcile, or else from the entry that status.drift has with the same message.
func (a *action) driftOf(r v1beta1.HeldResource, message string) v1beta1.ObjectDrift {
	of := v1beta1.ObjectDrift{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
		Message: text.Plain(message, v1beta1.MaxDriftMessage)}
	if found, compared := a.mismatches[share.IDOf(r)]; compared && text.Truncate(found.Error(), maxMessage) == message {
		for _, d := range found.Differences {
			of.Fields = append(of.Fields, "."+d.Path)
		}
		of.Writer = found.By
		return of
	}
	at := slices.IndexFunc(a.Next.Status.Drift, func(d v1beta1.ObjectDrift) bool { return d.IsSameObject(of) && d.Message == of.Message })
	if at >= 0 {
		of.Fields, of.Writer = a.Next.Status.Drift[at].Fields, a.Next.Status.Drift[at].Writer
	}
	return of
}

func (a *action) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&a.Next.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: text.Truncate(message, maxCondition), ObservedGeneration: a.Next.Generation,
	})
}

// maxCondition bounds the message of a condition, in bytes; the API allows 32 KiB.
const maxCondition = 4096
