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

// Capacity is how much of a resource the objects of a run declare, before and after it: those that it applies, and those that it deletes.
type Capacity struct {
	// Resource is the name that ResourceQuotas have for it, such as pods and requests.cpu.
	Resource string            `json:"resource"`
	Before   resource.Quantity `json:"before"`
	After    resource.Quantity `json:"after"`
}

// String formats the change of a resource for people.
func (c Capacity) String() string {
	return fmt.Sprintf("%s %s -> %s", c.Resource, c.Before.String(), c.After.String())
}

// isCompared reports whether previews show a resource: pods, and what they request and claim.
func isCompared(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.HasPrefix(string(name), "requests.")
}

// maxCounted is how many objects of a run are asked what they declare.
const maxCounted = 512

// usage is what the objects of a run declare before it. What is not known is nil.
type usage struct {
	run *runner.Run
	// applied are the objects that the run applies, and others those that it may delete.
	applied, others []apply.ID
	before          map[apply.ID]*quota.Usage
}

// usageBefore returns what the objects of a run declare that has not begun.
func usageBefore(ctx context.Context, c *computation, run *runner.Run) usage {
	out := usage{run: run, applied: c.runner.AppliedObjects(run)}
	for _, id := range sortedIDs(c.inventory) {
		if !slices.Contains(out.applied, id) {
			out.others = append(out.others, id)
		}
	}
	out.others = out.others[:min(len(out.others), maxCounted-len(out.applied))]
	var err error
	if out.before, err = c.runner.Usages(ctx, run, c.inventory, slices.Concat(out.applied, out.others)); err != nil {
		return usage{run: run} // the run fails for the same reason, and says so
	}
	return out
}

// capacityOf returns the resources whose amounts the run changes, sorted by name. It compares what the objects of the run declare before
// and after it in the cluster, and not what templates render: an autoscaler may own the replicas, and the run may delete what it has
// applied.
func (c *computation) capacityOf(ctx context.Context, u usage) []Capacity {
	now, err := c.runner.Usages(ctx, u.run, c.inventory, u.applied)
	if err != nil {
		return nil
	}
	before, after := corev1.ResourceList{}, corev1.ResourceList{}
	for _, id := range u.applied {
		was, existed := u.before[id]
		is, exists := now[id]
		if existed && was == nil || exists && is == nil {
			continue
		}
		c.addUsage(before, was)
		c.addUsage(after, is)
	}
	for _, id := range u.others {
		if _, stays := c.inventory[id]; !stays && c.isDeleted(id) {
			c.addUsage(before, u.before[id])
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
			c.warn("plan %s would want more than %d times as much of %s as there is now: %s instead of %s", u.run.Plan, maxGrowth, name,
				is.String(), was.String())
		}
	}
	return out
}

// isDeleted reports whether the runs so far have deleted an object, and have not left it to others.
func (s *touches) isDeleted(id apply.ID) bool {
	change, known := s.cluster.Find(id)
	return known && change.After == nil
}

// addUsage adds what an object declares to a sum; a usage of nil adds nothing. Sensitive values in names of resources are masked.
func (n *notes) addUsage(sum corev1.ResourceList, usage *quota.Usage) {
	if usage == nil {
		return
	}
	for name, quantity := range usage.Resources {
		name = corev1.ResourceName(n.mask.Whole(string(name)))
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
