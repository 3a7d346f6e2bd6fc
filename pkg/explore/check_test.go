package explore_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestCheckValues has the answers that are no objects.
func TestCheckValues(t *testing.T) {
	whole := v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}
	without := func(change func(*v1alpha1.DependentObjectReference)) explore.Answer {
		second := whole
		change(&second)
		return explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{whole, second}}
	}
	const suffix = ": apiVersion, kind, and name or labelSelector must be set"
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		answer    explore.Answer
		err       string
	}{
		"Replicas":      {"0 replicas", explore.Replica, explore.Answer{}, ""},
		"Negative":      {"fewer", explore.Replica, explore.Answer{Replicas: -1}, "-1 replicas: must be 0 or more"},
		"Healthy":       {"health needs nothing else", explore.Healthy, explore.Answer{}, ""},
		"Status":        {"nor has a status", explore.Status, explore.Answer{}, ""},
		"StatusObject":  {"a status is an object", explore.Status, explore.Answer{Status: map[string]any{}}, ""},
		"StatusText":    {"no text", explore.Status, explore.Answer{Status: "Running"}, `the status is a text: it must be an object`},
		"StatusList":    {"no list, not even an empty one", explore.Status, explore.Answer{Status: []any{}}, `the status is a list: it must be an object`},
		"StatusNumber":  {"no number", explore.Status, explore.Answer{Status: int64(1)}, `the status is a number: it must be an object`},
		"StatusBoolean": {"and no boolean", explore.Status, explore.Answer{Status: false}, `the status is a boolean: it must be an object`},
		"None":          {"no dependencies", explore.Dependencies, explore.Answer{}, ""},
		"Whole":         {"whole references", explore.Dependencies, without(func(*v1alpha1.DependentObjectReference) {}), ""},
		"APIVersion": {
			"without apiVersion",
			explore.Dependencies,
			without(func(d *v1alpha1.DependentObjectReference) { d.APIVersion = "" }),
			`dependency 1 ( Secret "s")` + suffix,
		},
		"Kind": {
			"without kind",
			explore.Dependencies,
			without(func(d *v1alpha1.DependentObjectReference) { d.Kind = "" }),
			`dependency 1 (v1  "s")` + suffix,
		},
		"Name": {
			"without name",
			explore.Dependencies,
			without(func(d *v1alpha1.DependentObjectReference) { d.Name = "" }),
			`dependency 1 (v1 Secret "")` + suffix,
		},
		"Selector": {
			"a selector in place of the name",
			explore.Dependencies,
			without(func(d *v1alpha1.DependentObjectReference) { d.Name, d.LabelSelector = "", &metav1.LabelSelector{} }),
			"",
		},
		"NoObject": {"an object is needed", explore.Packing, explore.Answer{}, "no object was returned"},
		"NoFields": {"with fields", explore.Retaining, explore.Answer{Object: &unstructured.Unstructured{}}, "no object was returned"},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Request{Operation: tc.operation, Object: exploretest.Object(t, `{"apiVersion":"v1","kind":"X"}`)}
			if got := fmt.Sprint(explore.Check(r, &tc.answer)); got != tc.err && (tc.err != "" || got != "<nil>") {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestCheckIdentity changes each field of the identity.
func TestCheckIdentity(t *testing.T) {
	const before = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"n","uid":"u","generateName":"g","labels":{"l":"1"}}}`
	for name, tc := range map[string]struct {
		reason string
		path   []string
		value  any
		err    string
	}{
		"APIVersion": {
			"the version",
			[]string{"apiVersion"},
			"v2",
			`apiVersion was changed from "v1" to "v2": the identity of an object must stay`,
		},
		"UID": {
			"the UID",
			[]string{"metadata", "uid"},
			"other",
			`uid was changed from "u" to "other": the identity of an object must stay`,
		},
		"GenerateName": {
			"the prefix",
			[]string{"metadata", "generateName"},
			"h",
			`generateName was changed from "g" to "h": the identity of an object must stay`,
		},
		"Type": {
			"another type of value",
			[]string{"metadata", "name"},
			int64(5),
			`name was changed from "a" to "5": the identity of an object must stay`,
		},
		"Removed": {
			"a field that is removed",
			[]string{"metadata", "namespace"},
			nil,
			`namespace was changed from "n" to nothing: the identity of an object must stay`,
		},
		"Metadata": {
			"metadata that is no map",
			[]string{"metadata"},
			"x",
			`name was changed from "a" to nothing: the identity of an object must stay`,
		},
		"Labels": {"labels are not part of it", []string{"metadata", "labels"}, map[string]any{"l": "2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			after := exploretest.Object(t, before)
			if err := unstructured.SetNestedField(after.Object, tc.value, tc.path...); err != nil {
				t.Fatal(err)
			}
			if tc.value == nil {
				unstructured.RemoveNestedField(after.Object, tc.path...)
			}
			r := explore.Request{Operation: explore.Packing, Object: exploretest.Object(t, before)}
			if got := fmt.Sprint(explore.Check(r, &explore.Answer{Object: after})); got != tc.err && (tc.err != "" || got != "<nil>") {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestCheckRevising has the fields at the top that revising may write.
func TestCheckRevising(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}`
	for name, tc := range map[string]struct{ reason, before, after, err string }{
		"NoStatus": {"a status that is removed", head + `,"status":{"x":1}}`, head + `}`, "status was changed: the operation must not write it"},
		"Emptied":  {"an empty status is an absent one", head + `,"status":{}}`, head + `}`, ""},
		"Labels":   {"metadata may be written", head + `}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"x":"1"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Request{Operation: explore.ReplicaRevising, Object: exploretest.Object(t, tc.before)}
			err := explore.Check(r, &explore.Answer{Object: exploretest.Object(t, tc.after)})
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestRetainedPaths has specs of a desired object, of an observed one and of the result.
func TestRetainedPaths(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":`
	for name, tc := range map[string]struct{ reason, desired, observed, result, path string }{
		"Value":      {"another value in a path of the observed object", `{}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`, ""},
		"Type":       {"another type in it", `{}`, `{"a":{"b":1}}`, `{"a":{"b":"text"}}`, ""},
		"Scalar":     {"a map where both have a scalar", `{"a":1}`, `{"a":2}`, `{"a":{"b":1}}`, ".spec.a.b"},
		"ListForMap": {"a list where both have a map", `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":[{"b":1}]}`, ".spec.a[0]"},
		"MapForList": {"a map where both have a list", `{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`, `{"a":{"b":1}}`, ".spec.a.b"},
		"First":      {"the first path in order", `{}`, `{}`, `{"z":1,"b":{"c":1},"y":1}`, ".spec.b"},
		"Merged":     {"a list of entries of both", `{"l":[{"a":1}]}`, `{"l":[{"b":1}]}`, `{"l":[{"a":1},{"b":1},{"a":2,"b":2}]}`, ""},
		"Longer":     {"a list that is longer", `{"l":[1]}`, `{"l":[2,3]}`, `{"l":[1,2,3,4]}`, ""},
		"InList":     {"a field that no entry has", `{"l":[{"a":1},{"b":1}]}`, `{"l":[]}`, `{"l":[{"a":1},{"b":2,"c":{"d":1}}]}`, ".spec.l[1].c"},
		"InLists":    {"a list in an entry", `{"l":[{"a":[1]}]}`, `{}`, `{"l":[{"a":[2,3]},{"a":[[1]]}]}`, ".spec.l[1].a[0][0]"},
		"NewInEntry": {"a list that entries have, but empty", `{"l":[{"a":[]}]}`, `{}`, `{"l":[{"a":[1]}]}`, ".spec.l[0].a[0]"},
		"EmptyEntry": {"entries with nothing in them", `{"l":[{"a":1}]}`, `{}`, `{"l":[{"x":{"y":[]}},{},[null],null]}`, ""},
		"EmptyDeep":  {"values with nothing in them", `{}`, `{}`, `{"x":{"y":[{"z":null}]}}`, ""},
		"Zero":       {"0 and false are values", `{}`, `{}`, `{"x":{"y":false}}`, ".spec.x"},
		"Removed":    {"fewer fields", `{"a":1,"b":2}`, `{"c":3}`, `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Request{
				Operation: explore.Retaining, Object: exploretest.Object(t, head+tc.desired+"}"), Observed: exploretest.Object(t, head+tc.observed+"}"),
			}
			want := "<nil>"
			if tc.path != "" {
				want = tc.path + " is in neither the desired nor the observed object: retaining must not add fields"
			}
			err := explore.Check(r, &explore.Answer{Object: exploretest.Object(t, head+tc.result+"}")})
			if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		a, b   any
		equal  bool
	}{
		"Nil":          {"nil is an empty map", nil, map[string]any{}, true},
		"EmptyList":    {"and an empty list", []any{}, nil, true},
		"EmptyBoth":    {"which are one", []any{}, map[string]any{}, true},
		"EmptyText":    {"an empty text is a value", "", nil, false},
		"False":        {"so is false", false, nil, false},
		"Zero":         {"and 0", int64(0), nil, false},
		"Integers":     {"integers of any type", int64(3), int32(3), true},
		"Int":          {"also int", 3, int64(3), true},
		"Whole":        {"a float that is whole", int64(3), 3.0, true},
		"Fraction":     {"one that is not", int64(3), 3.5, false},
		"Fractions":    {"two of these", 3.5, 3.5, true},
		"Precise":      {"2^53+1 is not the float next to it", int64(1<<53 + 1), float64(1 << 53), false},
		"Beyond":       {"2^63 is no integer", int64(math.MaxInt64), float64(1 << 63), false},
		"Smallest":     {"-2^63 is one", int64(math.MinInt64), -float64(1 << 63), true},
		"Text":         {"a text of digits is no number", "3", int64(3), false},
		"NumberText":   {"nor the other way round", int64(3), "3", false},
		"MapToList":    {"a map is no list", map[string]any{"a": int64(1)}, []any{"a"}, false},
		"ListToMap":    {"nor is a list a map", []any{"a"}, map[string]any{"a": int64(1)}, false},
		"Order":        {"lists have an order", []any{int64(1), int64(2)}, []any{int64(2), int64(1)}, false},
		"Length":       {"and a length", []any{int64(1)}, []any{int64(1), nil}, false},
		"EmptyEntries": {"empty entries of lists equal null", []any{nil, int64(1)}, []any{map[string]any{}, int64(1)}, true},
		"EmptyFields": {
			"empty fields of maps are absent, on either side",
			map[string]any{"a": nil, "c": int64(1)},
			map[string]any{"b": []any{}, "c": int64(1)},
			true,
		},
		"MoreFields":  {"others are not", map[string]any{"c": int64(1)}, map[string]any{"c": int64(1), "d": int64(0)}, false},
		"FewerFields": {"in either direction", map[string]any{"c": int64(1), "d": int64(0)}, map[string]any{"c": int64(1)}, false},
		"Deep": {
			"at any depth",
			map[string]any{"a": []any{map[string]any{"b": 1.0}}},
			map[string]any{"a": []any{map[string]any{"b": int64(1)}}},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explore.Equal(tc.a, tc.b); got != tc.equal {
				t.Errorf("%s: Equal(%#v, %#v) is %v", tc.reason, tc.a, tc.b, got)
			}
			if got := explore.Equal(tc.b, tc.a); got != tc.equal {
				t.Errorf("%s: Equal(%#v, %#v) is %v", tc.reason, tc.b, tc.a, got)
			}
		})
	}
}
