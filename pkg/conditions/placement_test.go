package conditions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// heldInstance is a copy of generation 3 of a template, in a cluster, whose plans have acted upon generation 6 of the copy.
func heldInstance(plans map[string]v1beta1.ExecutionStatus, before ...metav1.Condition) *v1beta1.Instance {
	i := instance(plans, nil, before...)
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	i.Annotations = map[string]string{v1beta1.KarmadaUIDAnnotation: "u", v1beta1.KarmadaGenerationAnnotation: "3", v1beta1.ReleasedAnnotation: "u/2"}
	i.Status.ObservedGeneration = 6
	return i
}

// TestSetPlaced checks C29, C31 and C32: the conditions of a hub speak of its generation, and Reconciling and Stalled are there only while
// they hold.
func TestSetPlaced(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: message}
	}
	old := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Old", Message: "old", ObservedGeneration: 6}
	}
	lagging := ready(metav1.ConditionUnknown, v1beta1.ReasonMembersLagging, "0 of 1")
	for _, tc := range []struct {
		reason               string
		before               []metav1.Condition
		ready                metav1.Condition
		reconciling, stalled bool
		want                 []string
	}{
		{"all are ready: one condition", nil, ready(metav1.ConditionTrue, v1beta1.ReasonMembersReady, ""), false, false, []string{"Ready=True MembersReady"}},
		{"some have still to follow", nil, lagging, true, false, []string{"Ready=Unknown MembersLagging: 0 of 1", "Reconciling=True MembersLagging: 0 of 1"}},
		{"one has failed", nil, ready(metav1.ConditionFalse, v1beta1.ReasonMemberFailed, "m1 is Failed"), false, true,
			[]string{"Ready=False MemberFailed: m1 is Failed", "Stalled=True MemberFailed: m1 is Failed"}},
		{"neither, and not ready", nil, ready(metav1.ConditionFalse, v1beta1.ReasonMemberNotReady, "m1 is NotReady"), false, false,
			[]string{"Ready=False MemberNotReady: m1 is NotReady"}},
		{"what held before is over", []metav1.Condition{old(v1beta1.ReadyCondition), old(v1beta1.ReconcilingCondition), old(v1beta1.StalledCondition)},
			ready(metav1.ConditionTrue, v1beta1.ReasonMembersReady, ""), false, false, []string{"Ready=True MembersReady"}},
		{"what holds again speaks of now", []metav1.Condition{old(v1beta1.StalledCondition), old(v1beta1.ReconcilingCondition)}, lagging, true, false,
			[]string{"Reconciling=True MembersLagging: 0 of 1", "Ready=Unknown MembersLagging: 0 of 1"}},
		{"conditions of others stay", []metav1.Condition{old("Theirs")}, ready(metav1.ConditionTrue, v1beta1.ReasonMembersReady, ""), false, false,
			[]string{"Theirs=True Old: old", "Ready=True MembersReady"}},
	} {
		in := instance(nil, nil, tc.before...)
		in.Spec.Placement = &v1beta1.Placement{} // a template, which no hub holds
		in.Status.ObservedGeneration = 6
		SetPlaced(in, tc.ready, tc.reconciling, tc.stalled)
		if diff := cmp.Diff(tc.want, formatConditions(in)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if in.Status.ObservedGeneration != 7 {
			t.Errorf("%s: the status speaks of generation %d, not 7", tc.reason, in.Status.ObservedGeneration)
		}
		for _, c := range in.Status.Conditions {
			if c.Type != "Theirs" && c.ObservedGeneration != 7 {
				t.Errorf("%s: condition %s speaks of generation %d, not 7", tc.reason, c.Type, c.ObservedGeneration)
			}
		}
		again := in.DeepCopy()
		SetPlaced(again, tc.ready, tc.reconciling, tc.stalled)
		if diff := cmp.Diff(in, again); diff != "" {
			t.Errorf("%s: a condition never flaps: -first +second:\n%s", tc.reason, diff)
		}
	}
	in := instance(nil, nil)
	SetPlaced(in, ready(metav1.ConditionFalse, v1beta1.ReasonInvalidSpec, strings.Repeat("x", 2*MaxMessage)), false, true)
	for _, c := range in.Status.Conditions {
		if len(c.Message) > MaxMessage {
			t.Errorf("the message of %s has %d bytes", c.Type, len(c.Message))
		}
	}
}

