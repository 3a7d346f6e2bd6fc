package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/fields"
	"kudo.dev/kudo/pkg/explore/lua"
)

// entry is a rule and what it answers.
type entry struct {
	key
	rule *rule
}

// scriptsOf are the scripts of an exploration, by the names of their fields.
func scriptsOf(e *v1alpha1.Exploration) []struct {
	field     string
	operation explore.Operation
	source    string
} {
	return []struct {
		field     string
		operation explore.Operation
		source    string
	}{
		{"packingLua", explore.Packing, e.PackingLua},
		{"retainingLua", explore.Retaining, e.RetainingLua},
		{"healthLua", explore.Healthy, e.HealthLua},
		{"dependenciesLua", explore.Dependencies, e.DependenciesLua},
		{"replicaLua", explore.Replica, e.ReplicaLua},
		{"componentsLua", explore.Components, e.ComponentsLua},
		{"replicaRevisingLua", explore.ReplicaRevising, e.ReplicaRevisingLua},
		{"statusLua", explore.Status, e.StatusLua},
		{"statusAggregatingLua", explore.StatusAggregating, e.StatusAggregatingLua},
	}
}

// rulesOf are the rules of a Config in its order. Scripts are not compiled yet.
func rulesOf(c *v1alpha1.Config) []entry {
	var entries []entry
	for i, r := range c.Spec.Retentions {
		place := fmt.Sprintf("spec.retentions[%d]", i)
		made := &rule{config: c.Name, place: place, source: r.RetentionLua}
		made.fingerprint = strings.Join(append([]string{c.Name, r.RetentionLua}, r.Fields...), "\x00")
		for j, text := range r.Fields {
			path, err := fields.Parse(text)
			if err != nil {
				made.err = fmt.Errorf("%s.fields[%d]: %w", place, j, err)
				break
			}
			made.paths = append(made.paths, path)
		}
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		entries = append(entries, entry{key{kind, explore.Retaining}, made})
	}
	for i := range c.Spec.Explorations {
		e := &c.Spec.Explorations[i]
		kind := schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
		if e.Health != nil {
			place := fmt.Sprintf("spec.explorations[%d].health", i)
			raw, _ := json.Marshal(e.Health) // a struct of texts cannot fail
			made := &rule{config: c.Name, place: place, fingerprint: c.Name + "\x00" + string(raw)}
			made.health, made.err = parseHealth(place, e.Health)
			entries = append(entries, entry{key{kind, explore.Healthy}, made})
		}
		for _, s := range scriptsOf(e) {
			if s.source == "" {
				continue
			}
			place := fmt.Sprintf("spec.explorations[%d].%s", i, s.field)
			entries = append(entries, entry{key{kind, s.operation}, &rule{config: c.Name, place: place, source: s.source, fingerprint: c.Name +
				"\x00" + s.source}})
		}
	}
	return entries
}

// Validate checks a Config by itself: its kinds, paths and scripts, and that it answers nothing twice. It returns all
// that is wrong with it, and warnings, each with the field.
func Validate(c *v1alpha1.Config) (warnings []string, problems []error) {
	seen := map[key]*rule{}
	for _, e := range rulesOf(c) {
		r := e.rule
		if e.kind.Kind == "" || e.kind.Version == "" || strings.Count(e.kind.GroupVersion().String(), "/") > 1 {
			problems = append(problems, fmt.Errorf("%s: apiVersion and kind must be set, as apps/v1 and Deployment", r.place))
		}
		if other, taken := seen[e.key]; taken {
			problems = append(problems, conflict(e.key, other, r))
		}
		seen[e.key] = r
		if r.err == nil && len(r.paths) == 0 && r.source == "" && r.health == nil {
			r.err = fmt.Errorf("%s: fields or retentionLua must be set", r.place)
		}
		r.compile(e.operation, map[string]*lua.Script{})
		if r.err != nil {
			problems = append(problems, r.err)
		}
		if r.script == nil {
			continue
		}
		for _, w := range r.script.Warnings() {
			warnings = append(warnings, r.place+": "+w)
		}
	}
	return warnings, problems
}

// Conflicts are what a Config answers that one of the others answers, too; each names both. Others of its own name
// are former versions of it, and do not count.
func Conflicts(c *v1alpha1.Config, others []v1alpha1.Config) []error {
	own := map[key]*rule{}
	for _, e := range rulesOf(c) {
		own[e.key] = e.rule
	}
	var found []error
	for i := range others {
		if others[i].Name == c.Name {
			continue
		}
		for _, e := range rulesOf(&others[i]) {
			if r, both := own[e.key]; both {
				found = append(found, conflict(e.key, r, e.rule))
			}
		}
	}
	return found
}
