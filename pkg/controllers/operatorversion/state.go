package operatorversion

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// deletion has the Installation released, and lets the OperatorVersion go after it. A namespace that goes is not held
// up: the Installation is released on its own then.
func (p *pass) deletion(ctx context.Context) (bool, error) {
	if p.ov.DeletionTimestamp == nil {
		return false, nil
	}
	if !slices.Contains(p.ov.Finalizers, v1beta1.OperatorVersionFinalizer) {
		return true, nil
	}
	if p.holder != nil {
		if err := p.release(ctx); err != nil {
			return true, err
		}
		going, err := p.namespaceGoes(ctx)
		if err != nil || !going {
			return true, err
		}
	}
	return true, p.finalize(ctx, false)
}

// release asks for the deletion of the Installation, and shows what it waits for.
func (p *pass) release(ctx context.Context) error {
	if forced := p.ov.Annotations[v1beta1.ForceReleaseAnnotation]; forced != p.holder.Annotations[v1beta1.ForceReleaseAnnotation] {
		patch := client.MergeFrom(p.holder.DeepCopy())
		p.holder = p.holder.DeepCopy()
		metav1.SetMetaDataAnnotation(&p.holder.ObjectMeta, v1beta1.ForceReleaseAnnotation, forced)
		if err := p.Client.Patch(ctx, p.holder, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if p.holder.DeletionTimestamp == nil {
		background, uid := metav1.DeletePropagationBackground, p.holder.UID
		err := p.Client.Delete(ctx, p.holder, &client.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
		return client.IgnoreNotFound(err)
	}
	if waits := meta.FindStatusCondition(p.holder.Status.Conditions, v1beta1.ReleasedCondition); waits != nil {
		p.condition(v1beta1.ReleasedCondition, waits.Status, waits.Reason, waits.Message)
		p.ov.Status.AggregatedStatus.Message = waits.Message
	}
	return p.commit(ctx)
}

// settle derives the conditions, and commits.
func (p *pass) settle(ctx context.Context) (bool, error) {
	p.derive()
	return true, p.commit(ctx)
}

// derive sums the status up:
//
//	never succeeded, runs      Installed False InstallPlanInProgress
//	never succeeded, failed    Installed False InstallPlanFailed        Stalled True
//	succeeded once             Installed True: what it installed is there
//	succeeded, failed later    Installed True                           Stalled True
func (p *pass) derive() {
	status := &p.ov.Status
	last := plans.Last(status.PlanStatus)
	if last == "" {
		return
	}
	st := status.PlanStatus[last]
	status.AggregatedStatus = plans.Aggregate(status.PlanStatus)
	switch {
	case st.Status == v1beta1.Complete:
		p.condition(v1beta1.InstalledCondition, metav1.ConditionTrue, v1beta1.ReasonInstalled, "")
	case meta.IsStatusConditionTrue(status.Conditions, v1beta1.InstalledCondition):
	case st.Status == v1beta1.FatalError:
		p.condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonInstallFailed, st.Message)
	default:
		p.condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonInstalling, "plan "+last+" is running")
	}
	if st.Status == v1beta1.FatalError {
		p.condition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInFatalError, "plan "+last+" failed: "+st.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.StalledCondition)
	}
	var wrong []string
	if st.Status == v1beta1.Complete {
		for _, r := range p.held {
			if message := p.wrong(r); message != "" {
				wrong = append(wrong, message)
			}
		}
	}
	if len(wrong) > 0 {
		p.condition(v1beta1.DriftedCondition, metav1.ConditionTrue, v1beta1.ReasonDrift, strings.Join(wrong, "; "))
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.DriftedCondition)
	}
}

func (p *pass) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.ov.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message[:min(len(message), maxCondition)], ObservedGeneration: p.ov.Generation,
	})
}

// maxCondition bounds the message of a condition, in bytes; the API allows 32 KiB.
const maxCondition = 4096
