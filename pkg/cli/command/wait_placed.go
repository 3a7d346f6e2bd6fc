package command

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// UntilEnded is met when what the spec of an Instance asks for is done: by its plans, or, on a hub, by those of all clusters.
func UntilEnded(i *v1beta1.Instance) InstanceCondition {
	if i.IsTemplate() {
		return untilPlaced(i.Generation, i.UID)
	}
	return UntilArrived(i.Generation, i.UID)
}

// untilPlaced is met when each cluster of an Instance is ready with a generation. It returns an error if the rollout is stopped, if a
// cluster has failed, and if the hub cannot place the Instance.
func untilPlaced(generation int64, uid types.UID) InstanceCondition {
	return func(i *v1beta1.Instance) (bool, error) {
		if i == nil || i.UID != uid {
			return true, fmt.Errorf("the Instance was deleted")
		}
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		if ready == nil || ready.ObservedGeneration < generation {
			return false, nil
		}
		switch ready.Reason {
		case v1beta1.ReasonWaveStopped, v1beta1.ReasonMemberFailed, v1beta1.ReasonInvalidSpec, v1beta1.ReasonForeignPolicy,
			v1beta1.ReasonPolicyRefused:
			return true, WithCode(ExitFailed, fmt.Errorf("instance %s/%s: %s: kubectl kudo placement show --instance %s -n %s has each cluster",
				i.Namespace, i.Name, strings.TrimSuffix(ready.Message, "."), i.Name, i.Namespace))
		}
		return ready.Status == metav1.ConditionTrue, nil
	}
}
