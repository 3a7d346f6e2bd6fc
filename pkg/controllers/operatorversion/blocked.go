package operatorversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
)

// refuseSpec says why the install plan cannot be run, whether a plan is running or not.
func (a *action) refuseSpec(ctx context.Context) error {
	if err := a.createHolder(ctx); err != nil {
		return err
	}
	a.observeSpec()
	a.Next.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.FatalError, Message: a.refusal}
	a.reportBlocked(v1beta1.ReasonInvalidSpec, a.refusal)
	a.warnInRun(v1beta1.EventInvalidSpec, a.refusal)
	return nil
}

// reportKeyMissing says that there is no key to seal the record of a run with.
func (a *action) reportKeyMissing() {
	a.reportBlocked(v1beta1.ReasonHistoryKeyMissing, a.keyMissing)
	a.warnInRun(v1beta1.EventHistoryKeyMissing, a.keyMissing)
}

// reportFormatUnknown says that this version of kudo cannot read a record that is needed. The status and the run stay as they are for the
// version that can.
func (a *action) reportFormatUnknown(cause *history.FormatError) {
	a.Summarize = nil
	a.Next.Status = *a.Committed.Status.DeepCopy()
	a.reportBlocked(v1beta1.ReasonRecordFormatUnknown, cause.Error())
	a.warnInRun(v1beta1.EventRecordFormatUnknown, cause.Error())
	a.result.RequeueAfter = pollInterval
}

// reportRecordTaken reports that another object has the name of the record of the run that is due. Spec does not count as acted upon, so
// that the run stays due until the name is free. No watch shows that.
func (a *action) reportRecordTaken(taken *history.TakenError) {
	a.Summarize = nil // keeps the conditions that are set here
	a.Next.Status.ObservedGeneration, a.Next.Status.Content = a.Committed.Status.ObservedGeneration, a.Committed.Status.Content
	message := fmt.Sprintf("install plan %s cannot be started: %s", a.Next.Spec.InstallPlan, taken)
	a.Next.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: message}
	a.reportBlocked(v1beta1.ReasonRecordNameTaken, message)
	a.warnInRun(v1beta1.EventRecordNameTaken, message)
	a.result.RequeueAfter = pollInterval
}

// reportBlocked puts into the conditions why no run can be started. What an earlier run has installed stays installed.
func (a *action) reportBlocked(reason, message string) {
	if meta.IsStatusConditionTrue(a.Next.Status.Conditions, v1beta1.InstalledCondition) {
		a.setCondition(v1beta1.StalledCondition, metav1.ConditionTrue, reason, message)
	} else {
		a.setCondition(v1beta1.InstalledCondition, metav1.ConditionFalse, reason, message)
	}
}