// TestSetHeld checks C5: the condition is there while a placement is not released, and says why.
func TestSetHeld(t *testing.T) {
	const (
		hub    = "Held=True WaitingForRelease: a hub has placed the Instance, and has not released this change for this cluster"
		no     = "no hub has placed this Instance"
		uid    = v1beta1.KarmadaUIDAnnotation
		gen    = v1beta1.KarmadaGenerationAnnotation
		copied = v1beta1.TemplateAnnotation
		let    = v1beta1.ReleasedAnnotation
	)
	type texts = map[string]string
	for _, tc := range []struct {
		reason      string
		annotations texts
		unplaced    bool
		want        string
	}{
		{"it has no placement", texts{uid: "u", gen: "3"}, true, ""},
		{"it waits for a first release", texts{uid: "u", gen: "3"}, false, hub},
		{"it waits for the next release", texts{uid: "u", gen: "3", let: "u/2"}, false, hub},
		{"another template was released", texts{uid: "u", gen: "3", let: "v/3"}, false, hub},
		{"it is released", texts{uid: "u", gen: "3", let: "u/3"}, false, ""},
		{"it is released by the inventory backend", texts{copied: "u/3", let: "u/3"}, false, ""},
		{"it waits for that", texts{copied: "u/3", let: "u/2"}, false, hub},
		{"it is no copy", nil, false, no},
		{"a release alone makes no copy", texts{let: "u/3"}, false, no},
		{"nor does an empty one", texts{let: ""}, false, no},
	} {
		in := heldInstance(nil)
		in.Annotations = tc.annotations
		if tc.unplaced {
			in.Spec.Placement = nil
		}
		for _, before := range []string{"without", "with"} {
			SetHeld(in)
			got := strings.Join(formatConditions(in), "\n")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s, %s the condition before: %q, want %q", tc.reason, before, got, tc.want)
			}
			meta.SetStatusCondition(&in.Status.Conditions, metav1.Condition{Type: v1beta1.HeldCondition, Status: metav1.ConditionTrue, Reason: "Old"})
		}
	}
	in := heldInstance(nil)
	SetHeld(in)
	if c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.HeldCondition); c.ObservedGeneration != in.Generation {
		t.Errorf("it speaks of generation %d, and the generation %d is held", c.ObservedGeneration, in.Generation)
	}
	if in.Status.ObservedGeneration != 6 {
		t.Errorf("holding is no acting: the status speaks of generation %d", in.Status.ObservedGeneration)
	}
}

// TestHeldGeneration checks C5: what is judged while an Instance is held speaks of the generation that its plans have acted upon.
func TestHeldGeneration(t *testing.T) {
	type runs = map[string]v1beta1.ExecutionStatus
	for _, tc := range []struct {
		reason string
		plans  runs
		judge  func(i *v1beta1.Instance)
	}{
		{"it is ready", runs{"deploy": v1beta1.Complete}, func(i *v1beta1.Instance) { Derive(i, nil, false) }},
		{"it is not ready", runs{"deploy": v1beta1.Complete}, func(i *v1beta1.Instance) { Derive(i, []string{"Pod a"}, true) }},
		{"a plan finishes", runs{"deploy": v1beta1.InProgress}, func(i *v1beta1.Instance) { Derive(i, nil, false) }},
		{"it has failed", runs{"deploy": v1beta1.FatalError}, func(i *v1beta1.Instance) { Derive(i, nil, false) }},
		{"it is refused", nil, func(i *v1beta1.Instance) { SetRefused(i, v1beta1.ReasonInvalidSpec, "m") }},
		{"it waits for definitions", nil, func(i *v1beta1.Instance) { SetCRDsReady(i, "m") }},
		{"a schedule has failed", nil, func(i *v1beta1.Instance) { SetScheduleFailed(i, v1beta1.ReasonScheduledRunFailed, []string{"a"}) }},
		{"a deadline is ignored", nil, func(i *v1beta1.Instance) { SetDeadlineIgnored(i, []string{"a"}) }},
	} {
		held, released := heldInstance(tc.plans), heldInstance(tc.plans)
		released.Annotations[v1beta1.ReleasedAnnotation] = "u/3"
		for i, want := range map[*v1beta1.Instance]int64{held: 6, released: 7} {
			tc.judge(i)
			if len(i.Status.Conditions) == 0 {
				t.Errorf("%s: there is no condition", tc.reason)
			}
			for _, c := range i.Status.Conditions {
				if c.ObservedGeneration != want {
					t.Errorf("%s: condition %s speaks of generation %d, want %d", tc.reason, c.Type, c.ObservedGeneration, want)
				}
			}
			if i.Status.ObservedGeneration != 6 {
				t.Errorf("%s: the status speaks of generation %d", tc.reason, i.Status.ObservedGeneration)
			}
		}
	}
}
