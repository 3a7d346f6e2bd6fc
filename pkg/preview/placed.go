package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// Placement is what an edit of an Instance of a hub changes about its clusters. Plans run there, and not on the hub.
type Placement struct {
	// Decision names the clusters in place of spec; "" if spec names them.
	Decision string `json:"decision,omitempty"`
	// Clusters by name: those that the hub has read of the decision last, if there is one, or none if it has not read any.
	Clusters []PlacedCluster `json:"clusters"`
	// Waves is how many waves a change goes through, one after the other.
	Waves int `json:"waves"`
}

// PlacedCluster is what would become of an Instance in one cluster.
type PlacedCluster struct {
	Name string `json:"name"`
	// Effect is create or delete for a cluster that the Instance comes to or leaves, keep for one that it leaves without being deleted there,
	// and change or unchanged for others.
	Effect Effect `json:"effect"`
	// Wave of the cluster, from 1; 0 for one that the Instance leaves.
	Wave int `json:"wave,omitempty"`
	// Share of the divided parameter, and ShareBefore the one before the edit; nil if none is divided, or if that is not known.
	Share       *int64 `json:"share,omitempty"`
	ShareBefore *int64 `json:"shareBefore,omitempty"`
	// Values names the parameters that have values of their own in the cluster, sorted.
	Values []string `json:"values,omitempty"`
}

// placeOnClusters notes what the edit changes on the hub, and for each cluster.
func placeOnClusters(c *computation) error {
	hideMembers(c)
	object, err := placedObject(c)
	if err != nil {
		return err
	}
	c.out.Objects = append(c.out.Objects, object)
	if problem := clusters.Validate(c.edit.After, &c.edit.Version.Spec); problem != nil && c.Local {
		c.warn("the hub refuses this unless its webhook adds what is missing: %s", problem)
	}
	c.out.Placement = comparePlacements(c.edit.Before, c.edit.After)
	if c.out.Placement.Decision != "" && c.edit.After.DecisionFingerprint() == "" {
		c.unknown("which clusters the decision %s names: the hub has not read it for this Instance yet", c.out.Placement.Decision)
	}
	switch {
	case object.Effect == Unchanged:
	case c.edit.Before != nil && equality.Semantic.DeepEqual(withoutOrder(c.edit.Before), withoutOrder(c.edit.After)):
		c.warn("no plan starts by this change")
	default:
		c.unknown("what the plans do in the clusters: they run there, and the clusters were not asked")
	}
	return nil
}

// hideMembers masks the sensitive values of single clusters.
func hideMembers(c *computation) {
	for _, i := range []*v1beta1.Instance{c.edit.Before, c.edit.After} {
		if i == nil || i.Spec.Placement == nil {
			continue
		}
		for _, cluster := range i.Spec.Placement.Clusters {
			c.hide(values{given: cluster.Parameters, defs: c.edit.Version.Spec.Parameters})
		}
	}
}

// withoutOrder returns spec without what only says when clusters get a change, and what becomes of them at the end.
func withoutOrder(i *v1beta1.Instance) v1beta1.InstanceSpec {
	out := i.DeepCopy().Spec
	if out.Placement != nil {
		out.Placement.Waves, out.Placement.OnDelete = nil, ""
	}
	return out
}

// placedObject returns the Instance of the hub as an object, with the fields that change.
func placedObject(c *computation) (Object, error) {
	kind := v1beta1.GroupVersion.WithKind("Instance")
	out := newObject(apply.ID{GroupVersionKind: kind, NamespacedName: types.NamespacedName{Namespace: c.edit.After.Namespace,
		Name: c.edit.After.Name}})
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.edit.After)
	if err != nil {
		return out, err
	}
	if c.edit.Before == nil {
		out.Effect, out.content = Create, contentOf(&unstructured.Unstructured{Object: after}, c.mask)
		return out, nil
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.edit.Before)
	if err != nil {
		return out, err
	}
	d := compare(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}, c.mask)
	out.Fields, out.Metadata, out.Effect = d.fields, d.metadata, Unchanged
	if len(d.fields)+d.metadata > 0 {
		out.Effect = Modify
	}
	return out, nil
}

