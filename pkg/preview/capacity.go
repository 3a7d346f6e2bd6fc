package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kudo.dev/kudo/pkg/runner"
)

// maxGrowth is how many times as many pods as before, or as much of a resource, an edit may want before a preview warns.
const maxGrowth = 20

// Capacity is how much of a resource the objects that a plan applies declare, before and after it.
type Capacity struct {
	// Resource is the name that ResourceQuotas have for it, such as pods and requests.cpu.
	Resource string            `json:"resource"`
	Before   resource.Quantity `json:"before"`
	After    resource.Quantity `json:"after"`
}

// String is how people read it.
func (c Capacity) String() string {
	return fmt.Sprintf("%s %s -> %s", c.Resource, c.Before.String(), c.After.String())
}

// isCompared reports whether previews show a resource: pods, and what they request and claim.
func isCompared(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.HasPrefix(string(name), "requests.")
}

// capacityOf returns of which resources a run would leave its objects another amount, sorted. What is not known is left out.
func (c *computation) capacityOf(ctx context.Context, run *runner.Run) []Capacity {
	changes, err := c.runner.UsageChanges(ctx, run, c.inventory)
	if err != nil {
		return nil // the run fails for the same reason, and says so
	}
	before, after := corev1.ResourceList{}, corev1.ResourceList{}
	for _, change := range changes {
		addAll(before, change.Before.Resources)
		addAll(after, change.After.Resources)
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	var out []Capacity
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		if !isCompared(name) || was.Cmp(is) == 0 {
			continue
		}
		out = append(out, Capacity{string(name), was, is})
		if limit := was.DeepCopy(); was.Sign() > 0 && limit.Mul(maxGrowth) && is.Cmp(limit) > 0 {
			c.warn("plan %s would want more than %d times as much of %s as there is now: %s instead of %s", run.Plan, maxGrowth, name,
				is.String(), was.String())
		}
	}
	return out
}

func addAll(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
