package karmada

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// View is what the hub shows of a placed Instance.
type View struct {
	Instance *v1beta1.Instance
	// Policy is the PropagationPolicy of the Instance, and Binding its ResourceBinding; nil if there is none.
	Policy, Binding *unstructured.Unstructured
	// Clusters that Karmada knows.
	Clusters []*unstructured.Unstructured
	// Silent says why Karmada's reports are not fresh, or is "".
	Silent string
	// Outdated is set if the PropagationPolicy that was read is older than the one written last.
	Outdated bool
}

// Observe returns what a view says of the Instance. It takes no content of an object on trust: what has another type than Karmada gives it
// counts as absent.
func Observe(v View) clusters.Observation {
	out := clusters.Observation{Silent: v.Silent, Refused: v.claimed(), Bound: map[string]*int64{}, Members: map[string]clusters.Member{}}
	binding := v.binding()
	divided := isDivided(v.Instance)
	for _, bound := range boundClusters(binding) {
		out.Bound[bound.name] = nil
		if divided {
			out.Bound[bound.name] = &bound.share
		}
	}
	out.Unschedulable = unschedulable(binding)
	out.Settled = out.Refused == nil && v.isSettled(binding)
	items := itemsOf(binding)
	named := namesOf(v.Instance, binding)
	for _, cluster := range v.Clusters {
		name := cluster.GetName()
		if !slices.Contains(named, name) {
			continue
		}
		member := clusters.Member{Unreachable: unreachable(cluster), Suspended: v.suspended(binding, name)}
		if item, found := items[name]; found {
			member.Applied, _ = item["applied"].(bool)
			member.AppliedMessage = message(textAt(item, "appliedMessage"))
			member.Report = parseReport(item["status"])
		}
		out.Members[name] = member
	}
	return out
}

// binding returns the content of the ResourceBinding, or nil if it is that of another object: of an Instance of before with the same name,
// or of a kind Instance of others.
func (v View) binding() map[string]any {
	if v.Binding == nil || bindingInstance(v.Binding) != keyOf(v.Instance) {
		return nil
	}
	if textAt(v.Binding.Object, "spec", "resource", "uid") != string(v.Instance.UID) {
		return nil
	}
	return v.Binding.Object
}

// claimed returns an error if Karmada has given the Instance to a policy that is not the one of kudo.
func (v View) claimed() *clusters.RefusedError {
	ours := v.Instance.Namespace + "/" + PolicyName(v.Instance.Name)
	by := ""
	switch annotations := v.Instance.Annotations; {
	case annotations[claimNameAnnotation] != "":
		by = annotations[claimNamespaceAnnotation] + "/" + annotations[claimNameAnnotation]
		if by == ours {
			return nil
		}
		by = "PropagationPolicy " + text.Plain(by, 2*longestWord)
	case annotations[clusterClaimAnnotation] != "":
		by = "ClusterPropagationPolicy " + text.Plain(annotations[clusterClaimAnnotation], longestWord)
	case v.Instance.Labels[clusterPermanentIDLabel] != "" && v.Instance.Labels[permanentIDLabel] == "":
		by = "a ClusterPropagationPolicy"
	default:
		return nil
	}
	return &clusters.RefusedError{Reason: v1beta1.ReasonPolicyRefused, Message: fmt.Sprintf(
		"%s has claimed Instance %s/%s, so that Karmada does not follow PropagationPolicy %s: "+
			"take the Instance out of its resourceSelectors, or delete it",
		by, v.Instance.Namespace, v.Instance.Name, ours)}
}

