package karmada

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

const (
	// largestReport is how many bytes of JSON a report has at most.
	largestReport = 4 << 10
	// longestMessage is how many characters a message has at most, and longestWord how many bytes any other text of a report.
	longestMessage = 512
	longestWord    = 253
)

// parseReport returns the report of a cluster, or nil if the status is not one: it is absent, too large, of other types, or speaks of no
// generation.
func parseReport(status any) *clusters.Report {
	if _, ok := status.(map[string]any); !ok {
		return nil
	}
	data, err := json.Marshal(status)
	if err != nil || len(data) > largestReport {
		return nil
	}
	report := &clusters.Report{}
	if utiljson.Unmarshal(data, report) != nil || report.Generation <= 0 {
		return nil
	}
	if report.ObservedGeneration < 0 || report.Revision < 0 || report.Queued < 0 {
		return nil
	}
	switch report.Ready {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	case "":
		report.Ready = metav1.ConditionUnknown
	default:
		return nil
	}
	report.Message = message(report.Message)
	planStatus := string(report.PlanStatus)
	words := []string{report.Template, report.Released, report.Reason, report.Plan, planStatus, report.OperatorVersion, report.Replicas}
	for _, word := range words {
		if word != text.Plain(word, longestWord) {
			return nil
		}
	}
	return report
}

// message returns what another system says as one line of at most 512 characters, which a terminal may print.
func message(said string) string {
	// A character has at most as many bytes as utf8.UTFMax, so that the first cut takes none that the second leaves.
	said = text.Plain(said, utf8.UTFMax*longestMessage+len(text.Ellipsis))
	if utf8.RuneCountInString(said) <= longestMessage {
		return said
	}
	return strings.TrimSuffix(string([]rune(said)[:longestMessage-1]), text.Ellipsis) + text.Ellipsis
}
