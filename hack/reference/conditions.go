package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed conditions.yaml
var conditionsFile []byte

// conditionTable is conditions.yaml.
type conditionTable struct {
	Conditions []conditionText `json:"conditions"`
	Health     []healthCheck   `json:"health"`
	Reasons    []reasonText    `json:"reasons"`
	Events     []eventText     `json:"events"`
}

// conditionText describes a type of condition.
type conditionText struct {
	Type string `json:"type"`
	// Of are the kinds that have the condition.
	Of      []string `json:"of"`
	Meaning string   `json:"meaning"`
}

// reasonText describes a reason of conditions.
type reasonText struct {
	Reason string `json:"reason"`
	// In are the conditions that have the reason, as "Instance Ready False".
	In      []string `json:"in"`
	Meaning string   `json:"meaning"`
	// Remedy is what to do; "Nothing." if nothing has to be done.
	Remedy string `json:"remedy"`
	// Section is the anchor of the heading of docs/troubleshooting.md that goes further; empty if there is nothing to do.
	Section string `json:"section,omitempty"`
	// Permanent is set if the object stays as it is until a user corrects the cause.
	Permanent bool `json:"permanent,omitempty"`
}

// eventText describes a reason of events.
type eventText struct {
	Reason  string   `json:"reason"`
	Of      []string `json:"of"`
	Type    string   `json:"type"`
	Meaning string   `json:"meaning"`
	Remedy  string   `json:"remedy"`
}

// readTable reads conditions.yaml.
func readTable() (conditionTable, error) {
	var out conditionTable
	return out, yaml.UnmarshalStrict(conditionsFile, &out)
}

// names of the constants that conditions.yaml describes, by their prefixes and endings.
const (
	reasonPrefix    = "Reason"
	eventPrefix     = "Event"
	conditionEnding = "Condition"
)

// described returns the constants of condition types, reasons and events. A constant with a type of its own is not a reason of a condition.
func described(all []constant) (types, reasons, events []constant) {
	for _, c := range all {
		switch {
		case c.typed:
		case strings.HasPrefix(c.name, reasonPrefix):
			reasons = append(reasons, c)
		case strings.HasPrefix(c.name, eventPrefix):
			events = append(events, c)
		case strings.HasSuffix(c.name, conditionEnding):
			types = append(types, c)
		}
	}
	return types, reasons, events
}

// check compares the table with the constants: each constant has an entry, each entry a constant, and each entry says what it means and
// what to do.
func (t conditionTable) check(all []constant) error {
	types, reasons, events := described(all)
	var errs []error
	complete := func(what, name string, texts ...string) {
		if slices.Contains(texts, "") {
			errs = append(errs, fmt.Errorf("conditions.yaml: %s %s lacks a field", what, name))
		}
	}
	var names [3][]string
	for _, c := range t.Conditions {
		names[0] = append(names[0], c.Type)
		complete("condition", c.Type, c.Meaning, strings.Join(c.Of, ""))
	}
	for _, r := range t.Reasons {
		names[1] = append(names[1], r.Reason)
		complete("reason", r.Reason, r.Meaning, r.Remedy, strings.Join(r.In, ""))
		if r.Section == "" && r.Remedy != nothing {
			errs = append(errs, fmt.Errorf("conditions.yaml: reason %s has a remedy, and no section of docs/troubleshooting.md", r.Reason))
		}
	}
	for _, e := range t.Events {
		names[2] = append(names[2], e.Reason)
		complete("event", e.Reason, e.Meaning, e.Remedy, e.Type, strings.Join(e.Of, ""))
	}
	for _, h := range t.Health {
		errs = append(errs, h.check(t))
	}
	errs = append(errs, compare("condition", types, names[0]), compare("reason", reasons, names[1]), compare("event", events, names[2]))
	return errors.Join(errs...)
}

// compare wants each constant among the names, and each name among the constants, once.
func compare(what string, constants []constant, names []string) error {
	var errs []error
	for _, c := range constants {
		if !slices.Contains(names, c.value) {
			errs = append(errs, fmt.Errorf("conditions.yaml has no %s %s, which is constant %s of %s: add it", what, c.value, c.name, c.place))
		}
	}
	for i, name := range names {
		if !slices.ContainsFunc(constants, func(c constant) bool { return c.value == name }) {
			errs = append(errs, fmt.Errorf("conditions.yaml has the %s %s, which is no constant: remove it", what, name))
		}
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("conditions.yaml has the %s %s twice", what, name))
		}
	}
	return errors.Join(errs...)
}

// nothing is the remedy of what needs none.
const nothing = "Nothing."

// writeConditions writes the page of condition types, reasons and events.
func writeConditions(root string) (string, error) {
	table, err := readTable()
	if err != nil {
		return "", err
	}
	constants, err := readConstants(root)
	if err != nil {
		return "", err
	}
	if err := table.check(constants); err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, header, "Conditions and events", "It has each condition, reason and event of kudo, what it means, and what to do. "+
		"[Troubleshooting](../troubleshooting.md) goes from what you see to the cause.")
	out.WriteString("## Conditions\n\n| condition | of | meaning |\n|---|---|---|\n")
	for _, c := range table.Conditions {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c.Type, strings.Join(c.Of, ", "), cell(c.Meaning))
	}
	out.WriteString("\n## Reasons\n\n| reason | in | meaning | what to do |\n|---|---|---|---|\n")
	for _, r := range table.Reasons {
		remedy := cell(r.Remedy)
		if r.Section != "" {
			remedy += " See [troubleshooting](" + path.Join("..", "troubleshooting.md") + "#" + r.Section + ")."
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.Reason, strings.Join(r.In, "; "), cell(r.Meaning), remedy)
	}
	out.WriteString("\n## Events\n\n| reason | type | of | meaning | what to do |\n|---|---|---|---|---|\n")
	for _, e := range table.Events {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", e.Reason, e.Type, strings.Join(e.Of, ", "), cell(e.Meaning), cell(e.Remedy))
	}
	return out.String(), nil
}
