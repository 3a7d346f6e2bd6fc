package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// MemberColumns are the columns of the clusters that an Instance is placed on.
func MemberColumns() []string {
	return []string{"CLUSTER", "STATE", "REPLICAS", "PLAN", "STATUS", "OPERATOR-VERSION", "SINCE", "MESSAGE"}
}

// MemberRows returns a row for each cluster that an Instance is placed on, in the order of names.
func MemberRows(i *v1beta1.Instance, now time.Time) [][]string {
	var rows [][]string
	for _, m := range i.Status.Members {
		status, replicas := string(m.PlanStatus), ""
		if m.State == v1beta1.MemberLost && status != "" {
			status = "unknown" // it is what the cluster said last
		}
		if m.Replicas != nil {
			replicas = strconv.FormatInt(*m.Replicas, 10)
		}
		rows = append(rows, []string{m.Cluster, string(m.State), replicas, m.Plan, status, m.OperatorVersion, ageOf(m.Since, now),
			text.OneLine(m.Message)})
	}
	return rows
}

// formatMembers returns a table of the clusters that an Instance is placed on, with lines about the rollout.
func formatMembers(i *v1beta1.Instance, now time.Time) string {
	table := formatRows(append([][]string{MemberColumns()}, MemberRows(i, now)...))
	return table + strings.Join(DescribePlacement(i, now), "\n") + "\n"
}

// PlacedRow returns what the clusters of an Instance add up to, in the columns of MemberRows.
func PlacedRow(i *v1beta1.Instance, now time.Time) []string {
	replicas, since := "", ""
	ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
	if ready != nil {
		since = ageOf(&ready.LastTransitionTime, now)
	}
	if divided := clusters.DividedValue(i); divided != nil {
		replicas = strconv.FormatInt(*divided, 10)
	}
	return []string{fmt.Sprintf("(%d)", len(i.PlacedClusters())), clusters.StateOf(i), replicas,
		i.Status.AggregatedStatus.ActivePlanName, string(i.Status.AggregatedStatus.Status), i.Spec.OperatorVersion.Name, since, ""}
}

func ageOf(at *metav1.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// DescribePlacement says in lines how far the rollout of an Instance has come, and why the Instance is not ready.
func DescribePlacement(i *v1beta1.Instance, now time.Time) []string {
	var out []string
	if i.Status.ObservedGeneration < i.Generation {
		out = append(out, fmt.Sprintf("The hub has acted upon generation %d of %d.", i.Status.ObservedGeneration, i.Generation))
	}
	if d := i.Spec.Placement.Decision; d != nil {
		out = append(out, decisionLine(i, d.Name))
	}
	if wave := i.Status.Wave; wave != nil && wave.Of > 0 {
		line := fmt.Sprintf("Wave %d of %d: %s", wave.Index, wave.Of, wave.State)
		if age := ageOf(wave.Since, now); age != "" {
			line += " for " + age
		}
		if len(wave.Failed) > 0 {
			line += ", failed: " + text.List(wave.Failed, maxNamed)
		}
		if len(wave.Accepted) > 0 {
			line += ", accepted as failed: " + text.List(wave.Accepted, maxNamed)
		}
		out = append(out, line)
	}
	ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
	if ready == nil {
		return append(out, "Ready: Unknown, the hub has not reported anything yet")
	}
	line := fmt.Sprintf("Ready: %s (%s)", ready.Status, ready.Reason)
	if ready.Message != "" {
		line += ": " + text.OneLine(ready.Message)
	}
	return append(out, line)
}

// decisionLine says which decision names the clusters, and how many the hub has read of it.
func decisionLine(i *v1beta1.Instance, name string) string {
	line := fmt.Sprintf("Decision %s names the clusters", text.OneLine(name))
	if i.DecisionFingerprint() == "" {
		return line + ": the hub has not read any of it"
	}
	return fmt.Sprintf("%s: %d", line, len(i.PlacedClusters()))
}

// maxNamed is how many clusters a line names.
const maxNamed = 5
