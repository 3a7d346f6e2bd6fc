package clusters

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestStateOf checks that the state of an Instance is never greener than its worst member or its condition Ready.
func TestStateOf(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		states   []v1beta1.MemberState
		ready    metav1.ConditionStatus // "" for no condition
		observed int64
		want     string
	}{
		{"all are ready", []v1beta1.MemberState{"Ready", "Ready"}, metav1.ConditionTrue, 3, "Ready"},
		{"a change that the hub has not seen", []v1beta1.MemberState{"Ready", "Ready"}, metav1.ConditionTrue, 2, "Lagging"},
		{"a failure is worse than a loss", []v1beta1.MemberState{"Ready", "Lost", "Failed"}, metav1.ConditionFalse, 3, "Failed"},
		{"a loss is worse than what is held", []v1beta1.MemberState{"Held", "Lost"}, metav1.ConditionUnknown, 3, "Lost"},
		{"the engine is silent", []v1beta1.MemberState{"Ready"}, metav1.ConditionUnknown, 3, "EngineSilent"},
		{"a state of another version of kudo", []v1beta1.MemberState{"Odd"}, metav1.ConditionUnknown, 3, "EngineSilent"},
		{"nothing is known", nil, "", 0, "Unknown"},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		for _, state := range tc.states {
			i.Status.Members = append(i.Status.Members, v1beta1.MemberStatus{State: state})
		}
		if tc.ready != "" {
			i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: tc.ready, Reason: v1beta1.ReasonEngineSilent,
				ObservedGeneration: tc.observed}}
		}
		if got := StateOf(i); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}
