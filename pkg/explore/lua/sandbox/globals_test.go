package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAssignedGlobals (C58): a script that assigns nil to a name of a library finds nil there, however it assigns, and the library
// is back in the next call.
func TestAssignedGlobals(t *testing.T) {
	for name, tc := range map[string]struct{ reason, script, want string }{
		"Field":    {"a global that is set to nil is no field of the result", "error = ''; error = nil; return {error = error, a = 1}", `{"a":1}`},
		"Table":    {"through _G", "_G.error = nil; return {error = error, a = 1}", `{"a":1}`},
		"Rawset":   {"through rawset", "rawset(_G, 'error', nil); return {error = error, a = 1}", `{"a":1}`},
		"Alias":    {"through another name of _G", "local g = _G; g['err' .. 'or'] = nil; return {error = error, a = 1}", `{"a":1}`},
		"Function": {"by a function of that name", "function error() return 'mine' end; return {error = error()}", `{"error":"mine"}`},
		"Inner":    {"in a function", "local f = function() error = nil end; f(); return {error = error, a = 1}", `{"a":1}`},
		"Kept":     {"other names stay", "error = nil; return {text = string.upper('a'), t = type(tostring)}", `{"t":"function","text":"A"}`},
		"Own":      {"names of no library", "x = 1; x = nil; return {x = x, a = 1}", `{"a":1}`},
		"Itself":   {"_G holds itself", "return {same = _G._G == _G}", `{"same":true}`},
		"Unset":    {"pairs goes through the names in the same order each time", "local first = next(_G); return {first = first}", `{"first":"_VERSION"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPool(limits(), own())
			argument := map[string]any{"apiVersion": "v1", "kind": "X"}
			for range 2 {
				made, err := run(t, p, status, tc.script, argument)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if got := compact(t, made); got != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
				}
			}
			made, err := run(t, p, status, "return {error = type(error)}", argument)
			if err != nil || compact(t, made) != `{"error":"function"}` {
				t.Errorf("%s: the next script does not find the library: %v %v", tc.reason, made, err)
			}
		})
	}
}

// TestIsolation runs one script after another on the same machines.
func TestIsolation(t *testing.T) {
	p := NewPool(limits(), own())
	argument := map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x"}}
	call := func(script string) (any, error) { return run(t, p, status, script, argument) }
	for name, poison := range map[string]string{
		"library":   "string.rep = nil return {}",
		"rawset":    "rawset(string, 'rep', nil) return {}",
		"insert":    "table.insert(string, 1) return {}",
		"metatable": "setmetatable(string, {}) return {}",
		"strings":   "getmetatable('').__index = nil return {}",
		"method":    "local s = 'x' s.rep = nil return {}",
		"own":       "own.count = nil return {}",
		"module":    "require('string').rep = nil return {}",
	} {
		if _, err := call(poison); err == nil {
			t.Errorf("%s: %s went through", name, poison)
		}
	}
	for name, leak := range map[string]string{
		"global":   "leaked = 1 print = nil _G.tostring = nil string = {} setmetatable(_G, {__index = {leaked = 2}}) return {}",
		"metaless": "local mt = {} setmetatable(mt, mt) leaked = mt return {}",
	} {
		if _, err := call(leak); err != nil {
			t.Errorf("%s: globals may be assigned: %v", name, err)
		}
	}
	made, err := call("return {list = {tostring(leaked), type(print), type(_G), ('x'):rep(3), tostring(rawget(_G, 'leaked')), math.random(1000000), tostring({})}}")
	if err != nil {
		t.Fatal(err)
	}
	again, err := call("return {list = {tostring(leaked), type(print), type(_G), ('x'):rep(3), tostring(rawget(_G, 'leaked')), math.random(1000000), tostring({})}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, again); diff != "" {
		t.Errorf("the same script twice:\n%s", diff)
	}
	if diff := cmp.Diff([]any{"nil", "function", "table", "xxx", "nil"}, listOf(made)[:5]); diff != "" {
		t.Errorf("after poison and leaks (-want +got):\n%s", diff)
	}
	for _, name := range []string{"io", "debug", "package", "load", "loadstring", "dofile", "coroutine", "getfenv", "setfenv", "newproxy", "module"} {
		if made, err := call("return {x = type(" + name + ")}"); err != nil || !cmp.Equal(made, any(map[string]any{"x": "nil"})) {
			t.Errorf("%s is there: %v %v", name, made, err)
		}
	}
}
