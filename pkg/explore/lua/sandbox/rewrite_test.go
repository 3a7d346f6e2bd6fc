package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRewritten has statements that are rewritten to calls: they mean the same as before.
func TestRewritten(t *testing.T) {
	for name, tc := range map[string]struct{ reason, script, value, want string }{
		"Swap":   {"all values are computed first", "local t, i, j = {'a', 'b'}, 1, 2 t[i], t[j] = t[j], t[i]", "t[1] .. t[2]", "ba"},
		"Places": {"all places are computed first", "local t, i = {0, 0}, 1 i, t[i] = 2, 5", "t[1] .. t[2] .. i", "502"},
		"Call": {
			"a call at the end gives several values",
			"local t, k = {}, 'k' local function f() return 1, 2 end t[k], t.x, t.y = f()",
			"t[k] .. t.x .. tostring(t.y)",
			"12nil",
		},
		"CallFirst": {
			"and one in front a single one",
			"local t, k = {}, 'k' local function f() return 1, 2 end t[k], t.x = f(), 3",
			"t[k] .. t.x",
			"13",
		},
		"Fewer": {"fewer values than places", "local t, k = {k = 1, x = 1}, 'k' t[k], t.x = 5", "t[k] .. tostring(t.x)", "5nil"},
		"More": {
			"more values than places",
			"local t, k, n = {}, 'k', 0 local function f() n = n + 1 return n end t[k] = f(), f()",
			"t[k] .. n",
			"12",
		},
		"Vararg": {"... is one value", "local t, k = {}, 'k' local function f(...) t[k] = ... end f('a', 'b')", "t[k]", "a"},
		"Once": {
			"the object is computed once",
			"local n = 0 local t = {} local function get() n = n + 1 return t end local k = 'k' get()[k] = n",
			"t[k] .. n",
			"11",
		},
		"Newindex": {
			"__newindex is asked",
			"local log = '' local t = setmetatable({}, {__newindex = function(t, k, v) log = log .. k .. v end}) local k = 'k' t[k] = 1 t.x = 2",
			"log",
			"k1x2",
		},
		"NilKey": {"nil is no key", "local t, k = {} t[k] = 1", "''", "error: script:2: table index is nil"},
		"NotATable": {
			"a text has no entries",
			"local t, k = 'x', 1 t[k] = 1",
			"''",
			"error: script:2: attempt to index a non-table object(string) with key '1'",
		},
		"NilTable": {
			"nor has nil",
			"local t, k = nil, 1 t[k] = 1",
			"''",
			"error: script:2: attempt to index a non-table object(nil) with key '1'",
		},
		"Constructor": {
			"keys and places in a table",
			"local k = 'k' local t = {[k] = 1, [k .. k] = 2, 3, x = 4, [5] = 6, [100] = 7}",
			"t.k .. t.kk .. t[1] .. t.x .. t[5] .. t[100]",
			"123467",
		},
		"Spread":  {"a call at the end of a table gives all values", "local function f() return 1, 2 end local t = {f(), f()}", "#t", "3"},
		"KeyOnce": {"a key is one value", "local function f() return 'a', 'b' end local t = {[f()] = 1}", "t.a", "1"},
		"Method": {
			"methods, with self",
			"local t = {n = 1} function t:add(x) self.n = self.n + x return self end t:add(2):add(3)",
			"t.n",
			"6",
		},
		"Dotted": {"functions in fields", "local t = {a = {}} function t.a.f(x) return x .. '!' end", "t.a.f('x')", "x!"},
		"Closure": {
			"closures over names of a loop",
			"local fs = {} for i = 1, 3 do fs[i] = function() return i end end",
			"fs[1]() .. fs[2]() .. fs[3]()",
			"123",
		},
		"Repeat": {
			"until sees the locals of the block",
			"local n = 0 repeat local done = n > 2 n = n + 1 until tostring(done) .. '' == 'true'",
			"n",
			"4",
		},
		"Goto":      {"goto and labels", "local n = 0 ::again:: n = n + 1 if n < 3 then goto again end", "n", "3"},
		"Continue":  {"out of a branch", "local n = 0 for i = 1, 5 do if i % 2 == 0 then goto next end n = n + i ::next:: end", "n", "9"},
		"Step":      {"a step that is computed", "local s, x = '', {step = -2} for i = 5, 1, x.step do s = s .. i end", "s", "531"},
		"Names":     {"no script can name the helpers", "local t = _G local n = 0 for k in pairs(t) do if k:sub(1, 1) == '(' then n = n + 1 end end", "n", "0"},
		"OwnConcat": {"a script's own names do not matter", "local concat, table = nil, nil local s = 'a' .. 'b'", "s", "ab"},
		"Long":      {"32 operands go into two calls", "local s = 'a'" + strings.Repeat(" .. 'b'", 70), "#s", "71"},
		"Not":       {"operators of one operand", "local t = {} t[not nil] = #('x' .. 'y') t[-1] = -(2)", "t[true] .. t[-1]", "2-2"},
		"Logic": {
			"operators that skip an operand",
			"local n = 0 local function f() n = n + 1 return true end local x = f() or f() local y = false and f()",
			"n .. tostring(y)",
			"1false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := tc.want, ""
			if message, is := strings.CutPrefix(tc.want, "error: "); is {
				want, wantErr = "", message
			}
			body := "local function body()\n" + tc.script + " return " + tc.value + " end"
			checkScript(t, tc.reason, body+"\nreturn {text = tostring(body())}", want, wantErr)
		})
	}
}

