package clusters

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// unknownState is the state of an Instance of which neither a member nor the condition Ready says what is wrong.
const unknownState = "Unknown"

// StateOf returns for people what the members of an Instance add up to: the state of the worst one, or why the Instance is not
// ready although each member is. It is Ready only if the condition Ready says so of the present generation.
func StateOf(instance *v1beta1.Instance) string {
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1beta1.ReadyCondition)
	observed := ready != nil && ready.ObservedGeneration == instance.Generation
	if observed && ready.Status == metav1.ConditionTrue {
		return string(v1beta1.MemberReady)
	}
	states := []v1beta1.MemberState{}
	for _, m := range instance.Status.Members {
		if slices.Contains(severity, m.State) {
			states = append(states, m.State)
		}
	}
	if !observed && len(instance.Status.Members) > 0 { // the hub has not acted upon the change yet
		states = append(states, v1beta1.MemberLagging)
	}
	switch {
	case len(states) > 0:
		return string(slices.MinFunc(states, func(a, b v1beta1.MemberState) int {
			return cmp.Compare(slices.Index(severity, a), slices.Index(severity, b))
		}))
	case observed:
		return cmp.Or(ready.Reason, unknownState)
	}
	return unknownState
}
