package lua

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestFunctions has the function of each operation: scripts are written for these names.
func TestFunctions(t *testing.T) {
	want := map[explore.Operation]Function{
		explore.Packing:           {"Pack", []string{"desiredObj"}},
		explore.Retaining:         {"Retain", []string{"desiredObj", "runtimeObj"}},
		explore.Healthy:           {"InterpretHealth", []string{"observedObj"}},
		explore.Dependencies:      {"GetDependencies", []string{"desiredObj"}},
		explore.Replica:           {"GetReplicas", []string{"desiredObj"}},
		explore.Components:        {"GetComponents", []string{"desiredObj"}},
		explore.ReplicaRevising:   {"ReviseReplica", []string{"desiredObj", "desiredReplica"}},
		explore.Status:            {"ReflectStatus", []string{"observedObj"}},
		explore.StatusAggregating: {"AggregateStatus", []string{"desiredObj", "statusItems"}},
	}
	got := map[explore.Operation]Function{}
	for _, operation := range explore.Operations() {
		got[operation] = FunctionOf(operation)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := FunctionOf("ExploreNothing"); got.Name != "" {
		t.Errorf("an operation that does not exist has function %s", got.Name)
	}
}

func TestCompileErrors(t *testing.T) {
	health := "the script must define function InterpretHealth(observedObj), or be its body and return a value"
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		source    string
		err       string
	}{
		"Operation": {
			"an operation has a function",
			"Other",
			"return 1",
			fmt.Sprintf(`operation "Other" has no script: use one of %v`, explore.Operations()),
		},
		"Empty":   {"an empty script", explore.Healthy, "", health},
		"Comment": {"nothing but a comment", explore.Healthy, "-- return true", health},
		"Nested":  {"a return in another function does not count", explore.Healthy, "local f = function() return true end", health},
		"Field":   {"a function in a table is none", explore.Healthy, "t = {} function t.InterpretHealth(o) return true end", health},
		"Method":  {"nor is a method", explore.Healthy, "t = {} function t:InterpretHealth(o) return true end", health},
		"Inner":   {"nor is one in a block", explore.Healthy, "do local InterpretHealth = 1 end", health},
		"Misnamed": {
			"a function of another name is named",
			explore.Retaining,
			"function retain(d, o) end",
			"the script must define function Retain(desiredObj, runtimeObj), or be its body and return a value; it defines retain",
		},
		"AtEnd": {"what ends too early", explore.Healthy, "if true then", "at the end: syntax error near \"then\""},
		"Text":  {"a text that does not end", explore.Healthy, "return 'x", "at the end: unterminated string near \"x\""},
		"Token": {"the token is quoted", explore.Healthy, "\nreturn = 1", `line 2: syntax error near "="`},
		"Break": {"break outside of a loop", explore.Healthy, "if true then break end return true", "line 1: no loop to break"},
		"Vararg": {
			"... in a function without it",
			explore.Healthy,
			"local f = function() return ... end return f()",
			"line 1: cannot use '...' outside a vararg function",
		},
		"TooManyNames": {
			"200 locals at most",
			explore.Healthy,
			strings.Repeat("local a ", 201) + "return true",
			"line 1: too many local variables",
		},
		"Nesting": {
			"expressions within one another",
			explore.Healthy,
			"return\n" + strings.Repeat("- ", 501) + "1",
			"line 2: nested deeper than 500 levels",
		},
		"Blocks": {
			"blocks within one another",
			explore.Healthy,
			strings.Repeat("do ", 501) + strings.Repeat("end ", 501) + "return 1",
			"line 1: nested deeper than 500 levels",
		},
		"Size": {
			"256 KiB at most",
			explore.Healthy,
			"return true --" + strings.Repeat("x", 256<<10),
			fmt.Sprintf("the script has %d bytes: at most 262144 are allowed", 256<<10+14),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(tc.operation, tc.source)
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCompileForms has the forms in which a script defines its function, or is the body of it.
func TestCompileForms(t *testing.T) {
	for name, tc := range map[string]struct{ reason, source string }{
		"Function": {"a global function", "function InterpretHealth(o) return o.kind == 'Deployment' end"},
		"Local":    {"a local function", "local function InterpretHealth(o) return o.kind == 'Deployment' end"},
		"Assigned": {"a function that is assigned", "InterpretHealth = function(o) return o.kind == 'Deployment' end"},
		"Several":  {"one of several that are assigned", "local x, InterpretHealth = 1, function(o) return o.kind == 'Deployment' end"},
		"Replaced": {"the last definition counts", "function InterpretHealth() return false end function InterpretHealth(o) return true end"},
		"Helper":   {"helpers below it", "function InterpretHealth(o) return check(o) end function check(o) return o.kind == 'Deployment' end"},
		"Body":     {"a body", "return observedObj.kind == 'Deployment'"},
		"If":       {"a body that returns in a branch", "if observedObj.kind == 'Deployment' then return true end"},
		"Else":     {"in the other branch", "if observedObj.kind == 'X' then local x = 1 else return true end"},
		"Elseif": {
			"in a branch between",
			"if observedObj.kind == 'X' then local x = 1 elseif observedObj.kind == 'Deployment' then return true end",
		},
		"Do":      {"in a block", "do return true end"},
		"While":   {"in a while", "while true do return true end"},
		"Repeat":  {"in a repeat", "repeat return true until true"},
		"For":     {"in a for with numbers", "for i = 1, 2 do return true end"},
		"ForIn":   {"in a for with pairs", "for k, v in pairs(observedObj) do return true end"},
		"Both":    {"a body may define helpers", "function check(o) return true end return check(observedObj)"},
		"Largest": {"256 KiB", "return true --" + strings.Repeat("x", 256<<10-14)},
		"Deep":    {"blocks to the bound", strings.Repeat("do ", 480) + "local a = 1 " + strings.Repeat("end ", 480) + "return true"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := ask(t, explore.Healthy, tc.source, explore.Request{Object: exploretest.Object(t, deployment)})
			if err != nil || !answer.Healthy {
				t.Errorf("%s: answers %v, error %v", tc.reason, answer.Healthy, err)
			}
		})
	}
}

// TestScriptValue has what a script says about itself.
func TestScriptValue(t *testing.T) {
	s, err := Compile(explore.Replica, "return x + y + x")
	if err != nil {
		t.Fatal(err)
	}
	if s.Operation() != explore.Replica {
		t.Errorf("the script answers %s", s.Operation())
	}
	want := []string{"line 1: x is not defined", "line 1: y is not defined"}
	s.Warnings()[0] = "changed"
	if diff := cmp.Diff(want, s.Warnings()); diff != "" {
		t.Errorf("warnings after a caller has changed them (-want +got):\n%s", diff)
	}
}
