package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// VersionCondition reports whether a wait for an OperatorVersion is over, and how it ended. The OperatorVersion is nil if it
// is absent.
type VersionCondition func(*v1beta1.OperatorVersion) (done bool, err error)

// UntilInstalled is met when the install plan is complete. It returns an error if the plan failed, and no retry of it is requested.
func UntilInstalled(uid types.UID) VersionCondition {
	return func(ov *v1beta1.OperatorVersion) (bool, error) {
		switch {
		case ov == nil, ov.UID != uid:
			return true, fmt.Errorf("the OperatorVersion was deleted")
		case ov.Spec.InstallPlan == "":
			return true, nil
		case ov.Status.ObservedGeneration < ov.Generation:
			return false, nil
		}
		if plans.IsRetryRequested(ov.Annotations, ov.Status.PlanStatus[ov.Spec.InstallPlan]) {
			return false, nil
		}
		switch a := ov.Status.AggregatedStatus; a.Status {
		case v1beta1.FatalError:
			return true, WithCode(ExitFailed, fmt.Errorf("install plan %s of operatorversion %s/%s failed: %s", ov.Spec.InstallPlan, ov.Namespace,
				ov.Name, a.Message))
		case v1beta1.Complete:
			return true, nil
		}
		return false, nil
	}
}

// WaitForVersion watches an OperatorVersion until the condition is met, and draws its install plan.
func (env *Env) WaitForVersion(ctx context.Context, c client.WithWatch, key types.NamespacedName, limit time.Duration,
	over VersionCondition) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, lines, start := screen{env: env}, changeLines{writef: env.Notef}, env.Now()
	var ov *v1beta1.OperatorVersion
	show := s.draw
	draw := func() {
		switch mode := env.progressMode(); {
		case ov == nil || mode == progressNone:
		case mode == progressPlain:
			lines.report(ov.Status.PlanStatus, ov.Status.AggregatedStatus.Message, env.Now())
		default:
			show(FormatInstallPlan(ov, env.Now()) + fmt.Sprintf("%s elapsed", env.Now().Sub(start).Round(time.Second)))
		}
	}
	for {
		known := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		done, err := observe(ctx, c, &v1beta1.OperatorVersionList{}, known, draw, func(obj client.Object) (bool, error) {
			ov, _ = obj.(*v1beta1.OperatorVersion)
			return over(ov)
		})
		switch {
		case done:
			show = s.leave
			draw()
			var coded *CodeError
			if ov != nil && errors.As(err, &coded) && coded.Code == ExitFailed {
				return withDetails(err, env.ExplainVersion(ctx, c, ov))
			}
			return err
		case ctx.Err() == context.DeadlineExceeded:
			message := "it has no status: is the manager running?"
			if ov != nil && ov.Status.AggregatedStatus.Message != "" {
				message = ov.Status.AggregatedStatus.Message
			} else if ov != nil && ov.Status.AggregatedStatus.Status != "" {
				message = "its install plan is " + string(ov.Status.AggregatedStatus.Status)
			}
			err := WithCode(ExitTimeout, fmt.Errorf("operatorversion %s is not done after %s: %s", key, limit, message))
			return withDetails(err, env.ExplainVersion(context.WithoutCancel(ctx), c, ov))
		case ctx.Err() != nil:
			return &interruptedError{fmt.Sprintf("the cluster continues: kubectl kudo plan status --operator-version %s -n %s --wait", key.Name,
				key.Namespace)}
		case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			return err
		}
	}
}
