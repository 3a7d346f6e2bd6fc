package karmada

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// FromConfigs turns valid Configs into what Karmada has for them: ResourceInterpreterCustomizations, one for each kind that has a script,
// and, with an endpoint, ResourceInterpreterWebhookConfigurations, one for each kind that has a rule which Karmada's scripts cannot say.
// Both are named after the kind. Without an endpoint, and of what Karmada has no operation for, it warns. An error names a script that
// cannot be converted, and two rules that answer the same.
func FromConfigs(configs []v1alpha1.Config, endpoint *Endpoint) (documents []map[string]any, warnings []string, err error) {
	w := &writer{endpoint: endpoint}
	for i := range configs {
		w.addConfig(&configs[i])
	}
	for _, k := range w.kinds {
		if len(k.scripts) > 0 {
			documents = append(documents, k.customization())
		}
	}
	for _, k := range w.kinds {
		if len(k.asked) > 0 {
			documents = append(documents, k.webhookConfiguration(endpoint))
		}
	}
	return documents, w.warnings, w.err
}

// writer collects the rules of Configs by kind.
type writer struct {
	endpoint *Endpoint
	// config is the name of the Config that is being added.
	config   string
	kinds    []*kind
	warnings []string
	err      error
}

// kind is what Karmada is to know of a kind.
type kind struct {
	// name is that of the objects for it: unique for the kind in its version, since Karmada refuses a second customization of an operation.
	name, apiVersion, kind string
	// scripts are by their keys in spec.customizations.
	scripts map[string]any
	// asked are the operations that the webhook is asked.
	asked []string
}

func (w *writer) warn(format string, args ...any) {
	w.warnings = append(w.warnings, "Config/"+w.config+": "+fmt.Sprintf(format, args...))
}

func (w *writer) fail(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf(format, args...))
}

// addConfig adds all rules of a Config.
func (w *writer) addConfig(c *v1alpha1.Config) {
	w.config = c.Name
	for i, r := range c.Spec.Retentions {
		place := fmt.Sprintf("spec.retentions[%d]", i)
		if len(r.Fields) > 0 {
			w.ask(r.APIVersion, r.Kind, slotOf(explore.Retaining), place+" is left out: Karmada has no rules by fields. Write retentionLua")
			continue
		}
		w.addScript(place+".retentionLua", r.APIVersion, r.Kind, slotOf(explore.Retaining), r.RetentionLua)
	}
	for i := range c.Spec.Explorations {
		e := &c.Spec.Explorations[i]
		place := fmt.Sprintf("spec.explorations[%d]", i)
		if e.Health != nil {
			w.ask(e.APIVersion, e.Kind, slotOf(explore.Healthy), place+".health is left out: Karmada has no rules by fields. Write healthLua")
		}
		if e.PackingLua != "" {
			w.warn("%s.packingLua is left out: Karmada has no such operation", place)
		}
		for _, s := range slots {
			if source := *s.script(e); source != "" {
				w.addScript(place+", "+string(s.operation), e.APIVersion, e.Kind, s, source)
			}
		}
	}
}

// slotOf returns the slot of an operation that Karmada has.
func slotOf(operation explore.Operation) slot {
	return slots[slices.IndexFunc(slots, func(s slot) bool { return s.operation == operation })]
}

// ask has Karmada ask the hub. Without an endpoint, it warns instead.
func (w *writer) ask(apiVersion, name string, s slot, otherwise ...string) {
	if w.endpoint == nil {
		for _, warning := range otherwise {
			w.warn("%s, or have Karmada ask a hub (--webhook-url or --webhook-service)", warning)
		}
		return
	}
	if k := w.kindOf(apiVersion, name, s); k != nil {
		k.asked = append(k.asked, s.asked)
	}
}

// addScript adds a script to the customization of its kind, or has Karmada ask the hub if its machines run the script otherwise. place
// names the script in messages.
func (w *writer) addScript(place, apiVersion, name string, s slot, source string) {
	script, warnings, err := convertScript(s.operation, source)
	if err != nil {
		w.fail("script %s of Config/%s: %w", place, w.config, err)
		return
	}
	if len(warnings) > 0 && w.endpoint != nil {
		w.ask(apiVersion, name, s)
		return
	}
	for _, warning := range warnings {
		w.warn("%s: %s", place, warning)
	}
	if k := w.kindOf(apiVersion, name, s); k != nil {
		k.scripts[s.key] = map[string]any{"luaScript": script}
	}
}

// kindOf returns the entry of a kind, for an operation that it does not have yet; nil after an error.
func (w *writer) kindOf(apiVersion, name string, s slot) *kind {
	group, version, found := strings.Cut(apiVersion, "/")
	object := strings.ToLower(name) + "." + version + "." + group
	if !found {
		object = strings.ToLower(name) + "." + apiVersion
	}
	at := slices.IndexFunc(w.kinds, func(k *kind) bool { return k.name == object })
	if at < 0 {
		w.kinds = append(w.kinds, &kind{name: object, apiVersion: apiVersion, kind: name, scripts: map[string]any{}})
		at = len(w.kinds) - 1
	}
	k := w.kinds[at]
	switch _, has := k.scripts[s.key]; {
	case k.kind != name:
		w.fail("Config/%s: kinds %s and %s of %s differ in case only: convert each by itself, and rename the result", w.config, k.kind, name,
			apiVersion)
		return nil
	case has || slices.Contains(k.asked, s.asked):
		w.fail("Config/%s: %s of %s %s has a rule already: leave one of them", w.config, s.operation, apiVersion, name)
		return nil
	}
	return k
}

// customization returns the scripts of a kind.
func (k *kind) customization() map[string]any {
	return map[string]any{
		"apiVersion": APIVersion, "kind": Kind, "metadata": map[string]any{"name": k.name},
		"spec": map[string]any{
			"target":         map[string]any{"apiVersion": k.apiVersion, "kind": k.kind},
			"customizations": k.scripts,
		},
	}
}
