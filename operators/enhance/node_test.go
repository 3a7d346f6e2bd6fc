package enhance

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// nodeOf is a node of fields, below a path of a ConfigMap.
func nodeOf(path string, fields map[string]any) node {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}}
	return node{object: object, path: path, fields: fields}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestChild checks which values count as a map, and that a missing one is made or refused.
func TestChild(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		fields    map[string]any
		ifMissing missing
		want      string // the error
		made      bool
	}{
		"There":   {"a map is returned as it is", map[string]any{"a": map[string]any{"b": 1}}, refuse, "", false},
		"Empty":   {"an empty map is there", map[string]any{"a": map[string]any{}}, refuse, "", false},
		"Missing": {"a missing map is refused", map[string]any{}, refuse, "ConfigMap c: p.a is missing", false},
		"Null":    {"a null counts as missing", map[string]any{"a": nil}, refuse, "ConfigMap c: p.a is missing", false},
		"NilMap": {"a map without memory counts as missing", map[string]any{"a": map[string]any(nil)}, refuse,
			"ConfigMap c: p.a is missing", false},
		"Create":     {"a missing map is made", map[string]any{}, create, "", true},
		"CreateNull": {"a null is replaced by a map", map[string]any{"a": nil}, create, "", true},
		"CreateNil":  {"a map without memory is replaced", map[string]any{"a": map[string]any(nil)}, create, "", true},
		"Text":       {"text is not replaced", map[string]any{"a": "x"}, create, "ConfigMap c: p.a must be a map, not a string", false},
		"False":      {"nor is a boolean", map[string]any{"a": false}, create, "ConfigMap c: p.a must be a map, not a boolean", false},
		"List":       {"nor is a list", map[string]any{"a": []any{}}, create, "ConfigMap c: p.a must be a map, not a list", false},
		"Number":     {"nor is a number", map[string]any{"a": int64(0)}, create, "ConfigMap c: p.a must be a map, not a number", false},
		"Strange": {"a type of Go is named as such", map[string]any{"a": []string{}}, create, "ConfigMap c: p.a must be a map, not []string",
			false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeOf("p", tc.fields).child("a", tc.ifMissing)
			if message(err) != tc.want {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if err != nil {
				return
			}
			got.fields["new"] = true
			if inside, ok := tc.fields["a"].(map[string]any); !ok || inside["new"] != true || got.path != "p.a" {
				t.Errorf("%s: the node is no part of the object: %v, path %s", tc.reason, tc.fields, got.path)
			}
			if made := len(got.fields) == 1; made != tc.made && name != "Empty" {
				t.Errorf("%s: made: %v", tc.reason, made)
			}
		})
	}
}

