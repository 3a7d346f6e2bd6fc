package instance

import (
	"context"
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// isCanceled reports whether the annotation names the current run of the plan. Its value is the uid of the run, so that it can stay: it
// does not fit the next run.
func isCanceled(instance *v1beta1.Instance, plan string, st v1beta1.PlanStatus) bool {
	return plan != "" && st.UID != "" && instance.Annotations[v1beta1.CancelAnnotation] == string(st.UID)
}

// retryRequest is the request of the annotation that asks to run a failed run again.
func (o *observer) retryRequest(ctx context.Context) (*trigger.Request, error) {
	for name, st := range o.Next.Status.PlanStatus {
		_, defined := o.content.Spec.Plans[name]
		if !plans.IsRetryRequested(o.Next.Annotations, st) || !defined || name == v1beta1.CleanupPlan {
			continue
		}
		failed, err := o.History.Read(ctx, o.Next, st.Revision)
		if err != nil && !history.Unusable(err) {
			return nil, err
		}
		cause := fmt.Sprintf("%s run %d", trigger.CauseRetry, st.Revision)
		return &trigger.Request{Plan: name, Cause: cause, Upgrade: err == nil && failed.Upgrade}, nil
	}
	return nil, nil
}

// suspendRequest is the request for the plan that suspends or resumes the Instance, or nil if it is as spec.suspend wants it.
func (o *observer) suspendRequest() *trigger.Request {
	base := o.Next.Status.Baseline
	if base == nil || base.Revision == 0 || base.Suspended == o.Next.Spec.Suspend {
		return nil
	}
	plan := plans.FirstDefined(o.content.Spec.Plans, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	if plan == "" {
		return nil
	}
	cause := trigger.CauseSuspend
	if base.Suspended {
		cause = trigger.CauseResume
	}
	return &trigger.Request{Plan: plan, Cause: cause}
}
