// Package karmada turns explore rules into ResourceInterpreterCustomizations, the rules of Karmada's interpreters, and back.
//
// Source: https://karmada.io/docs/userguide/globalview/customizing-resource-interpreter/
package karmada

import (
	"errors"
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
	// key names the script in spec.customizations.
	key       string
	operation explore.Operation
	script    func(e *v1alpha1.Exploration) *string
}

var slots = []slot{
	{"componentResource", explore.Components, func(e *v1alpha1.Exploration) *string { return &e.ComponentsLua }},
	{"dependencyInterpretation", explore.Dependencies, func(e *v1alpha1.Exploration) *string { return &e.DependenciesLua }},
	{"healthInterpretation", explore.Healthy, func(e *v1alpha1.Exploration) *string { return &e.HealthLua }},
	{"replicaResource", explore.Replica, func(e *v1alpha1.Exploration) *string { return &e.ReplicaLua }},
	{"replicaRevision", explore.ReplicaRevising, func(e *v1alpha1.Exploration) *string { return &e.ReplicaRevisingLua }},
	{"retention", explore.Retaining, func(e *v1alpha1.Exploration) *string { return &e.RetainingLua }},
	{"statusAggregation", explore.StatusAggregating, func(e *v1alpha1.Exploration) *string { return &e.StatusAggregatingLua }},
	{"statusReflection", explore.Status, func(e *v1alpha1.Exploration) *string { return &e.StatusLua }},
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

// FromConfig turns a valid Config into customizations, one for each kind that it has a script for. It warns of what Karmada has
// not, or does otherwise.
func FromConfig(c *v1alpha1.Config) (customizations []map[string]any, warnings []string, err error) {
	w := &writer{config: c.Name}
	for i, r := range c.Spec.Retentions {
		place := fmt.Sprintf("spec.retentions[%d]", i)
		if len(r.Fields) > 0 {
			w.warn("%s is left out: Karmada has no rules by fields. Write retentionLua", place)
			continue
		}
		w.add(place+".retentionLua", r.APIVersion, r.Kind, "retention", explore.Retaining, r.RetentionLua)
	}
	for i := range c.Spec.Explorations {
		e := &c.Spec.Explorations[i]
		place := fmt.Sprintf("spec.explorations[%d]", i)
		if e.Health != nil {
			w.warn("%s.health is left out: Karmada has no rules by fields. Write healthLua", place)
		}
		if e.PackingLua != "" {
			w.warn("%s.packingLua is left out: Karmada has no such operation", place)
		}
		for _, s := range slots {
			if source := *s.script(e); source != "" {
				w.add(place+", "+string(s.operation), e.APIVersion, e.Kind, s.key, s.operation, source)
			}
		}
	}
	return w.customizations, w.warnings, w.err
}

// writer collects the customizations of a Config.
type writer struct {
	config         string
	customizations []map[string]any
	warnings       []string
	err            error
}

func (w *writer) warn(format string, args ...any) {
	w.warnings = append(w.warnings, "Config/"+w.config+": "+fmt.Sprintf(format, args...))
}

// add adds a script to the customization of its kind. place names the script in messages.
func (w *writer) add(place, apiVersion, kind, key string, operation explore.Operation, source string) {
	script, warnings, err := convertScript(operation, source)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("script %s of Config/%s: %w", place, w.config, err))
		return
	}
	for _, warning := range warnings {
		w.warn("%s: %s", place, warning)
	}
	// The name is unique for the kind in its version: Karmada refuses a second customization of the same operation.
	group, version, found := strings.Cut(apiVersion, "/")
	name := strings.ToLower(kind) + "." + version + "." + group
	if !found {
		name = strings.ToLower(kind) + "." + apiVersion
	}
	for _, c := range w.customizations {
		if c["metadata"].(map[string]any)["name"] == name {
			scriptsOf(c)[key] = map[string]any{"luaScript": script}
			return
		}
	}
	w.customizations = append(w.customizations, map[string]any{
		"apiVersion": APIVersion, "kind": Kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"target":         map[string]any{"apiVersion": apiVersion, "kind": kind},
			"customizations": map[string]any{key: map[string]any{"luaScript": script}},
		},
	})
}

// scriptsOf returns the scripts of a customization.
func scriptsOf(customization map[string]any) map[string]any {
	return customization["spec"].(map[string]any)["customizations"].(map[string]any)
}
