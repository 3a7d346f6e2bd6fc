package library

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

// composed answers for kinds of Crossplane, which providers and platform teams define in groups of their own:
//
//	managed resources       spec.forProvider and spec.providerConfigRef
//	composite resources     spec.compositionRef or compositionUpdatePolicy; since version 2, in spec.crossplane
//	claims                  spec.compositeDeletePolicy, or as composite resources
//
// All have the conditions Synced and Ready. Source: https://docs.crossplane.io/latest/managed-resources/#conditions.
func composed(r explore.Request) (explore.Answer, bool) {
	spec, _ := r.Object.Object["spec"].(map[string]any)
	if !isManaged(spec) && !isComposite(spec) {
		return explore.Answer{}, false
	}
	switch r.Operation {
	case explore.Healthy:
		healthy, message := composedHealth(r.Object)
		return explore.Answer{Healthy: healthy, Message: message, Who: "crossplane"}, true
	case explore.Status:
		conditions, found, err := unstructured.NestedFieldCopy(r.Object.Object, "status", "conditions")
		if err != nil || !found {
			return explore.Answer{Who: "crossplane"}, true
		}
		return explore.Answer{Status: map[string]any{"conditions": conditions}, Who: "crossplane"}, true
	}
	return explore.Answer{}, false
}

func isManaged(spec map[string]any) bool {
	_, fields := spec["forProvider"].(map[string]any)
	_, provider := spec["providerConfigRef"].(map[string]any)
	return fields && provider
}

func isComposite(spec map[string]any) bool {
	if inner, ok := spec["crossplane"].(map[string]any); ok {
		spec = inner
	}
	for _, field := range []string{"compositionRef", "compositionUpdatePolicy", "compositeDeletePolicy"} {
		if spec[field] != nil {
			return true
		}
	}
	return false
}

// composedHealth wants both conditions to be True. Conditions carry the generation that they are about since Crossplane
// 1.20; those of an older generation do not count.
func composedHealth(object *unstructured.Unstructured) (bool, string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, want := range []string{"Synced", "Ready"} {
		condition := conditionOf(conditions, want)
		if condition == nil {
			return false, "waits for the condition " + want
		}
		if seen, ok := condition["observedGeneration"].(int64); ok && seen != object.GetGeneration() {
			return false, "waits for its controller to see this generation"
		}
		if condition["status"] == "True" {
			continue
		}
		for _, field := range []string{"message", "reason"} {
			if text, _ := condition[field].(string); text != "" {
				return false, want + ": " + text
			}
		}
		return false, "waits for the condition " + want
	}
	return true, ""
}

func conditionOf(conditions []any, kind string) map[string]any {
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}
