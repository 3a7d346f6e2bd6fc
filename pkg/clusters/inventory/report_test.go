package inventory

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/test/gen"
)

// copied is a copy of an Instance with a status.
func copied(status v1beta1.InstanceStatus) *v1beta1.Instance {
	i := gen.Instance("book", gen.Version("ns", "v2"), map[string]string{"REPLICAS": "4"})
	i.Generation = 7
	i.Annotations = map[string]string{v1beta1.TemplateAnnotation: "u/3", v1beta1.ReleasedAnnotation: "u/2"}
	i.Spec.Placement = &v1beta1.Placement{Divide: "REPLICAS"}
	i.Status = status
	return i
}

func ready(status metav1.ConditionStatus, generation int64, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: status, ObservedGeneration: generation, Reason: "R", Message: message}}
}

// TestReportOf checks what a report says of a copy (C27).
func TestReportOf(t *testing.T) {
	for name, c := range map[string]struct {
		status v1beta1.InstanceStatus
		want   *clusters.Report
		reason string
	}{
		"silent": {reason: "no manager has written anything"},
		"ready": {
			status: v1beta1.InstanceStatus{
				ObservedGeneration: 7, Conditions: ready(metav1.ConditionTrue, 7, ""), Baseline: &v1beta1.Baseline{OperatorVersion: "other/v1", Revision: 5},
				PlanStatus:       map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete, Revision: 5}, "backup": {Status: v1beta1.FatalError, Revision: 4}},
				AggregatedStatus: v1beta1.AggregatedStatus{Status: v1beta1.Complete},
			},
			want: &clusters.Report{Template: "u/3", Released: "u/2", Generation: 7, ObservedGeneration: 7, Ready: metav1.ConditionTrue, Reason: "R",
				Plan: "deploy", PlanStatus: v1beta1.Complete, Revision: 5, OperatorVersion: "v1", Replicas: "4"},
			reason: "the version is the one that runs",
		},
		"old": {
			status: v1beta1.InstanceStatus{ObservedGeneration: 6, Conditions: ready(metav1.ConditionTrue, 6, "was\nwell")},
			want: &clusters.Report{Template: "u/3", Released: "u/2", Generation: 7, ObservedGeneration: 6, Ready: metav1.ConditionUnknown, Reason: "R",
				Message: "was well", Replicas: "4"},
			reason: "a condition of an older generation says nothing of this one",
		},
		"running": {
			status: v1beta1.InstanceStatus{
				ObservedGeneration: 7, Conditions: ready("Perhaps", 7, ""), Queue: make([]v1beta1.QueuedPlan, 2),
				PlanStatus:       map[string]v1beta1.PlanStatus{"update": {Status: v1beta1.InProgress, Revision: 6}},
				AggregatedStatus: v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlanName: "update"},
			},
			want: &clusters.Report{Template: "u/3", Released: "u/2", Generation: 7, ObservedGeneration: 7, Ready: metav1.ConditionUnknown, Reason: "R",
				Plan: "update", PlanStatus: v1beta1.InProgress, Queued: 2, Replicas: "4"},
			reason: "a status that is none is Unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ReportOf(copied(c.status))); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// FuzzReport checks the bounds of a report, whatever a cluster says (C27).
func FuzzReport(f *testing.F) {
	long := strings.Repeat("<", 5000)
	f.Add(long, long, long, int64(1))
	f.Add("done\x00\u2028", "u/\xff", "deploy", int64(-1))
	f.Add(strings.Repeat("𝄞", 600), strings.Repeat("a", 128), strings.Repeat("a", 254), int64(7))
	f.Fuzz(func(t *testing.T, said, annotation, name string, number int64) {
		i := copied(v1beta1.InstanceStatus{
			ObservedGeneration: number, Conditions: ready(metav1.ConditionFalse, 7, said), Baseline: &v1beta1.Baseline{OperatorVersion: name, Revision: number},
			AggregatedStatus: v1beta1.AggregatedStatus{ActivePlanName: name, Status: v1beta1.ExecutionStatus(name)},
		})
		i.Status.Conditions[0].Reason = name
		i.Annotations = map[string]string{v1beta1.TemplateAnnotation: annotation, v1beta1.ReleasedAnnotation: annotation}
		i.Spec.Parameters["REPLICAS"] = name
		r := ReportOf(i)
		data, err := json.Marshal(r)
		if err != nil || len(data) > 4<<10 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		if utf8.RuneCountInString(r.Message) > 512 || strings.ContainsAny(r.Message, "\n\x00\x1b") || r.ObservedGeneration < 0 || r.Revision < 0 {
			t.Fatalf("%+v", r)
		}
		if r.Plan != "" && r.Plan != name || r.Template != "" && r.Template != annotation {
			t.Fatalf("%q and %q are neither whole nor left out", r.Plan, r.Template)
		}
	})
}
