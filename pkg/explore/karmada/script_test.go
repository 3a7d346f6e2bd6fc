package karmada

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
)

// TestConvertScript is C21: what a script becomes, and what Karmada has not.
func TestConvertScript(t *testing.T) {
	const (
		emptyStatus = "\nlocal interpret = ReflectStatus\nfunction ReflectStatus(observedObj)\n  local result = interpret(observedObj)\n" +
			"  if result == nil then\n    result = {}\n  end\n  return result\nend\n"
		health = "function InterpretHealth(o)\n  return o.ok\nend\n"
	)
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		source    string
		script    string
		warnings  []string
	}{
		"Function": {"a function stays as it is", explore.Healthy, health, health, nil},
		"Newline":  {"it ends with one line break", explore.Healthy, health + "\n\n", health, nil},
		"Body": {"a body becomes the function", explore.ReplicaRevising, "desiredObj.spec.n = desiredReplica\nreturn desiredObj",
			"function ReviseReplica(desiredObj, desiredReplica)\ndesiredObj.spec.n = desiredReplica\nreturn desiredObj\nend\n", nil},
		"Alias": {"with the further names of arguments", explore.Retaining, "return observedObj",
			"function Retain(desiredObj, runtimeObj)\n  local observedObj = runtimeObj\nreturn observedObj\nend\n", nil},
		"Nil": {"nil becomes an empty table", explore.Status, "return observedObj.status",
			"function ReflectStatus(observedObj)\nreturn observedObj.status\nend\n" + emptyStatus, nil},
		"Library": {"functions of libraries that Karmada has not", explore.Healthy, "local a = string.gsub('a', 'b', 'c')\nreturn a:gsub('b', 'c') == rawget({}, 1)",
			"function InterpretHealth(observedObj)\nlocal a = string.gsub('a', 'b', 'c')\nreturn a:gsub('b', 'c') == rawget({}, 1)\nend\n",
			[]string{"line 2: Karmada has no rawget", "line 1: Karmada has no string.gsub", "line 2: Karmada has no gsub"}},
		"Own":    {"a local of such a name is the script's own", explore.Healthy, "local string = {rep = 1}\nreturn string.rep == 1", "function InterpretHealth(observedObj)\nlocal string = {rep = 1}\nreturn string.rep == 1\nend\n", nil},
		"Helper": {"a function beside it is no global value", explore.Healthy, "function helper() return true end\n" + health, "function helper() return true end\n" + health, nil},
		"Global": {"but a variable is", explore.Healthy, "count = 1\n" + health, "count = 1\n" + health,
			[]string{"count is a global: another script may find its value, as scripts share machines there"}},
		"Local": {"a local function is not found", explore.Healthy, "local " + health, "local " + health,
			[]string{"InterpretHealth is local: Karmada calls a global function"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := lua.Compile(tc.operation, tc.source); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			script, warnings, err := convertScript(tc.operation, tc.source)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.script, script); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
			// What it has become is a script here, too, with the same meaning.
			if again, _, err := convertScript(tc.operation, script); err != nil || tc.operation != explore.Status && again != script {
				t.Errorf("%s: a second conversion: %v\n%s", tc.reason, err, again)
			}
		})
	}
	if _, _, err := convertScript("ExploreNothing", ""); err == nil {
		t.Error("an unknown operation has a script")
	}
	if _, _, err := convertScript(explore.Healthy, "return ("); err == nil {
		t.Error("what cannot be parsed has become a script")
	}
}
