package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/quota"
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

// usageComparison compares what the objects of a run declare before and after it: those that it applies, and those that it deletes.
type usageComparison struct {
	*computation
	run     *runner.Run
	applied []apply.ID
	before  map[apply.ID]*quota.Usage
	// inventory is that of before the run.
	inventory runner.Inventory
}

// usageBefore notes what the objects declare that a run applies, which has not begun. What is not known is left out.
func (c *computation) usageBefore(ctx context.Context, run *runner.Run) usageComparison {
	out := usageComparison{computation: c, run: run, inventory: maps.Clone(c.inventory)}
	applied, err := c.runner.AppliedObjects(run)
	if err != nil {
		return out // the run fails for the same reason, and says so
	}
	if out.before, err = c.runner.Usages(ctx, run, c.inventory, applied); err == nil {
		out.applied = applied
	}
	return out
}

// compare returns of which resources the run has left its objects another amount, sorted. It compares what would be in the cluster: an
// autoscaler may own the replicas, and the run may delete again what it has applied.
func (u usageComparison) compare(ctx context.Context) []Capacity {
	now, err := u.runner.Usages(ctx, u.run, u.computation.inventory, u.applied)
	if err != nil {
		return nil
	}
	before, after := u.deleted(ctx), corev1.ResourceList{}
	for _, id := range u.applied {
		was, existed := u.before[id]
		is, exists := now[id]
		if existed && was == nil || exists && is == nil {
			continue
		}
		if existed {
			addAll(before, was.Resources)
		}
		if exists {
			addAll(after, is.Resources)
		}
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
			u.warn("plan %s would want more than %d times as much of %s as there is now: %s instead of %s", u.run.Plan, maxGrowth, name,
				is.String(), was.String())
		}
	}
	return out
}

// deleted sums up what the objects have declared that the run deletes and does not apply.
func (u usageComparison) deleted(ctx context.Context) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for id := range u.inventory {
		if _, stays := u.computation.inventory[id]; stays || slices.Contains(u.applied, id) {
			continue
		}
		change, known := u.cluster.Find(id)
		if !known || change.Before == nil || change.After != nil {
			continue
		}
		if used, err := u.runner.Usage(ctx, change.Before); err == nil {
			addAll(sum, used.Resources)
		}
	}
	return sum
}

func addAll(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
