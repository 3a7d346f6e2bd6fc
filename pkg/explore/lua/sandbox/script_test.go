package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompileErrors(t *testing.T) {
	noHealth := "the script must define function InterpretHealth(observedObj), or be its body and return a value"
	for name, tc := range map[string]struct {
		reason string
		entry  Entry
		source string
		err    string
	}{
		"Empty":   {"an empty script", health, "", noHealth},
		"Comment": {"nothing but a comment", health, "-- return true", noHealth},
		"Nested":  {"a return in another function does not count", health, "local f = function() return true end", noHealth},
		"Field":   {"a function in a table is none", health, "t = {} function t.InterpretHealth(o) return true end", noHealth},
		"Method":  {"nor is a method", health, "t = {} function t:InterpretHealth(o) return true end", noHealth},
		"Inner":   {"nor is one in a block", health, "do local InterpretHealth = 1 end", noHealth},
		"Misnamed": {
			"a function of another name is named",
			retain,
			"function retain(d, o) end",
			"the script must define function Retain(desiredObj, runtimeObj), or be its body and return a value; it defines retain",
		},
		"AtEnd": {"what ends too early", health, "if true then", "at the end: syntax error near \"then\""},
		"Text":  {"a text that does not end", health, "return 'x", "at the end: unterminated string near \"x\""},
		"Token": {"the token is quoted", health, "\nreturn = 1", `line 2: syntax error near "="`},
		"Break": {"break outside of a loop", health, "if true then break end return true", "line 1: no loop to break"},
		"Vararg": {
			"... in a function without it",
			health,
			"local f = function() return ... end return f()",
			"line 1: cannot use '...' outside a vararg function",
		},
		"TooManyNames": {
			"200 locals at most",
			health,
			strings.Repeat("local a ", 201) + "return true",
			"line 1: too many local variables",
		},
		"Nesting": {
			"expressions within one another",
			health,
			"return\n" + strings.Repeat("- ", 501) + "1",
			"line 2: nested deeper than 500 levels",
		},
		"Blocks": {
			"blocks within one another",
			health,
			strings.Repeat("do ", 501) + strings.Repeat("end ", 501) + "return 1",
			"line 1: nested deeper than 500 levels",
		},
		"Size": {
			"256 KiB at most",
			health,
			"return true --" + strings.Repeat("x", 256<<10),
			fmt.Sprintf("the script has %d bytes: at most 262144 are allowed", 256<<10+14),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(tc.source, tc.entry)
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
			made, err := ask(t, health, tc.source, object(t, deployment))
			if err != nil || made != true {
				t.Errorf("%s: returns %v, error %v", tc.reason, made, err)
			}
		})
	}
}
