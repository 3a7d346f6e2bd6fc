// Package pods says what the pods of a template need: resources, nodes, and other objects.
package pods

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Requirements are what each pod requests, and where it may run. The rules are those of the scheduler: the sum over
// containers and sidecars, or the largest init container if that is more, and the overhead; a container that has a
// limit and no request requests its limit. Always has a ResourceRequest, which may be empty.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
func Requirements(spec *corev1.PodSpec) *v1alpha1.ReplicaRequirements {
	return &v1alpha1.ReplicaRequirements{NodeClaim: nodeClaim(spec), ResourceRequest: requests(spec)}
}

func nodeClaim(spec *corev1.PodSpec) *v1alpha1.NodeClaim {
	claim := &v1alpha1.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		claim.HardNodeAffinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity == nil && len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0 {
		return nil
	}
	return claim
}

// Limits are what one pod may use, by the same rules. The overhead counts for what is limited.
func Limits(spec *corev1.PodSpec) corev1.ResourceList {
	sum := total(spec, func(r corev1.ResourceRequirements) corev1.ResourceList { return maps.Clone(r.Limits) })
	for name, quantity := range spec.Overhead {
		if _, limited := sum[name]; limited {
			add(sum, corev1.ResourceList{name: quantity})
		}
	}
	return counted(sum)
}

func requests(spec *corev1.PodSpec) corev1.ResourceList {
	sum := total(spec, requested)
	add(sum, spec.Overhead)
	return counted(sum)
}

// total sums up what the containers of a pod have.
func total(spec *corev1.PodSpec, of func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range spec.Containers {
		add(sum, of(c.Resources))
	}
	sidecars, largest := corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range spec.InitContainers {
		r := of(c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sum, r)
			add(sidecars, r)
			atLeast(largest, sidecars)
			continue
		}
		if r == nil {
			r = corev1.ResourceList{}
		}
		add(r, sidecars)
		atLeast(largest, r)
	}
	atLeast(sum, largest)
	return sum
}

// counted removes what is zero, and what the scheduler does not count.
func counted(sum corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range sum {
		if quantity.IsZero() || !counts(name) {
			delete(sum, name)
		}
	}
	return sum
}

// counts reports whether the scheduler counts a resource: those of Kubernetes that pods have, and extended ones.
func counts(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.Contains(string(name), "/")
}

// requested are a container's requests, and its limits for what it does not request.
func requested(r corev1.ResourceRequirements) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range r.Limits {
		list[name] = quantity
	}
	for name, quantity := range r.Requests {
		list[name] = quantity
	}
	return list
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := resource.Quantity{Format: quantity.Format}
		if had, ok := sum[name]; ok {
			total = had.DeepCopy()
		}
		total.Add(quantity)
		sum[name] = total
	}
}

func atLeast(sum, least corev1.ResourceList) {
	for name, quantity := range least {
		if had, ok := sum[name]; !ok || had.Cmp(quantity) < 0 {
			sum[name] = quantity.DeepCopy()
		}
	}
}
