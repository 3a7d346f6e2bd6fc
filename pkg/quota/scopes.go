package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Judged reports whether it is known which pods a quota counts.
func Judged(q *corev1.ResourceQuota) bool {
	return len(q.Status.Hard) > 0 && !slices.ContainsFunc(requirements(q), func(r corev1.ScopedResourceSelectorRequirement) bool {
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass:
			return false
		}
		return true
	})
}

// requirements are the scopes of a quota, each of which a pod has to match. A scope without a selector is one that has to exist.
func requirements(q *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		out = append(out, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return out
}

// countedBy returns what a quota counts of a usage. A quota with scopes counts pods only, and those that match.
func (u Usage) countedBy(q *corev1.ResourceQuota) corev1.ResourceList {
	scopes := requirements(q)
	if len(scopes) == 0 {
		return u.Resources
	}
	excludes := func(r corev1.ScopedResourceSelectorRequirement) bool { return !matches(u.template, r) }
	if u.template == nil || slices.ContainsFunc(scopes, excludes) {
		return nil
	}
	counted := corev1.ResourceList{}
	for name, quantity := range u.Resources {
		if isOfPods(name) {
			counted[name] = quantity
		}
	}
	return counted
}

// isOfPods reports whether a name of Usage is that of something that pods use. Claims are not.
func isOfPods(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.HasPrefix(string(name), limitsPrefix) ||
		strings.HasPrefix(string(name), requestsPrefix) && name != corev1.ResourceRequestsStorage
}

// matches reports whether pods are known to match a scope.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes
func matches(spec *corev1.PodSpec, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return isBestEffort(spec)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(spec)
	case corev1.ResourceQuotaScopePriorityClass:
		return matchesClass(spec.PriorityClassName, r)
	}
	return false
}

// matchesClass reports whether a priority class matches. Pods without one may get the default class of the cluster, which is not known.
func matchesClass(class string, r corev1.ScopedResourceSelectorRequirement) bool {
	if class == "" {
		return false
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(r.Values, class)
	}
	return r.Operator == corev1.ScopeSelectorOpExists
}

// isBestEffort reports whether neither a container nor the pod itself requests or limits CPU or memory. Defaults that a LimitRange adds are
// not known.
func isBestEffort(spec *corev1.PodSpec) bool {
	sets := func(r corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]
			if cpu.Sign() > 0 || memory.Sign() > 0 {
				return true
			}
		}
		return false
	}
	sized := func(c corev1.Container) bool { return sets(c.Resources) }
	return !slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), sized) &&
		(spec.Resources == nil || !sets(*spec.Resources))
}
