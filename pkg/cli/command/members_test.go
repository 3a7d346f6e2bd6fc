package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// placedInstance returns an Instance with generation 7. One of its clusters is lost, and has failed.
func placedInstance() *v1beta1.Instance {
	two := int64(2)
	at := &metav1.Time{Time: time.Unix(1000, 0)}
	return &v1beta1.Instance{
		ObjectMeta: metav1.ObjectMeta{Generation: 7, UID: "u"},
		Spec: v1beta1.InstanceSpec{Parameters: map[string]string{"REPLICAS": "2"},
			Placement: &v1beta1.Placement{Divide: "REPLICAS", Clusters: []v1beta1.PlacedCluster{{Name: "m2"}}}},
		Status: v1beta1.InstanceStatus{
			ObservedGeneration: 7,
			Members: []v1beta1.MemberStatus{{Cluster: "m2", State: v1beta1.MemberLost, Since: at, Plan: "deploy", PlanStatus: v1beta1.Complete, Replicas: &two,
				Message: "gone\nfor long"}},
			Wave: &v1beta1.WaveStatus{Generation: 7, Index: 1, Of: 1, State: v1beta1.WaveOpen, Since: at, Failed: []string{"m2"}, Accepted: []string{"m2"}},
		},
	}
}

// TestMembers checks the rows of clusters: of one that is lost, nothing is said that may be old.
func TestMembers(t *testing.T) {
	now, i := time.Unix(1041, 0), placedInstance()
	want := [][]string{{"m2", "Lost", "2", "deploy", "unknown", "", "41s", "gone for long"}}
	if diff := cmp.Diff(want, MemberRows(i, now)); diff != "" || len(want[0]) != len(MemberColumns()) {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"(1)", "Lost", "2", "", "", "", "", ""}, PlacedRow(i, now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	i.Generation = 8
	got := strings.Join(DescribePlacement(i, now), "\n")
	lines := "The hub has acted upon generation 7 of 8.\nWave 1 of 1: Open for 41s, failed: m2, accepted as failed: m2\nReady: Unknown, the hub has not reported anything yet"
	if got != lines {
		t.Errorf("%s\nwant\n%s", got, lines)
	}
}

// TestUntilPlaced checks when the wait for the clusters of an Instance is over: never by what the hub said of an earlier change.
func TestUntilPlaced(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		status   metav1.ConditionStatus
		why      string
		observed int64
		done     bool
		err      string
	}{
		{"ready", metav1.ConditionTrue, v1beta1.ReasonMembersReady, 7, true, ""},
		{"ready with the change before", metav1.ConditionTrue, v1beta1.ReasonMembersReady, 6, false, ""},
		{"stopped by the change before", metav1.ConditionFalse, v1beta1.ReasonWaveStopped, 6, false, ""},
		{"a cluster lags", metav1.ConditionUnknown, v1beta1.ReasonMembersLagging, 7, false, ""},
		{"a cluster is not ready yet", metav1.ConditionFalse, v1beta1.ReasonMemberNotReady, 7, false, ""},
		{"the rollout is paused", metav1.ConditionUnknown, v1beta1.ReasonWavePaused, 7, false, ""},
		{"a cluster has failed", metav1.ConditionFalse, v1beta1.ReasonMemberFailed, 7, true, "m2 is Failed"},
		{"the rollout is stopped", metav1.ConditionFalse, v1beta1.ReasonWaveStopped, 7, true, "m2 is Failed"},
		{"another policy has the Instance", metav1.ConditionFalse, v1beta1.ReasonForeignPolicy, 7, true, "m2 is Failed"},
		{"the spec is refused", metav1.ConditionFalse, v1beta1.ReasonInvalidSpec, 7, true, "m2 is Failed"},
	} {
		i := placedInstance()
		i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: tc.status, Reason: tc.why, Message: "m2 is Failed", ObservedGeneration: tc.observed}}
		done, err := UntilEnded(i)(i)
		if done != tc.done || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %t, %v", tc.reason, done, err)
		}
	}
	i := placedInstance()
	if done, err := UntilEnded(i)(nil); !done || err == nil {
		t.Error("an Instance that is deleted is awaited")
	}
	if done, err := UntilEnded(i)(i); done || err != nil {
		t.Error("an Instance without conditions is not awaited")
	}
	i.Spec.Placement = nil
	if done, err := UntilEnded(i)(i); done || err != nil {
		t.Error("an Instance without placement is not awaited by its plans")
	}
}

// TestFormatRows checks that a row with few cells does not end the columns, and that a cell is one line without control characters.
func TestFormatRows(t *testing.T) {
	for _, tc := range []struct {
		reason string
		rows   [][]string
		want   string
	}{
		{"no row", nil, ""},
		{"a row with few cells", [][]string{{"A", "B", "C"}, {"x"}, {"long", "y", "z"}}, "A      B   C\nx\nlong   y   z\n"},
		{"a cell of two lines", [][]string{{"a\nb\tc"}}, "a b c\n"},
		{"a cell that drives a terminal", [][]string{{"a\x1b[2J"}}, "a\\x1b[2J\n"},
	} {
		if got := formatRows(tc.rows); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestAgeOf checks that a time that is not known has no age.
func TestAgeOf(t *testing.T) {
	if got := ageOf(nil, time.Unix(1, 0)) + ageOf(&metav1.Time{}, time.Unix(1, 0)); got != "" {
		t.Errorf("the age of an unknown time is %s", got)
	}
	if got := ageOf(&metav1.Time{Time: time.Unix(1000, 0)}, time.Unix(1041, 0)); got != "41s" {
		t.Errorf("the age is %s", got)
	}
}
