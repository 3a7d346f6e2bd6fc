package placement

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/clusters"
)

// placed is what programs read of the placement of an Instance.
type placed struct {
	Namespace          string             `json:"namespace"`
	Name               string             `json:"name"`
	Generation         int64              `json:"generation"`
	ObservedGeneration int64              `json:"observedGeneration"`
	State              string             `json:"state"`
	Placement          *v1beta1.Placement `json:"placement"`
	// Decision is what the decision of the placement has come to.
	Decision *v1beta1.DecisionStatus `json:"decision,omitempty"`
	Members  []v1beta1.MemberStatus  `json:"members"`
	Wave     *v1beta1.WaveStatus     `json:"wave,omitempty"`
	Ready    *readiness              `json:"ready,omitempty"`
}

// readiness is the condition Ready.
type readiness struct {
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// show prints the clusters of an Instance in a format.
func show(env *command.Env, i *v1beta1.Instance, output string) error {
	switch {
	case i.Spec.Placement == nil:
		return fmt.Errorf("instance %s/%s has no spec.placement: it runs in this cluster; kubectl kudo plan status shows its plans", i.Namespace,
			i.Name)
	case !i.IsTemplate():
		return fmt.Errorf("instance %s/%s is what a hub has placed on this cluster: run the command on the hub; kubectl kudo plan status shows "+
			"the plans here", i.Namespace, i.Name)
	case output == "json" || output == "yaml":
		return env.PrintValue(output, valueOf(i))
	}
	rows := [][]string{command.MemberColumns()}
	if len(i.Status.Members) > 0 {
		rows = append(rows, command.MemberRows(i, env.Now())...)
	} else {
		for _, c := range i.PlacedClusters() {
			rows = append(rows, []string{c.Name, "Unknown"})
		}
	}
	if output == "wide" {
		widen(rows, i)
	}
	if err := env.PrintTable(rows); err != nil {
		return err
	}
	for _, line := range command.DescribePlacement(i, env.Now()) {
		env.Printf("%s", line)
	}
	return nil
}

func valueOf(i *v1beta1.Instance) placed {
	out := placed{Namespace: i.Namespace, Name: i.Name, Generation: i.Generation, ObservedGeneration: i.Status.ObservedGeneration,
		State: clusters.StateOf(i), Placement: i.Spec.Placement, Decision: i.Status.Decision, Members: i.Status.Members, Wave: i.Status.Wave}
	if out.Members == nil {
		out.Members = []v1beta1.MemberStatus{}
	}
	if ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition); ready != nil {
		out.Ready = &readiness{string(ready.Status), ready.Reason, ready.Message, ready.ObservedGeneration}
	}
	return out
}

// widen puts what spec says of each cluster behind its name.
func widen(rows [][]string, i *v1beta1.Instance) {
	waves, placed := map[string]string{}, i.PlacedClusters()
	for n, group := range i.WaveGroups() {
		for _, name := range group {
			waves[name] = strconv.Itoa(n + 1)
		}
	}
	rows[0] = slices.Insert(rows[0], 1, "WAVE", "WEIGHT", "VALUES")
	for n, row := range rows[1:] {
		weight, values := "", ""
		at := slices.IndexFunc(placed, func(c v1beta1.PlacedCluster) bool { return c.Name == row[0] })
		if at >= 0 {
			weight, values = strconv.FormatInt(placed[at].EffectiveWeight(), 10), valuesOf(placed[at])
		}
		rows[n+1] = slices.Insert(row, 1, waves[row[0]], weight, values)
	}
}

// valuesOf lists the names of the values of one cluster: values may be sensitive.
func valuesOf(c v1beta1.PlacedCluster) string {
	return strings.Join(slices.Sorted(maps.Keys(c.Parameters)), ",")
}
