package sandbox

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkPack runs the body of Pack on an object with a spec, and compares the spec of the result.
func checkPack(t *testing.T, reason, script, spec, want, wantErr string) {
	t.Helper()
	const head = `{"apiVersion":"x/v1","kind":"X","metadata":{"name":"x"},"spec":`
	made, err := ask(t, pack, "function Pack(obj) "+script+" return obj end", object(t, head+spec+"}"))
	if wantErr != "" || err != nil {
		if got := fmt.Sprint(err); got != wantErr {
			t.Errorf("%s: error %q, want %q", reason, got, wantErr)
		}
		return
	}
	if diff := cmp.Diff(object(t, head+want+"}"), made); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// TestWideIntegers has integers that no number of Lua can hold, and that another of the object would be taken for.
func TestWideIntegers(t *testing.T) {
	const twins = `{"a":9007199254740993,"b":9007199254740992}`
	for name, tc := range map[string]struct{ reason, script, spec, want, err string }{
		"Arithmetic": {
			"operators calculate with the nearest number",
			"local a = obj.spec.a obj.spec = {a + 0 == 2^53, a - 2^53, 2 * a == 2^54, a / a, a % 2, a ^ 1 == 2^53, -a == -2^53}",
			twins, `[true,0,true,1,0,true,true]`, "",
		},
		"Calculated": {
			"a number that was calculated is no integer of the object that is next to it, whichever order these are in",
			"local a = obj.spec.a obj.spec = {x = a + 0, y = tostring(a + 0), z = string.format('%d', a + 0)}",
			`{"a":9007199254740993,"b":9007199254740992,"c":9007199254740993}`,
			`{"x":9007199254740992,"y":"9007199254740992","z":"9007199254740992"}`, "",
		},
		"CalculatedInPlace": {
			"a number that was calculated replaces an integer that is next to it",
			"obj.spec.a = obj.spec.b + 0",
			`{"a":9007199254740993,"b":9007199254740992}`, `{"a":9007199254740992,"b":9007199254740992}`, "",
		},
		"CalculatedLargest": {
			"beyond the largest integer it is a float", "obj.spec = {x = obj.spec.a + 1}",
			`{"a":9223372036854775807,"b":9223372036854775806}`, `{"x":9223372036854775808.0}`, "",
		},
		"NotANumber": {
			"a text that is no number is no operand", "obj.spec = obj.spec.a + 'x'", twins, "",
			"script:1: bad argument #2 to (anonymous) (number expected, got string)",
		},
		"Order": {
			"they are in order among themselves",
			"local a, b = obj.spec.a, obj.spec.b obj.spec = {a > b, a >= b, a < b, a <= b, a == b, a == a, a ~= b, a <= a, a < a}",
			twins, `[true,true,false,false,false,true,true,true,false]`, "",
		},
		"NumberOrder": {
			"but not with numbers: the order would be wrong", "obj.spec = obj.spec.a < 5", twins, "",
			"script:1: attempt to compare userdata with number",
		},
		"Format": {
			"formats write all digits of whole numbers",
			"obj.spec = {string.format('%d %s %.0f %x', obj.spec.a, obj.spec.a, obj.spec.a, obj.spec.a)}",
			twins, `["9007199254740993 9007199254740993 9007199254740992 20000000000001"]`, "",
		},
		"Text": {
			"functions of texts take them as text",
			"obj.spec = {string.len(obj.spec.a), (string.gsub('x', 'x', {x = obj.spec.a})), " +
				"table.concat({obj.spec.a, obj.spec.b}, ' '), 'v' .. obj.spec.a}",
			twins, `[16,"9007199254740993","9007199254740993 9007199254740992","v9007199254740993"]`, "",
		},
		"ToNumber":  {"tonumber keeps all digits", "obj.spec = {tonumber(obj.spec.a)}", twins, `[9007199254740993]`, ""},
		"Metatable": {"their metatable is hidden", "obj.spec = {getmetatable(obj.spec.a)}", twins, `[false]`, ""},
		"Keys": {
			"as the value of a key that is looked up",
			"local names = {} names[obj.spec.a] = 'a' obj.spec = {names[obj.spec.a] or 'none', names[obj.spec.b] or 'none'}",
			twins, `["a","none"]`, "",
		},
		"Negative": {
			"below zero", "obj.spec = {obj.spec.b, obj.spec.a, tostring(obj.spec.a)}",
			`{"a":-9007199254740993,"b":-9007199254740992}`, `[-9007199254740992,-9007199254740993,"-9007199254740993"]`, "",
		},
		"Exact": {
			"2^53-1 is the largest that is a number",
			"obj.spec.c = obj.spec.a + 0 == obj.spec.a obj.spec.b = nil", `{"a":9007199254740991,"b":9007199254740990}`,
			`{"a":9007199254740991,"c":true}`, "",
		},
		"Single": {
			"one that has no twin can be compared with numbers, and keeps its digits", "obj.spec = {obj.spec.a > 5, obj.spec.a}",
			`{"a":9007199254740993}`, `[true,9007199254740993]`, "",
		},
		"Equal": {
			"the same integer twice is no twin", "obj.spec = {obj.spec.a > 5, obj.spec.b}",
			`{"a":9007199254740993,"b":9007199254740993}`, `[true,9007199254740993]`, "",
		},
		"Largest": {
			"neighbors of the largest integer", "obj.spec = {obj.spec.b, obj.spec.a}",
			`{"a":9223372036854775807,"b":9223372036854775806}`, `[9223372036854775806,9223372036854775807]`, "",
		},
	} {
		t.Run(name, func(t *testing.T) { checkPack(t, tc.reason, tc.script, tc.spec, tc.want, tc.err) })
	}
}

// TestResults has what the tables of a result become.
func TestResults(t *testing.T) {
	for name, tc := range map[string]struct{ reason, script, spec, want, err string }{
		"Unread":       {"what no script has read is as it was", "", `{"a":[{"b":null}],"c":{},"d":[]}`, `{"a":[{"b":null}],"c":{},"d":[]}`, ""},
		"Moved":        {"also in another place", "obj.spec = {x = obj.spec.a}", `{"a":[{"b":null}]}`, `{"x":[{"b":null}]}`, ""},
		"NullLast":     {"nulls at the end of a list that was read", "local n = #obj.spec", `[1,null,null]`, `[1,null,null]`, ""},
		"NullsOnly":    {"a list of nulls only", "local n = #obj.spec", `[null,null]`, `[null,null]`, ""},
		"NullFields":   {"a map of nulls only", "local n = obj.spec.a", `{"a":null}`, `{"a":null}`, ""},
		"NullReplaced": {"a null that is set", "obj.spec.a = 1", `{"a":null}`, `{"a":1}`, ""},
		"EmptyInList":  {"an empty table in a list is a map", "obj.spec = {{}, {}}", `{}`, `[{},{}]`, ""},
		"EmptyLike":    {"or what the list of the argument holds", "obj.spec.l = {{}, {x = {}}}", `{"l":[{"x":[1]}]}`, `{"l":[{},{"x":[]}]}`, ""},
		"Float":        {"a float that is whole stays a float", "obj.spec.b = obj.spec.b", `{"a":1.5,"b":2.0}`, `{"a":1.5,"b":2.0}`, ""},
		"Whole": {
			"a result that is whole is an integer",
			"obj.spec = {4 / 2, 5 / 2, 1e15, 1e19}",
			`{}`,
			`[2,2.5,1000000000000000,1e19]`,
			"",
		},
		"Zero":       {"so is -0", "obj.spec = {-0}", `{}`, `[0]`, ""},
		"Text":       {"a text of digits stays a text", "obj.spec = {'1', tostring(1)}", `{}`, `["1","1"]`, ""},
		"Meta":       {"metamethods add nothing", "obj.spec = setmetatable({a = 1}, {__index = {b = 2}})", `{}`, `{"a":1}`, ""},
		"Emptied":    {"a map from which all is removed", "obj.spec.a = nil", `{"a":1}`, `{}`, ""},
		"HoleFilled": {"table.remove closes the hole", "table.remove(obj.spec, 1)", `[1,2,3]`, `[2,3]`, ""},
		"Infinite":   {"no infinity", "obj.spec.x = 1 / 0", `{}`, "", "the result's field spec.x is +Inf, which JSON has not"},
		"Minus":      {"of either sign", "obj.spec.x = {-1 / 0}", `{}`, "", "the result's field spec.x.[*] is -Inf, which JSON has not"},
		"ZeroIndex": {
			"lists begin at 1",
			"obj.spec = {[0] = 'a', 'b'}",
			`{}`,
			"",
			"the result's field spec has keys of a list and others, such as 0",
		},
		"HalfIndex": {
			"and have whole places",
			"obj.spec = {'a', [1.5] = 'b'}",
			`{}`,
			"",
			"the result's field spec has keys of a list and others, such as 1.5",
		},
		"FarIndex": {
			"without a gap",
			"obj.spec = {'a', [70000] = 'b'}",
			`{}`,
			"",
			"the result's field spec has keys of a list and others, such as 70000",
		},
		"TextFirst": {
			"a map with a place",
			"obj.spec.a = 1 obj.spec[1] = 2",
			`{}`,
			"",
			"the result's field spec has keys of a list and others, such as a",
		},
		"TableKey": {
			"tables are no keys",
			"obj.spec.a = 1 obj.spec[{}] = 2",
			`{}`,
			"",
			"the result's field spec has a key that is a table: want texts only, or the places of a list",
		},
		"KeysOfTwoTypes": {
			"a map with a place that is no place of a list",
			"local m = {} m.a = 1 m[1.5] = 2 obj.spec = {m = m}",
			`{}`,
			"",
			"the result's field spec.m has keys of several types: string and number",
		},
		"BooleanKey": {
			"nor are booleans",
			"obj.spec = {[true] = 1}",
			`{}`,
			"",
			"the result's field spec has a key that is a boolean: want texts only, or the places of a list",
		},
		"Deep": {
			"the field is named at any depth",
			"obj.spec.a = {b = {{c = print}}}",
			`{}`,
			"",
			"the result's field spec.a.b.[*].c is a function, which JSON has not",
		},
	} {
		t.Run(name, func(t *testing.T) { checkPack(t, tc.reason, tc.script, tc.spec, tc.want, tc.err) })
	}
}

// TestResultDepth nests tables to the bound, and beyond.
func TestResultDepth(t *testing.T) {
	nest := func(levels int) string {
		return fmt.Sprintf("local t = {x = 1} for i = 1, %d do t = {n = t} end return t", levels)
	}
	argument := object(t, deployment)
	if _, err := ask(t, status, nest(100), argument); err != nil {
		t.Errorf("100 tables within the result: %v", err)
	}
	_, err := ask(t, status, nest(101), argument)
	if got := fmt.Sprint(err); got != "the script went beyond its limit of depth (100)" {
		t.Errorf("101 tables within the result: %s", got)
	}
	var deep any = "x"
	for range 300 {
		deep = map[string]any{"n": deep}
	}
	argument["spec"] = deep
	_, err = ask(t, pack, "return desiredObj", argument)
	if got := fmt.Sprint(err); got != "the script went beyond its limit of depth (100)" {
		t.Errorf("an argument that is deeper than any result: %s", got)
	}
}

// TestArguments passes Go values that an object may hold.
func TestArguments(t *testing.T) {
	argument := map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x"},
		"a": int32(5), "b": 7, "c": 2.5, "d": false, "e": nil, "f": map[string]any(nil), "g": []any(nil),
	}
	script := "local o = observedObj return {list = {o.a + o.b + o.c, o.d, o.e == nil, #o.g, next(o.f) == nil}}"
	made, err := ask(t, status, script, argument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{14.5, false, true, int64(0), true}, listOf(made)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	argument["h"] = []string{"x"}
	_, err = ask(t, status, "return {x = observedObj.h}", argument)
	if got := fmt.Sprint(err); got != "script:1: a value of type []string cannot be given to a script" {
		t.Errorf("a type that JSON has not: %s", got)
	}
	argument["h"] = make([]any, 65536)
	_, err = ask(t, status, "return {n = #observedObj.h}", argument)
	if got := fmt.Sprint(err); got != "the script went beyond its limit of list (65535 entries)" {
		t.Errorf("a list that is too long: %s", got)
	}
	argument["h"] = []any{math.MaxInt64, strings.Repeat("x", 10)}
	if made, err = ask(t, status, "return {list = observedObj.h}", argument); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{math.MaxInt64, strings.Repeat("x", 10)}, listOf(made)); diff != "" {
		t.Errorf("a list that the script does not read (-want +got):\n%s", diff)
	}
}
