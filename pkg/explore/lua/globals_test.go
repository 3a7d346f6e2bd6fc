package lua

import (
	"encoding/json"
	"testing"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
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
			h := host()
			r := explore.Request{Operation: explore.Status, Object: exploretest.Object(t, `{"apiVersion":"v1","kind":"X"}`)}
			for range 2 {
				s, err := Compile(explore.Status, tc.script)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := h.Run(t.Context(), s, r)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if got := compact(t, answer.Status); got != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
				}
			}
			s, err := Compile(explore.Status, "return {error = type(error)}")
			if err != nil {
				t.Fatal(err)
			}
			if answer, err := h.Run(t.Context(), s, r); err != nil || compact(t, answer.Status) != `{"error":"function"}` {
				t.Errorf("%s: the next script does not find the library: %v %v", tc.reason, answer.Status, err)
			}
		})
	}
}

func compact(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