// comparePlacements returns what becomes of an Instance in each cluster. Before may be nil.
func comparePlacements(before, after *v1beta1.Instance) *Placement {
	groups := after.WaveGroups()
	out, old, shares := &Placement{Waves: len(groups)}, map[string]v1beta1.PlacedCluster{}, sharesOf(after)
	var oldShares map[string]int64
	if before != nil && before.Spec.Placement != nil {
		oldShares = sharesOf(before)
		for _, c := range before.PlacedClusters() {
			old[c.Name] = c
		}
	}
	for _, c := range after.PlacedClusters() {
		placed := PlacedCluster{Name: c.Name, Effect: Create, Values: slices.Sorted(maps.Keys(c.Parameters)), Share: shareOf(shares, c.Name),
			ShareBefore: shareOf(oldShares, c.Name), Wave: 1 + slices.IndexFunc(groups, func(group []string) bool {
				return slices.Contains(group, c.Name)
			})}
		if former, stays := old[c.Name]; stays {
			placed.Effect = Unchanged
			if !equality.Semantic.DeepEqual(former.Parameters, c.Parameters) || !equality.Semantic.DeepEqual(placed.Share, placed.ShareBefore) ||
				!equality.Semantic.DeepEqual(commonSpec(before), commonSpec(after)) {
				placed.Effect = Modify
			}
			delete(old, c.Name)
		}
		out.Clusters = append(out.Clusters, placed)
	}
	if d := after.Spec.Placement.Decision; d != nil {
		if out.Decision = d.Name; after.DecisionFingerprint() == "" {
			old = nil // the decision may name them, too
		}
	}
	for name := range old {
		effect := Delete
		if after.Spec.Placement.OnDelete == v1beta1.OrphanPlaced {
			effect = Keep
		}
		out.Clusters = append(out.Clusters, PlacedCluster{Name: name, Effect: effect, ShareBefore: shareOf(oldShares, name)})
	}
	slices.SortFunc(out.Clusters, func(a, b PlacedCluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// commonSpec returns what all clusters have alike, without the parameter that is divided.
func commonSpec(i *v1beta1.Instance) v1beta1.InstanceSpec {
	out := i.DeepCopy().Spec
	if out.Placement != nil {
		delete(out.Parameters, out.Placement.Divide)
	}
	out.Placement = nil
	return out
}

// sharesOf returns the shares of the divided parameter; nil if none is divided, or if its value is not known.
func sharesOf(i *v1beta1.Instance) map[string]int64 {
	if value := clusters.DividedValue(i); value != nil && *value >= 0 {
		return clusters.Shares(*value, i.PlacedClusters())
	}
	return nil
}

func shareOf(shares map[string]int64, name string) *int64 {
	if value, known := shares[name]; known {
		return &value
	}
	return nil
}

// lines are how people read a placement. A preview without one has none.
func (p *Placement) lines() []string {
	if p == nil {
		return nil
	}
	out := []string{fmt.Sprintf("no plan runs on the hub: the plans run in the clusters, in %s", count(p.Waves, "wave"))}
	switch {
	case p.Decision != "" && len(p.Clusters) == 0:
		out = []string{fmt.Sprintf("no plan runs on the hub: the plans run in the clusters that the decision %s names; a cluster that it does "+
			"not name loses the Instance", text.Plain(p.Decision, maxValue))}
	case p.Decision != "":
		out[0] += fmt.Sprintf(" of those that the decision %s names now", text.Plain(p.Decision, maxValue))
	}
	for _, c := range p.Clusters {
		out = append(out, c.String())
	}
	return out
}

// String is how people read what would become of an Instance in a cluster.
func (c PlacedCluster) String() string {
	line := fmt.Sprintf("%s cluster %s", signs[c.Effect], text.Plain(c.Name, maxValue))
	switch c.Effect {
	case Delete:
		return line + ": the Instance is deleted there, after its cleanup plan"
	case Keep:
		return line + ": the hub leaves the Instance there as it is"
	}
	line += fmt.Sprintf(": wave %d", c.Wave)
	switch {
	case c.Share != nil && c.ShareBefore != nil && *c.Share != *c.ShareBefore:
		line += fmt.Sprintf(", share %d -> %d", *c.ShareBefore, *c.Share)
	case c.Share != nil:
		line += fmt.Sprintf(", share %d", *c.Share)
	}
	if len(c.Values) > 0 {
		line += ", values of its own: " + text.Plain(text.List(c.Values, maxFields), maxWhy)
	}
	return line
}

// deletes reports whether the Instance would be deleted in a cluster.
func (p *Placement) deletes() bool {
	return p != nil && slices.ContainsFunc(p.Clusters, func(c PlacedCluster) bool { return c.Effect == Delete })
}
