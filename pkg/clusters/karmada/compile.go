package karmada

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// Compile returns the PropagationPolicy and the OverridePolicy that place an Instance. Both are nil if no cluster is given: Karmada places
// an object whose policy names no cluster on all of them. An OverridePolicy without a rule is written, so that what an earlier one has
// overridden ends with the same write.
func Compile(placed clusters.Placed) (policy, override *unstructured.Unstructured) {
	if len(placed.Clusters) == 0 {
		return nil, nil
	}
	instance := placed.Instance
	orphan := instance.Spec.Placement != nil && instance.Spec.Placement.OnDelete == v1beta1.OrphanPlaced
	policy = document(PolicyKind, instance, map[string]any{
		"resourceSelectors":           selectors(instance),
		"propagateDeps":               true,
		"conflictResolution":          "Abort",
		"preemption":                  "Never",
		"preserveResourcesOnDeletion": orphan,
		"placement":                   placementOf(instance, placed.Clusters),
	})
	override = document(OverrideKind, instance, map[string]any{
		"resourceSelectors": selectors(instance),
		"overrideRules":     append(releases(placed.Clusters), parameters(placed.Clusters)...),
	})
	return policy, override
}

// document returns an object that belongs to an Instance.
func document(kind schema.GroupVersionKind, instance *v1beta1.Instance, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": instance.Namespace,
			"name":      PolicyName(instance.Name),
			"labels":    map[string]any{v1beta1.InstanceLabel: bounded(instance.Name)},
			// The reference does not block the deletion of the Instance, which would keep the copies until the policies are deleted.
			"ownerReferences": []any{map[string]any{
				"apiVersion": v1beta1.GroupVersion.String(), "kind": instanceKind, "name": instance.Name, "uid": string(instance.UID),
				"controller": true,
			}},
		},
		"spec": spec,
	}}
	out.SetGroupVersionKind(kind)
	return out
}

func selectors(instance *v1beta1.Instance) []any {
	return []any{map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": instanceKind, "namespace": instance.Namespace, "name": instance.Name,
	}}
}

// placementOf returns the field spec.placement of the PropagationPolicy.
func placementOf(instance *v1beta1.Instance, targets []clusters.Target) map[string]any {
	var weights []any
	names := make([]string, 0, len(targets))
	for _, t := range targets {
		names = append(names, t.Name)
		weights = append(weights, map[string]any{"targetCluster": affinity(t.Name), "weight": max(t.Weight, 1)})
	}
	out := map[string]any{"clusterAffinity": affinity(names...)}
	if isDivided(instance) {
		out["replicaScheduling"] = map[string]any{
			"replicaSchedulingType":     "Divided",
			"replicaDivisionPreference": "Weighted",
			"weightPreference":          map[string]any{"staticWeightList": weights},
		}
	}
	return out
}

// isDivided reports whether clusters get shares of a parameter.
func isDivided(instance *v1beta1.Instance) bool {
	return instance.Spec.Placement != nil && instance.Spec.Placement.Divide != ""
}

func affinity(names ...string) map[string]any {
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	return map[string]any{"clusterNames": list}
}

// releases returns a rule for the clusters of each released template, in the order of the clusters.
func releases(targets []clusters.Target) []any {
	var templates []string
	names := map[string][]string{}
	for _, t := range targets {
		if t.Released == "" {
			continue
		}
		if names[t.Released] == nil {
			templates = append(templates, t.Released)
		}
		names[t.Released] = append(names[t.Released], t.Name)
	}
	rules := []any{}
	for _, template := range templates {
		rules = append(rules, rule(names[template], patch("add", template, "metadata", "annotations", v1beta1.ReleasedAnnotation)))
	}
	return rules
}

// parameters returns a rule for each cluster with values of its own.
func parameters(targets []clusters.Target) []any {
	var rules []any
	for _, t := range targets {
		var patches []any
		for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
			patches = append(patches, patch("replace", t.Parameters[name], "spec", "parameters", name))
		}
		if len(patches) > 0 {
			rules = append(rules, rule([]string{t.Name}, patches...))
		}
	}
	return rules
}

func rule(names []string, patches ...any) map[string]any {
	return map[string]any{"targetCluster": affinity(names...), "overriders": map[string]any{"plaintext": patches}}
}

// escape writes a key as a segment of a JSON pointer, by RFC 6901.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func patch(operator, value string, path ...string) map[string]any {
	var pointer strings.Builder
	for _, key := range path {
		pointer.WriteString("/" + escape.Replace(key))
	}
	return map[string]any{"path": pointer.String(), "operator": operator, "value": value}
}