// isSettled reports whether Karmada has scheduled the Instance by the policy that was written last, onto the clusters of the template.
func (v View) isSettled(binding map[string]any) bool {
	if v.Policy == nil || binding == nil || v.Outdated || v.Instance.Spec.Placement == nil || v.isOfFormerPolicy() {
		return false
	}
	var targets []clusters.Target
	for _, c := range v.Instance.Spec.Placement.Clusters {
		targets = append(targets, clusters.Target{Name: c.Name, Weight: c.EffectiveWeight()})
	}
	written := at(v.Policy.Object, "spec", "placement")
	if !covers(written, placementOf(v.Instance, targets)) || !reflect.DeepEqual(normal(written), normal(at(binding, "spec", "placement"))) {
		return false
	}
	observed, known := integer(at(binding, "status", "schedulerObservedGeneration"))
	if generation, ok := integer(at(binding, "metadata", "generation")); !ok || !known || observed != generation {
		return false
	}
	bound := boundClusters(binding)
	if len(bound) != len(targets) {
		return false
	}
	sum := int64(0)
	for _, b := range bound {
		if !slices.ContainsFunc(targets, func(t clusters.Target) bool { return t.Name == b.name }) {
			return false
		}
		sum += b.share
	}
	if !isDivided(v.Instance) {
		return true
	}
	replicas, _ := integer(at(binding, "spec", "replicas"))
	value, err := strconv.ParseInt(v.Instance.Spec.Parameters[v.Instance.Spec.Placement.Divide], 10, 64)
	return err == nil && replicas == value && sum == value
}

// isOfFormerPolicy reports whether the binding comes from a policy of the same name that was deleted.
func (v View) isOfFormerPolicy() bool {
	policy, binding := v.Policy.GetLabels()[permanentIDLabel], v.Binding.GetLabels()[permanentIDLabel]
	return policy != "" && binding != "" && policy != binding
}

// suspended returns the object that suspends writes to a cluster, or "".
func (v View) suspended(binding map[string]any, cluster string) string {
	if v.Policy != nil && isSuspended(v.Policy.Object, cluster) {
		return "PropagationPolicy " + v.Instance.Namespace + "/" + v.Policy.GetName()
	}
	if isSuspended(binding, cluster) {
		return "ResourceBinding " + v.Instance.Namespace + "/" + v.Binding.GetName()
	}
	return ""
}

func isSuspended(object map[string]any, cluster string) bool {
	all, _ := at(object, "spec", "suspension", "dispatching").(bool)
	return all || slices.Contains(list(at(object, "spec", "suspension", "dispatchingOnClusters", "clusterNames")), any(cluster))
}

// unschedulable returns why the scheduler has found no cluster, or "". An error of the scheduler itself is transient.
func unschedulable(binding map[string]any) string {
	condition := conditionOf(binding, "Scheduled")
	reason := textAt(condition, "reason")
	if textAt(condition, "status") != "False" || reason != "NoClusterFit" && reason != "Unschedulable" {
		return ""
	}
	return message(reason + ": " + textAt(condition, "message"))
}

// unreachable returns why a Cluster cannot be reached, or "".
func unreachable(cluster *unstructured.Unstructured) string {
	condition := conditionOf(cluster.Object, "Ready")
	switch {
	case condition == nil:
		return "the Cluster has no condition Ready"
	case textAt(condition, "status") == "True":
		return ""
	}
	return message(textAt(condition, "reason") + ": " + textAt(condition, "message"))
}

// boundCluster is a cluster that Karmada has chosen, and its share of the replicas.
type boundCluster struct {
	name  string
	share int64
}

func boundClusters(binding map[string]any) []boundCluster {
	var out []boundCluster
	for _, item := range list(at(binding, "spec", "clusters")) {
		cluster, _ := item.(map[string]any)
		if name := textAt(cluster, "name"); name != "" {
			replicas, _ := integer(cluster["replicas"])
			out = append(out, boundCluster{name, replicas})
		}
	}
	return out
}

// itemsOf returns what Karmada has collected of each cluster.
func itemsOf(binding map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, element := range list(at(binding, "status", "aggregatedStatus")) {
		item, _ := element.(map[string]any)
		if name := textAt(item, "clusterName"); name != "" {
			out[name] = item
		}
	}
	return out
}

// namesOf returns the clusters that the Instance is on, or shall be on, sorted.
func namesOf(instance *v1beta1.Instance, binding map[string]any) []string {
	var names []string
	if instance.Spec.Placement != nil {
		for _, c := range instance.Spec.Placement.Clusters {
			names = append(names, c.Name)
		}
	}
	names = append(names, holders(binding)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// holders returns the clusters that a binding names, sorted.
func holders(binding map[string]any) []string {
	var names []string
	for _, bound := range boundClusters(binding) {
		names = append(names, bound.name)
	}
	for name := range itemsOf(binding) {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