// TestList checks which values count as a list of maps, and that a wrong item is named by its index.
func TestList(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  any
		want   []string // the paths
		err    string
	}{
		"Missing":  {"no list has no items", nil, []string{}, ""},
		"Empty":    {"an empty list has no items", []any{}, []string{}, ""},
		"Items":    {"items have paths", []any{map[string]any{}, map[string]any{"x": 1}}, []string{"p.a[0]", "p.a[1]"}, ""},
		"Map":      {"a map is no list", map[string]any{}, nil, "ConfigMap c: p.a must be a list, not a map"},
		"Text":     {"text is no list", "x", nil, "ConfigMap c: p.a must be a list, not a string"},
		"NullItem": {"a null is no map", []any{map[string]any{}, nil}, nil, "ConfigMap c: p.a[1] must be a map, not null"},
		"ListItem": {"a list is no map", []any{[]any{}}, nil, "ConfigMap c: p.a[0] must be a map, not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, err := nodeOf("p", map[string]any{"a": tc.value}).list("a")
			if message(err) != tc.err {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if err != nil {
				return
			}
			got := []string{}
			for _, n := range nodes {
				got = append(got, n.path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNodeText checks that a missing text is empty, and that any other type is refused.
func TestNodeText(t *testing.T) {
	n := nodeOf("", map[string]any{"a": "x", "null": nil, "n": 1.5, "b": true, "l": []any{}, "m": map[string]any{}})
	for field, want := range map[string]string{
		"a": "x", "null": "", "absent": "", "n": "ConfigMap c: n must be a string, not a number",
		"b": "ConfigMap c: b must be a string, not a boolean",
		"l": "ConfigMap c: l must be a string, not a list", "m": "ConfigMap c: m must be a string, not a map",
	} {
		got, err := n.text(field)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

// TestSetStrings checks that entries are added, and that a wrong one leaves the map as it was.
func TestSetStrings(t *testing.T) {
	fields := map[string]any{"labels": map[string]any{"a": "1", "null": nil, "own": "x"}}
	if err := nodeOf("metadata", fields).setStrings("labels", map[string]string{"a": "2", "b": "3"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"labels": map[string]any{"a": "2", "b": "3", "null": "", "own": "x"}}, fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []any{int64(1), true, []any{}, map[string]any{}} {
		fields := map[string]any{"labels": map[string]any{"z": bad, "y": bad, "a": "1"}}
		err := nodeOf("metadata", fields).setStrings("labels", map[string]string{"a": "2"})
		if want := "ConfigMap c: metadata.labels.y must be a string, not " + typeName(bad) + ": put it in quotes"; message(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if fields["labels"].(map[string]any)["a"] != "1" {
			t.Error("the map is changed in spite of the error")
		}
	}
}

// TestController checks which owners stay, and that there is one reference to the Instance, at the end.
func TestController(t *testing.T) {
	owner := func(apiVersion, kind, name string, more ...any) map[string]any {
		ref := map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}
		for i := 0; i+1 < len(more); i += 2 {
			ref[more[i].(string)] = more[i+1]
		}
		return ref
	}
	ctx := testContext()
	for name, tc := range map[string]struct {
		reason string
		given  []any
		kept   []any
		err    string
	}{
		"None": {"the Instance alone", nil, []any{}, ""},
		"Ours": {"a reference to the Instance is replaced", []any{owner("kudo.dev/v1beta1", "Instance", "shop")}, []any{}, ""},
		"OursTwice": {"even if there are two of them",
			[]any{owner("kudo.dev/v1beta1", "Instance", "shop"), owner("kudo.dev/v1", "Instance", "shop")}, []any{}, ""},
		"OtherName": {"another Instance stays", []any{owner("kudo.dev/v1beta1", "Instance", "other")},
			[]any{owner("kudo.dev/v1beta1", "Instance", "other")}, ""},
		"OtherKind": {"another kind stays", []any{owner("kudo.dev/v1beta1", "Operator", "shop")},
			[]any{owner("kudo.dev/v1beta1", "Operator", "shop")}, ""},
		"OtherGroup": {"another group stays", []any{owner("example.org/v1", "Instance", "shop")},
			[]any{owner("example.org/v1", "Instance", "shop")}, ""},
		"Order": {"others keep their order",
			[]any{owner("v1", "B", "b"), owner("kudo.dev/v1beta1", "Instance", "shop"), owner("v1", "A", "a")}, []any{owner("v1", "B", "b"),
				owner("v1", "A", "a")}, ""},
		"NotControl": {"an owner that says that it is no controller stays", []any{owner("v1", "A", "a", "controller", false)},
			[]any{owner("v1", "A", "a", "controller", false)}, ""},
		"TextControl": {"text is no boolean", []any{owner("v1", "A", "a", "controller", "true")},
			[]any{owner("v1", "A", "a", "controller", "true")}, ""},
		"Control": {"another controller is refused, by its place", []any{owner("v1", "B", "b"), owner("v1", "A", "a", "controller", true)}, nil,
			"ConfigMap c: metadata.ownerReferences[1] names a controller, but an object of a plan is controlled by its Instance"},
		"NoVersion": {"a reference without apiVersion stays", []any{map[string]any{"kind": "Instance", "name": "shop"}},
			[]any{map[string]any{"kind": "Instance", "name": "shop"}}, ""},
		"BadVersion": {"an apiVersion that is none stays", []any{owner("a/b/c", "Instance", "shop")}, []any{owner("a/b/c", "Instance", "shop")},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]any{"ownerReferences": tc.given}
			err := nodeOf("metadata", fields).setController(ctx, false)
			if message(err) != tc.err {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(any(append(tc.kept, ctx.controller())), fields["ownerReferences"]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDescribe checks how an error names an object that lacks its kind or its name.
func TestDescribe(t *testing.T) {
	for want, fields := range map[string]map[string]any{
		"ConfigMap c":                          {"kind": "ConfigMap", "metadata": map[string]any{"name": "c"}},
		"ConfigMap without a name":             {"kind": "ConfigMap"},
		"object without a kind c":              {"metadata": map[string]any{"name": "c"}},
		"object without a kind without a name": {},
		"Secret without a name":                {"kind": "Secret", "metadata": map[string]any{"name": int64(1)}},
	} {
		if got := describe(&unstructured.Unstructured{Object: fields}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestMalformedError checks that an error about the whole object names no field.
func TestMalformedError(t *testing.T) {
	for _, object := range []*unstructured.Unstructured{nil, {}} {
		err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil)
		var malformed *MalformedError
		if !errors.As(err, &malformed) || malformed.Field != "" || err.Error() != "an object is empty" {
			t.Errorf("error %v", err)
		}
	}
	if err := (&MalformedError{Object: "A a", Field: "spec", Problem: "is missing"}); err.Error() != "A a: spec is missing" {
		t.Errorf("error %v", err)
	}
}

// TestTypeNames checks that errors name types in words of YAML.
func TestTypeNames(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
	}{
		{nil, "null"}, {"", "a string"}, {true, "a boolean"}, {map[string]any{}, "a map"}, {[]any{}, "a list"}, {1, "a number"},
		{int32(1), "a number"},
		{int64(1), "a number"}, {float32(1), "a number"}, {1.5, "a number"}, {uint8(1), "uint8"}, {struct{}{}, "struct {}"},
	} {
		if got := typeName(tc.value); got != tc.want {
			t.Errorf("%T: got %q, want %q", tc.value, got, tc.want)
		}
	}
}

// TestFirstNonString checks that the key that an error names does not depend on the order of a map.
func TestFirstNonString(t *testing.T) {
	fields := map[string]any{}
	for _, key := range strings.Split("q w e r t z u i o p", " ") {
		fields[key] = 1
	}
	fields["a"] = "text"
	for range 20 {
		if key, found := firstNonString(fields); key != "e" || !found {
			t.Fatalf("got %q, %v", key, found)
		}
	}
	if key, found := firstNonString(map[string]any{"a": "x"}); key != "" || found {
		t.Errorf("all are strings: %q, %v", key, found)
	}
	if key, found := firstNonString(map[string]any{"": 1}); key != "" || !found {
		t.Errorf("an empty key: %q, %v", key, found)
	}
}
