package inventory

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

const (
	// maxMessage bounds a message, in characters, and maxMessageBytes in bytes of JSON.
	maxMessage, maxMessageBytes = 512, 2048
	// maxTemplate, maxReason, maxName, maxStatus and maxValue bound other texts, in bytes of JSON. With them, a report stays below 4 KiB.
	maxTemplate, maxReason, maxName, maxStatus, maxValue = 128, 128, 253, 32, 32
)

// ReportOf returns what a cluster says of its copy of an Instance, or nil if no manager there has said anything. It is what the rules for
// Karmada answer for the same copy: at most 4 KiB of JSON; names that are too long are left out, and the message is cut to 512 characters.
func ReportOf(instance *v1beta1.Instance) *clusters.Report {
	status := &instance.Status
	if equality.Semantic.DeepEqual(*status, v1beta1.InstanceStatus{}) {
		return nil
	}
	plan, run := plans.LatestRun(status.PlanStatus)
	out := &clusters.Report{
		Template: word(instance.PlacedTemplate(), maxTemplate), Released: word(instance.Annotations[v1beta1.ReleasedAnnotation], maxTemplate),
		Generation: instance.Generation, ObservedGeneration: max(status.ObservedGeneration, 0), Ready: metav1.ConditionUnknown,
		Plan:       word(cmp.Or(status.AggregatedStatus.ActivePlanName, plan), maxName),
		PlanStatus: v1beta1.ExecutionStatus(word(string(cmp.Or(status.AggregatedStatus.Status, run.Status)), maxStatus)),
		Queued:     int64(len(status.Queue)),
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1beta1.ReadyCondition); ready != nil {
		out.Reason, out.Message = word(ready.Reason, maxReason), message(ready.Message)
		known := ready.Status == metav1.ConditionTrue || ready.Status == metav1.ConditionFalse
		if known && ready.ObservedGeneration == instance.Generation {
			out.Ready = ready.Status
		}
	}
	if base := status.Baseline; base != nil {
		out.Revision = max(base.Revision, 0)
		out.OperatorVersion = word(base.OperatorVersion[strings.LastIndexByte(base.OperatorVersion, '/')+1:], maxName)
	}
	if placement := instance.Spec.Placement; placement != nil && placement.Divide != "" {
		out.Replicas = word(instance.Spec.Parameters[placement.Divide], maxValue)
	}
	return out
}

// word returns a text if it fits and a terminal may print it, else "": half a name is another name.
func word(s string, bytes int) string {
	if size(s) > bytes+2 || s != text.Plain(s, bytes) {
		return ""
	}
	return s
}

// size is how many bytes a text has in JSON, with its quotes.
func size(s string) int {
	data, err := json.Marshal(s)
	if err != nil {
		return len(s) * 6
	}
	return len(data)
}

// message returns what another system says as one line of at most 512 characters, which a terminal may print.
func message(said string) string {
	said = text.Plain(said, utf8.UTFMax*maxMessage+len(text.Ellipsis))
	for characters := maxMessage; ; characters /= 2 {
		if utf8.RuneCountInString(said) > characters {
			said = strings.TrimSuffix(string([]rune(said)[:characters-1]), text.Ellipsis) + text.Ellipsis
		}
		if size(said) <= maxMessageBytes {
			return said
		}
	}
}
