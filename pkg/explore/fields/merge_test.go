package fields

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseMalformed has paths that are refused.
func TestParseMalformed(t *testing.T) {
	const identity = " is part of an object's identity: name fields below spec, or labels and annotations"
	for name, tc := range map[string]struct{ reason, path, err string }{
		"APIVersion": {"the version", "{.apiVersion}", `field "{.apiVersion}"` + identity},
		"Kind":       {"the kind, in brackets", "{['kind']}", `field "{['kind']}"` + identity},
		"Namespace":  {"the namespace, in both forms", "{$['metadata'].namespace}", `field "{$['metadata'].namespace}"` + identity},
		"UID":        {"the UID", "metadata.uid", `field "metadata.uid"` + identity},
		"Root":       {"the object itself", "{$}", `field "{$}" names no field: write one such as {.spec.replicas}`},
		"Space":      {"nothing but space", "{  }", `field "{  }" names no field: write one such as {.spec.replicas}`},
		"IndexFirst": {"an index of the object", "{[0]}", `field "{[0]}": an object is no list`},
		"Negative": {
			"an index from the end",
			"{.a[-1]}",
			`field "{.a[-1]}": [-1] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"Zeros": {
			"an index with a zero in front",
			"{.a[01]}",
			`field "{.a[01]}": [01] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"Plus": {
			"or with a sign",
			"{.a[+1]}",
			`field "{.a[+1]}": [+1] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"Huge": {
			"an index beyond 64 bits",
			"{.a[99999999999999999999]}",
			`field "{.a[99999999999999999999]}": [99999999999999999999] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"NoQuotes": {
			"a key without quotes",
			"{.a[b]}",
			`field "{.a[b]}": [b] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"EmptyBracket": {
			"nothing in brackets",
			"{.a[]}",
			`field "{.a[]}": [] is no key in quotes, index or *: filters, slices and unions are not allowed`,
		},
		"EmptyKey":     {"an empty key", "{.a['']}", `field "{.a['']}": [''] is no key in quotes and a closing bracket`},
		"OpenQuote":    {"a quote that does not close", "{.a['b]}", `field "{.a['b]}": ['b] is no key in quotes and a closing bracket`},
		"OtherQuote":   {"a quote of another sort", `{.a['b"]}`, `field "{.a['b\"]}": ['b"] is no key in quotes and a closing bracket`},
		"AfterBracket": {"a key right behind a bracket", "{.a[0]b}", `field "{.a[0]b}": unexpected "b"`},
		"TwoDots":      {"two dots at the end", "{.a..}", `field "{.a..}": ".." would match at any depth: write the whole path`},
		"Braces": {
			"a brace in the path",
			"{.a}{.b}",
			`field "{.a}{.b}": unexpected "}": put keys of such characters in brackets, as ['key']`,
		},
		"Comma":   {"two paths", ".a,.b", `field ".a,.b": unexpected ",": put keys of such characters in brackets, as ['key']`},
		"Blank":   {"a space in a key", ".a b", `field ".a b": unexpected " ": put keys of such characters in brackets, as ['key']`},
		"Current": {"@ of expressions", "{@.a}", `field "{@.a}": unexpected "@": put keys of such characters in brackets, as ['key']`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.path)
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestParseSteps compares the steps of paths that mean the same.
func TestParseSteps(t *testing.T) {
	want, err := Parse("{.a['b.c'][0][*].d}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`a.b\.c[0][*].d`, ` {.a["b.c"][0][*].d} `, "{ $.a['b.c'].[0].[*].d}", "$['a']['b.c'][0][*]['d']", `['a'].b\.c[0][*].d`,
	} {
		got, err := Parse(text)
		if err != nil || fmt.Sprint(got.steps) != fmt.Sprint(want.steps) {
			t.Errorf("%s has steps %v (%v), want %v", text, got.steps, err, want.steps)
		}
		if got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for path, key := range map[string]string{
		"metadata.name2": "name2", "metadata.labels": "labels", `spec.a\\b`: `a\b`, "spec.metadata.name": "metadata",
	} {
		p, err := Parse(path)
		if err != nil || p.steps[1].key != key {
			t.Errorf("%s: %v, %v", path, p.steps, err)
		}
	}
}

// TestRetainMerges has values of other types, lists whose entries pair by several keys, and entries that do not pair.
func TestRetainMerges(t *testing.T) {
	for name, tc := range map[string]struct{ reason, path, desired, observed, want string }{
		"NoMap":        {"a live text has no fields", "{.a.b}", `{"a":{"b":1}}`, `{"a":"x"}`, `{"a":{"b":1}}`},
		"NullMap":      {"a desired null gets them", "{.a.b}", `{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"AbsentBelow":  {"what is not live below makes no map", "{.a.b.c}", `{}`, `{"a":{"b":{}}}`, `{}`},
		"ListOfText":   {"a live text is no list", "{.a[*].b}", `{"a":[{"name":"x"}]}`, `{"a":"x"}`, `{"a":[{"name":"x"}]}`},
		"TextForList":  {"a desired text is none", "{.a[0].b}", `{"a":"x"}`, `{"a":[{"b":1}]}`, `{"a":"x"}`},
		"IndexLive":    {"an index that is not live", "{.a[1]}", `{"a":[1,2]}`, `{"a":[3]}`, `{"a":[1,2]}`},
		"IndexFirst":   {"the first entry", "{.a[0]}", `{"a":[1,2]}`, `{"a":[3,4]}`, `{"a":[3,2]}`},
		"IndexNested":  {"a list in a list", "{.a[0][1]}", `{"a":[[1,2]]}`, `{"a":[[3,4]]}`, `{"a":[[1,4]]}`},
		"EmptyBoth":    {"empty lists", "{.a[*].b}", `{"a":[]}`, `{"a":[]}`, `{"a":[]}`},
		"EmptyDesired": {"an empty list gets no entries", "{.a[*].b}", `{"a":[]}`, `{"a":[{"name":"x","b":1}]}`, `{"a":[]}`},
		"Types": {
			"names of two types do not pair",
			"{.a[*].b}",
			`{"a":[{"name":"1"}]}`,
			`{"a":[{"name":1,"b":1}]}`,
			`{"a":[{"name":"1"}]}`,
		},
		"NameOfMap": {
			"a name that is a map is none",
			"{.a[*].b}",
			`{"a":[{"name":{}}]}`,
			`{"a":[{"name":{},"b":1}]}`,
			`{"a":[{"name":{},"b":1}]}`,
		},
		"Separator": {
			"names do not run into one another",
			"{.ports[*].x}",
			`{"ports":[{"port":"1,","protocol":"a"},{"port":"1","protocol":",a"}]}`,
			`{"ports":[{"port":"1","protocol":",a","x":2},{"port":"1,","protocol":"a","x":1}]}`,
			`{"ports":[{"port":"1,","protocol":"a","x":1},{"port":"1","protocol":",a","x":2}]}`,
		},
		"Conditions": {
			"conditions by type",
			"{.conditions[*].status}",
			`{"conditions":[{"type":"A"}]}`,
			`{"conditions":[{"type":"B","status":1},{"type":"A","status":2}]}`,
			`{"conditions":[{"type":"A","status":2}]}`,
		},
		"Owners": {
			"owners by UID",
			"{.ownerReferences[*].x}",
			`{"ownerReferences":[{"uid":"a","name":"n"},{"uid":"b","name":"n"}]}`,
			`{"ownerReferences":[{"uid":"b","name":"n","x":1}]}`,
			`{"ownerReferences":[{"uid":"a","name":"n"},{"uid":"b","name":"n","x":1}]}`,
		},
		"Devices": {
			"devices by path",
			"{.volumeDevices[*].x}",
			`{"volumeDevices":[{"devicePath":"/a"}]}`,
			`{"volumeDevices":[{"devicePath":"/b","x":1},{"devicePath":"/a","x":2}]}`,
			`{"volumeDevices":[{"devicePath":"/a","x":2}]}`,
		},
		"Spread": {
			"constraints by two keys",
			"{.topologySpreadConstraints[*].x}",
			`{"topologySpreadConstraints":[{"topologyKey":"z","whenUnsatisfiable":"A"}]}`,
			`{"topologySpreadConstraints":[{"topologyKey":"z","whenUnsatisfiable":"B","x":1},{"topologyKey":"z","whenUnsatisfiable":"A","x":2}]}`,
			`{"topologySpreadConstraints":[{"topologyKey":"z","whenUnsatisfiable":"A","x":2}]}`,
		},
		"PortNames": {
			"ports that have names only",
			"{.ports[*].x}",
			`{"ports":[{"name":"a"}]}`,
			`{"ports":[{"name":"b","x":1},{"name":"a","x":2}]}`,
			`{"ports":[{"name":"a","x":2}]}`,
		},
		"Mixed": {
			"keys that one list has not",
			"{.ports[*].x}",
			`{"ports":[{"name":"a","port":1}]}`,
			`{"ports":[{"name":"a","x":2}]}`,
			`{"ports":[{"name":"a","port":1,"x":2}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Parse(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			got := Retain([]Path{path}, object(t, tc.desired), object(t, tc.observed))
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRetainPaths checks that a path is retained in what the paths before it have changed.
func TestRetainPaths(t *testing.T) {
	var paths []Path
	for _, text := range []string{"{.a}", "{.a.b}", "{.l[*].x}", "{.none}"} {
		path, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	observed := object(t, `{"a":{"b":2},"l":[{"name":"n","x":[1]}]}`)
	got := Retain(paths, object(t, `{"a":{"c":1},"l":[{"name":"n"}]}`), observed)
	if diff := cmp.Diff(observed.Object, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Object["l"].([]any)[0].(map[string]any)["x"].([]any)[0] = "changed"
	if diff := cmp.Diff(object(t, `{"a":{"b":2},"l":[{"name":"n","x":[1]}]}`).Object, observed.Object); diff != "" {
		t.Errorf("the result shares values with the observed object:\n%s", diff)
	}
	if got := Retain(nil, observed, object(t, `{}`)); !cmp.Equal(got.Object, observed.Object) {
		t.Errorf("no paths: %v", got.Object)
	}
}
