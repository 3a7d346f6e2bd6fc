// Package karmada turns explore rules into ResourceInterpreterCustomizations, the rules of Karmada's interpreters, and back. What these
// cannot say becomes a ResourceInterpreterWebhookConfiguration, by which Karmada asks a hub.
//
// Source: https://karmada.io/docs/userguide/globalview/customizing-resource-interpreter/
package karmada

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// APIVersion and Kind of the customizations.
const (
	APIVersion = "config.karmada.io/v1alpha1"
	Kind       = "ResourceInterpreterCustomization"
)

// slot is a script of a kind.
type slot struct {
	// key names the script in spec.customizations, and asked is the operation in the rules of webhooks.
	key, asked string
	operation  explore.Operation
	script     func(e *v1alpha1.Exploration) *string
}

var slots = []slot{
	{"componentResource", "InterpretComponent", explore.Components, func(e *v1alpha1.Exploration) *string { return &e.ComponentsLua }},
	{"dependencyInterpretation", "InterpretDependency", explore.Dependencies,
		func(e *v1alpha1.Exploration) *string { return &e.DependenciesLua }},
	{"healthInterpretation", "InterpretHealth", explore.Healthy, func(e *v1alpha1.Exploration) *string { return &e.HealthLua }},
	{"replicaResource", "InterpretReplica", explore.Replica, func(e *v1alpha1.Exploration) *string { return &e.ReplicaLua }},
	{"replicaRevision", "ReviseReplica", explore.ReplicaRevising, func(e *v1alpha1.Exploration) *string { return &e.ReplicaRevisingLua }},
	{"retention", "Retain", explore.Retaining, func(e *v1alpha1.Exploration) *string { return &e.RetainingLua }},
	{"statusAggregation", "AggregateStatus", explore.StatusAggregating,
		func(e *v1alpha1.Exploration) *string { return &e.StatusAggregatingLua }},
	{"statusReflection", "InterpretStatus", explore.Status, func(e *v1alpha1.Exploration) *string { return &e.StatusLua }},
}

// OperationOf returns the operation that a key of spec.customizations answers.
func OperationOf(key string) (explore.Operation, bool) {
	for _, s := range slots {
		if s.key == key {
			return s.operation, true
		}
	}
	return "", false
}

// Scripts returns the scripts of an exploration for which Karmada has an operation.
func Scripts(e *v1alpha1.Exploration) map[explore.Operation]string {
	found := map[explore.Operation]string{}
	for _, s := range slots {
		if source := *s.script(e); source != "" {
			found[s.operation] = source
		}
	}
	return found
}

// ToConfig turns a customization into a Config. It warns of scripts that kudo has no operation for.
func ToConfig(fields map[string]any) (v1alpha1.Config, []string, error) {
	c := v1alpha1.Config{}
	c.APIVersion, c.Kind = v1alpha1.GroupVersion.String(), "Config"
	metadata, _ := fields["metadata"].(map[string]any)
	c.Name, _ = metadata["name"].(string)
	if c.Name == "" {
		return c, nil, fmt.Errorf("metadata.name is missing")
	}
	spec, _ := fields["spec"].(map[string]any)
	target, _ := spec["target"].(map[string]any)
	e := v1alpha1.Exploration{}
	e.APIVersion, _ = target["apiVersion"].(string)
	e.Kind, _ = target["kind"].(string)
	if e.APIVersion == "" || e.Kind == "" {
		return c, nil, fmt.Errorf("spec.target must have apiVersion and kind")
	}
	customizations, ok := spec["customizations"].(map[string]any)
	if !ok {
		return c, nil, fmt.Errorf("spec.customizations is missing")
	}
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(customizations)) {
		rule, _ := customizations[key].(map[string]any)
		script, isText := rule["luaScript"].(string)
		at := slices.IndexFunc(slots, func(s slot) bool { return s.key == key })
		switch {
		case at < 0:
			warnings = append(warnings, fmt.Sprintf("spec.customizations.%s is left out: kudo has no such operation", key))
		case !isText:
			return c, nil, fmt.Errorf("spec.customizations.%s.luaScript must be a text", key)
		case strings.TrimSpace(script) != "":
			*slots[at].script(&e) = script
		}
	}
	c.Spec.Explorations = []v1alpha1.Exploration{e}
	return c, warnings, nil
}
