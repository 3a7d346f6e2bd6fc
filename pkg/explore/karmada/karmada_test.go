package karmada

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// TestToConfig converts each script of a customization to the field of its operation.
func TestToConfig(t *testing.T) {
	customizations := map[string]any{"unknown": map[string]any{"luaScript": "u"}, "another": 5}
	for _, name := range []string{
		"retention", "replicaResource", "replicaRevision", "statusReflection", "statusAggregation",
		"healthInterpretation", "dependencyInterpretation",
	} {
		customizations[name] = map[string]any{"luaScript": name}
	}
	c, warnings, err := ToConfig(map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{
		"target": map[string]any{"apiVersion": "v1", "kind": "X"}, "customizations": customizations,
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := c.Spec.Explorations[0]
	got := []string{
		e.RetainingLua, e.ReplicaLua, e.ReplicaRevisingLua, e.StatusLua,
		e.StatusAggregatingLua, e.HealthLua, e.DependenciesLua, e.PackingLua,
	}
	want := []string{
		"retention", "replicaResource", "replicaRevision", "statusReflection", "statusAggregation",
		"healthInterpretation", "dependencyInterpretation", "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
	want = []string{
		"spec.customizations.another is left out: kudo has no such operation",
		"spec.customizations.unknown is left out: kudo has no such operation",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	customizations["retention"] = map[string]any{"luaScript": " \n\t"}
	c, _, err = ToConfig(map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{
		"target": map[string]any{"apiVersion": "v1", "kind": "X"}, "customizations": customizations,
	}})
	if err != nil || c.Spec.Explorations[0].RetainingLua != "" {
		t.Errorf("a blank script: %v, %q", err, c.Spec.Explorations[0].RetainingLua)
	}
}

// scriptsOf returns the scripts of a customization.
func scriptsOf(customization map[string]any) map[string]any {
	return customization["spec"].(map[string]any)["customizations"].(map[string]any)
}

// TestFromConfigs is C20 and C21: a script becomes what Karmada runs, and what Karmada has not is named.
func TestFromConfigs(t *testing.T) {
	script := func(customization map[string]any, key string) string {
		rule, _ := scriptsOf(customization)[key].(map[string]any)
		text, _ := rule["luaScript"].(string)
		return text
	}
	c := &v1alpha1.Config{}
	c.Name = "c"
	c.Spec.Retentions = []v1alpha1.LocalValueRetention{
		{APIVersion: "g/v1", Kind: "K", RetentionLua: "return observedObj or desiredObj"},
		{APIVersion: "g/v1", Kind: "Fields", Fields: []string{"{.spec.replicas}"}},
	}
	c.Spec.Explorations = []v1alpha1.Exploration{
		{APIVersion: "g/v1", Kind: "K", StatusLua: "function ReflectStatus(o)\n  return o.status\nend", HealthLua: "return true, 'message', 'Failed'"},
		{APIVersion: "v1", Kind: "Core", PackingLua: "return desiredObj", DependenciesLua: "seen = string.gsub('a', 'b', 'c')\nreturn nil"},
		{APIVersion: "v1", Kind: "Local", HealthLua: "local function InterpretHealth(o) return ('a'):rep(2) ~= nil end"},
		{APIVersion: "v1", Kind: "Rule", Health: &v1alpha1.HealthRule{Field: "{.status.phase}", Healthy: []string{"Done"}}},
	}
	got, warnings, err := FromConfigs([]v1alpha1.Config{*c}, nil)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d customizations: %v", len(got), err)
	}
	names := map[string]string{}
	for _, customization := range got {
		target := customization["spec"].(map[string]any)["target"].(map[string]any)
		names[customization["metadata"].(map[string]any)["name"].(string)] = target["apiVersion"].(string) + " " + target["kind"].(string)
	}
	if diff := cmp.Diff(map[string]string{"k.v1.g": "g/v1 K", "core.v1": "v1 Core", "local.v1": "v1 Local"}, names); diff != "" {
		t.Errorf("the targets (-want +got):\n%s", diff)
	}
	want := "function Retain(desiredObj, runtimeObj)\n  local observedObj = runtimeObj\nreturn observedObj or desiredObj\nend\n"
	if diff := cmp.Diff(want, script(got[0], "retention")); diff != "" {
		t.Errorf("a body becomes a function (-want +got):\n%s", diff)
	}
	if text := script(got[0], "statusReflection"); !strings.HasPrefix(text, "function ReflectStatus(o)") || !strings.Contains(text, "result = {}") {
		t.Errorf("nil becomes an empty table:\n%s", text)
	}
	if diff := cmp.Diff([]string{
		"Config/c: spec.retentions[1] is left out: Karmada has no rules by fields. Write retentionLua, or have Karmada ask a hub (--webhook-url or --webhook-service)",
		"Config/c: spec.explorations[1].packingLua is left out: Karmada has no such operation",
		"Config/c: spec.explorations[1], ExploreDependencies: line 1: Karmada has no string.gsub",
		"Config/c: spec.explorations[1], ExploreDependencies: seen is a global: another script may find its value, as scripts share machines there",
		"Config/c: spec.explorations[2], ExploreHealthy: line 1: Karmada has no rep",
		"Config/c: spec.explorations[2], ExploreHealthy: InterpretHealth is local: Karmada calls a global function",
		"Config/c: spec.explorations[3].health is left out: Karmada has no rules by fields. Write healthLua, or have Karmada ask a hub (--webhook-url or --webhook-service)",
	}, warnings); diff != "" {
		t.Errorf("the warnings (-want +got):\n%s", diff)
	}
	c.Spec.Explorations = []v1alpha1.Exploration{{APIVersion: "v1", Kind: "K", HealthLua: "return ("}}
	if _, _, err := FromConfigs([]v1alpha1.Config{*c}, nil); err == nil || !strings.Contains(err.Error(), "script spec.explorations[0], ExploreHealthy of Config/c: ") {
		t.Errorf("a script that cannot be parsed: %v", err)
	}
}
