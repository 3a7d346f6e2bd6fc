package cases

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadConfigErrors has files that hold no Config, or a malformed one.
func TestReadConfigErrors(t *testing.T) {
	const config = "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\n"
	const customization = "kind: ResourceInterpreterCustomization\nmetadata: {name: x}\n"
	const other = `: want a Config (config.kudo.dev/v1alpha1) or a ResourceInterpreterCustomization`
	for name, tc := range map[string]struct{ reason, text, err string }{
		"Kind":    {"another kind", "apiVersion: v1\nkind: Secret", `f:1: kind "Secret"` + other},
		"Version": {"another version", "apiVersion: config.kudo.dev/v9\nkind: Config", `f:1: kind "Config"` + other},
		"List":    {"a list", "[]", `f:1: kind ""` + other},
		"Second":  {"the second document", config + "---\nkind: 5", `f:4: kind ""` + other},
		"Field": {
			"a field that is unknown",
			config + "spec: {explorations: [{healthLau: x}]}",
			`f:1: strict decoding error: unknown field "spec.explorations[0].healthLau"`,
		},
		"Name": {
			"a customization without a name",
			"kind: ResourceInterpreterCustomization\nmetadata: {}",
			"f:1: metadata.name is missing",
		},
		"Target":     {"without apiVersion", customization + "spec: {target: {kind: X}}", "f:1: spec.target must have apiVersion and kind"},
		"TargetKind": {"without kind", customization + "spec: {target: {apiVersion: v1}}", "f:1: spec.target must have apiVersion and kind"},
		"Customizations": {
			"without customizations",
			customization + "spec: {target: {apiVersion: v1, kind: X}}",
			"f:1: spec.customizations is missing",
		},
		"Script": {
			"with a script that is no text",
			customization + "spec: {target: {apiVersion: v1, kind: X}, customizations: {retention: {luaScript: 5}}}",
			"f:1: spec.customizations.retention.luaScript must be a text",
		},
		"NoScript": {
			"with none",
			customization + "spec: {target: {apiVersion: v1, kind: X}, customizations: {retention: x}}",
			"f:1: spec.customizations.retention.luaScript must be a text",
		},
	} {
		t.Run(name, func(t *testing.T) {
			configs, _, err := ReadConfigs("f", []byte(tc.text))
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" || configs != nil {
				t.Errorf("%s: configs %v (-want +got):\n%s", tc.reason, configs, diff)
			}
		})
	}
}

// TestParseFields has the fields of cases that are malformed.
func TestParseFields(t *testing.T) {
	const health = "operation: InterpretHealth\nobservedObj: {apiVersion: v1, kind: X}\n"
	const revise = "operation: ReviseReplica\ndesiredObj: {apiVersion: v1, kind: X}\noutput: {revised: {}}\n"
	for name, tc := range map[string]struct{ reason, text, err string }{
		"Desired":    {"an object is a map", "operation: Pack\ndesiredObj: []\noutput: {packed: {}}", "desiredObj must be an object"},
		"Observed":   {"also the other one", "operation: Pack\nobservedObj: x\noutput: {packed: {}}", "observedObj must be an object"},
		"Items":      {"items are a list", health + "statusItems: {}\noutput: {healthy: true}", "statusItems must be a list"},
		"Item":       {"of maps", health + "statusItems: [{}, 5]\noutput: {healthy: true}", "statusItems[1] must be a map"},
		"NoOutput":   {"an output may be missing", health, "<nil>"},
		"Output":     {"or be empty", health + "output: {}", "<nil>"},
		"OutputList": {"and no list", health + "output: [1]", "output must be a map with healthy or message or outcome"},
		"Negative":   {"0 replicas or more", revise + "inputReplicas: -1", "inputReplicas must be a whole number from 0 to 2147483647"},
		"Half":       {"whole ones", revise + "inputReplicas: 1.5", "inputReplicas must be a whole number from 0 to 2147483647"},
		"Text":       {"as a number", revise + "inputReplicas: '1'", "inputReplicas must be a whole number from 0 to 2147483647"},
		"Most":       {"the largest number", revise + "inputReplicas: 2147483647", "<nil>"},
		"Other": {
			"the desired object in place of the observed one",
			"operation: InterpretHealth\ndesiredObj: {apiVersion: v1, kind: X}\noutput: {healthy: true}",
			"<nil>",
		},
		"OtherLive": {"and the other way round", "operation: Pack\nobservedObj: {apiVersion: v1, kind: X}\noutput: {packed: {}}", "<nil>"},
		"YAML":      {"what is no YAML", "a: [", "line 1: malformed YAML: did not find expected node content"},
		"Key":       {"a key that is no text", "1: x\noperation: Pack", "ExplorePacking: there is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Parse("f", []byte(tc.text))
			if len(found) != 1 {
				t.Fatalf("%s: %d cases", tc.reason, len(found))
			}
			if diff := cmp.Diff(tc.err, fmt.Sprint(found[0].Broken)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestParseCase reads all fields of a case.
func TestParseCase(t *testing.T) {
	found := Parse("f", []byte(`
name: sum
description: two clusters
operation: AggregateStatus
desiredObj: {apiVersion: v1, kind: X, metadata: {name: d}}
observedObj: {apiVersion: v1, kind: X, metadata: {name: o}}
statusItems: [{clusterName: a, applied: true, status: {count: 9007199254740993}}, {clusterName: b, appliedMessage: denied, status: null}]
output: {aggregatedStatus: {count: 1}}
---
operation: InterpretHealth
desiredObj: {apiVersion: v1, kind: X, metadata: {name: d}}
observedObj: {apiVersion: v1, kind: X, metadata: {name: o}}
statusItems: []
output: {healthy: true}
`))
	if len(found) != 2 || found[0].Broken != nil || found[1].Broken != nil {
		t.Fatalf("got %+v", found)
	}
	sum, health := found[0], found[1]
	if sum.Name != "sum" || sum.Description != "two clusters" || sum.Place != "f:2" || sum.Request.Object.GetName() != "d" {
		t.Errorf("the first case is %+v", sum)
	}
	items := sum.Request.Items
	if len(items) != 2 || !items[0].Applied || items[1].Applied || items[1].AppliedMessage != "denied" || items[1].Status != nil {
		t.Errorf("its items are %+v", items)
	} else if got := string(items[0].Status.Raw); got != `{"count":9007199254740993}` {
		t.Errorf("the status of the first item is %s", got)
	}
	if health.Name != "InterpretHealth" || health.Place != "f:10" || health.Request.Object.GetName() != "o" || health.Request.Items == nil {
		t.Errorf("the second case is %+v", health)
	}
}
