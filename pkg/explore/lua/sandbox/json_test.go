package sandbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBridge passes objects through scripts.
func TestBridge(t *testing.T) {
	const head = `"apiVersion":"x/v1","kind":"X","metadata":{"name":"x"}`
	for name, tc := range map[string]struct{ reason, script, in, want, err string }{
		"Whole":     {"integers of 64 bits", "obj.spec.a = obj.spec.b", `{"a":1,"b":9007199254740993,"c":-9223372036854775808,"d":9223372036854775807}`, `{"a":9007199254740993,"b":9007199254740993,"c":-9223372036854775808,"d":9223372036854775807}`, ""},
		"Twins":     {"that are next to the same float", "obj.spec.a, obj.spec.b = obj.spec.b, obj.spec.a", `{"a":9007199254740993,"b":9007199254740992}`, `{"a":9007199254740992,"b":9007199254740993}`, ""},
		"Text":      {"and as text", "obj.spec = {a = tostring(obj.spec.a), b = obj.spec.b .. ''}", `{"a":9007199254740993,"b":9223372036854775807}`, `{"a":"9007199254740993","b":"9223372036854775807"}`, ""},
		"TwinText":  {"twins, too", "obj.spec = {a = tostring(obj.spec.a), b = obj.spec.b .. '', c = type(obj.spec.a), d = obj.spec.a == obj.spec.b, e = obj.spec.b < obj.spec.a}", `{"a":9007199254740993,"b":9007199254740992}`, `{"a":"9007199254740993","b":"9007199254740992","c":"number","d":false,"e":true}`, ""},
		"Floats":    {"floats stay", "obj.spec.c = obj.spec.a", `{"a":1.5,"b":1e300}`, `{"a":1.5,"b":1e300,"c":1.5}`, ""},
		"Nulls":     {"null stays", "obj.spec.x = 1", `{"a":null,"b":[null,1,null],"c":{"d":null}}`, `{"a":null,"b":[null,1,null],"c":{"d":null},"x":1}`, ""},
		"NullsSeen": {"also where the script looked", "local n = #obj.spec.b; n = obj.spec.c.d; obj.spec.e = nil", `{"a":null,"b":[null,1,null],"c":{"d":null},"e":1}`, `{"a":null,"b":[null,1,null],"c":{"d":null}}`, ""},
		"Empty":     {"[] is not {}", "local n = #obj.spec.a; n = obj.spec.b.x", `{"a":[],"b":{}}`, `{"a":[],"b":{}}`, ""},
		"Emptied":   {"a list that is emptied is a list", "table.remove(obj.spec.a); obj.spec.b.x = nil", `{"a":[1],"b":{"x":1}}`, `{"a":[],"b":{}}`, ""},
		"Fresh":     {"a fresh empty table is what was there, else nothing", "obj.spec = {a = {}, b = {}, c = {}, d = {{}}}", `{"a":[1],"b":{"x":1}}`, `{"a":[],"b":{},"d":[{}]}`, ""},
		"Keys":      {"keys of any characters", "for k, v in pairs(obj.spec) do obj.spec[k] = v + 1 end", `{"":1,"1":2,"a.b/c":3,"é\n":4}`, `{"":2,"1":3,"a.b/c":4,"é\n":5}`, ""},
		"Order":     {"pairs goes in order", "local t = {} for k in pairs(obj.spec) do table.insert(t, k) end obj.spec = t", `{"z":1,"b":1,"a":1,"m":1}`, `["a","b","m","z"]`, ""},
		"Shared":    {"a table may be twice in a result", "local t = {x = 1} obj.spec = {a = t, b = t, c = obj.spec, d = obj.spec}", `{"q":[]}`, `{"a":{"x":1},"b":{"x":1},"c":{"q":[]},"d":{"q":[]}}`, ""},
		"Circle":    {"but not in itself", "obj.spec.x = obj.spec", `{}`, "", "the script went beyond its limit of depth (100)"},
		"Mixed":     {"a table is a list or a map", "obj.spec = {1, x = 2}", `{}`, "", "the result's field spec has keys of a list and others, such as x"},
		"Hole":      {"lists have no holes", "obj.spec[2] = nil", `[1,2,3]`, "", "the result's field spec is a list without an entry 2: use table.remove"},
		"Function":  {"functions are no JSON", "obj.spec = print", `{}`, "", "the result's field spec is a function, which JSON has not"},
		"NaN":       {"nor is NaN", "obj.spec.x = 0/0", `{}`, "", "the result's field spec.x is NaN, which JSON has not"},
		"Library":   {"nor a library", "obj.spec.x = string", `{}`, "", "the result's field spec.x is a library"},
		"Zero":      {"0 is a number, and false a boolean", "obj.spec.c = obj.spec.a == 0 and obj.spec.b == false", `{"a":0,"b":false}`, `{"a":0,"b":false,"c":true}`, ""},
		"Length":    {"# of a list that was not looked into", "obj.spec = #obj.spec", `[1,2,3]`, `3`, ""},
		"Next":      {"next on one that was not looked into", "local k, v = next(obj.spec) obj.spec = {k, v}", `{"a":1}`, `["a",1]`, ""},
		"Sort":      {"sort does", "table.sort(obj.spec) table.insert(obj.spec, 1, 'first')", `["b","a"]`, `["first","a","b"]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := object(t, `{`+head+`,"spec":`+tc.in+`}`)
			before := compact(t, in)
			made, err := ask(t, pack, "function Pack(obj) "+tc.script+" return obj end", in)
			if tc.err != "" || err != nil {
				if fmt.Sprint(err) != tc.err {
					t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(object(t, `{`+head+`,"spec":`+tc.want+`}`), made); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if compact(t, in) != before {
				t.Errorf("the argument was changed")
			}
		})
	}
}