// TestRewrittenBody assigns at the top of a body: what it allocates counts, whether or not the entry has aliases.
func TestRewrittenBody(t *testing.T) {
	const script = "local t, i = {}, 60000 t[i] = 1 t[1], t[i] = 2, 3 t = {} t[i] = 1 t = {} t[i] = 1 return runtimeObj or observedObj"
	small := limits()
	small.Memory = 4 << 20
	for name, entry := range map[string]Entry{"with aliases": retain, "without": status} {
		_, err := run(t, NewPool(small, own()), entry, script, object(t, deployment))
		if got := fmt.Sprint(err); got != "the script went beyond its limit of memory (4194304 bytes)" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestAliases calls a parameter by either name.
func TestAliases(t *testing.T) {
	for name, tc := range map[string]struct{ reason, script, want string }{
		"Parameter": {"the parameter", "return {tostring(runtimeObj)}", `["nil"]`},
		"Alias":     {"its alias", "desiredObj = {x = 1} return {desiredObj.x, tostring(observedObj)}", `[1,"nil"]`},
		"Assigned":  {"which is a local of its own", "observedObj = 2 return {tostring(runtimeObj), observedObj}", `["nil",2]`},
		"Chunk":     {"a chunk names its parameters itself", "function Retain(a, b) return {type(observedObj), a.kind} end", `["nil","Deployment"]`},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := ask(t, retain, tc.script, object(t, deployment))
			if err != nil || compact(t, made) != tc.want {
				t.Errorf("%s: got %v, error %v, want %s", tc.reason, made, err, tc.want)
			}
		})
	}
}

// undefined are the warnings about names in the first line.
func undefined(names ...string) []string {
	warnings := make([]string, len(names))
	for i, name := range names {
		warnings[i] = "line 1: " + name + " is not defined"
	}
	return warnings
}

// TestUndefinedGlobals has warnings about names, in each place where a script may write one.
func TestUndefinedGlobals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		want           []string
	}{
		"Function": {
			"a local function may call itself",
			"local function f(n) if n == 0 then return true end return f(n - 1) end return f(3)",
			nil,
		},
		"Variable":   {"a local cannot be read in its own value", "local x = x return x", undefined("x")},
		"Assigned":   {"what is assigned anywhere is defined", "local function f() return count end count = 1 return f()", nil},
		"Definition": {"so is a global function", "function check(o) return o end return check(observedObj)", nil},
		"Field":      {"an assignment to a field defines no name", "tbl.x = 1 return tbl", undefined("tbl")},
		"Receiver":   {"nor does a method", "function tbl:m() return self end return true", undefined("tbl")},
		"Dotted":     {"nor a function in a field", "function tbl.f() return 1 end return true", undefined("tbl")},
		"Self":       {"self belongs to methods", "local t = {} function t.f() return self end return true", undefined("self")},
		"Vararg": {
			"arg belongs to functions with ...",
			"local function f(...) return arg end local function g() return arg end return f() or g()",
			undefined("arg"),
		},
		"For": {
			"the names of a loop end with it",
			"for i = 1, 2 do local x = i end for k, v in pairs(observedObj) do local y = k end return i or k",
			undefined("i", "k"),
		},
		"Bounds": {"the bounds of a loop", "for i = from, to, by do local x = i end return true", undefined("from", "to", "by")},
		"Repeat": {"locals of a repeat are known in until", "repeat local done = true until done return done", undefined("done")},
		"Branches": {
			"conditions and branches",
			"if a then return b elseif c then return d else return e end",
			undefined("a", "b", "c", "d", "e"),
		},
		"Table":     {"keys and values", "return {[a] = b, c = d, e}", undefined("a", "b", "d", "e")},
		"Operators": {"operands", "return -a + b .. c == not d and #e", undefined("a", "b", "c", "d", "e")},
		"Calls":     {"functions, receivers and arguments", "return f(a):m(b)", undefined("f", "a", "b")},
		"Keys":      {"the value of a key in brackets", "local t = {} t[a] = b return t[c]", undefined("b", "a", "c")},
		"Statement": {"a call as a statement", "f() return true", undefined("f")},
		"Lines": {
			"each once, with the first line",
			"local x = a\nlocal y = a\nreturn b",
			[]string{"line 1: a is not defined", "line 3: b is not defined"},
		},
		"Libraries": {"what Lua has and kudo has not", "return io.open or load or coroutine", undefined("io", "load", "coroutine")},
		"Known":     {"libraries and the globals", "return _G and _VERSION and string and own and require and next", nil},
		"Parameter": {"the parameter of another operation", "return desiredObj.spec", undefined("desiredObj")},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(tc.script, health, own())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Warnings()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		want           []string
	}{
		"Clean":  {"libraries, locals, parameters and own globals are known", "count = 0 local t = {} for k, v in pairs(observedObj) do t[k] = v count = count + 1 end repeat local x = 1 until x == 1 return string.len(_VERSION) == count", nil},
		"Typo":   {"what is defined nowhere is not", "if obj.x then return tru end\nreturn obsrvedObj.x", []string{"line 1: obj is not defined", "line 1: tru is not defined", "line 2: obsrvedObj is not defined"}},
		"Scopes": {"locals end with their block", "do local a = 1 end return a", []string{"line 1: a is not defined"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(tc.script, health)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Warnings()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
