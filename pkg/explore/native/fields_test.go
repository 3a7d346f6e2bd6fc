package native

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKeepAndFill checks which live values replace those of the desired object.
func TestKeepAndFill(t *testing.T) {
	for _, row := range []struct{ reason, desired, live, kept, filled string }{
		{"the live side has no value", "{a: {b: own}}", "{}", "{a: {b: own}}", "{a: {b: own}}"},
		{"the live value is null", "{a: {b: own}}", "{a: {b: null}}", "{a: {b: own}}", "{a: {b: own}}"},
		{"the live value is empty", "{a: {b: own}}", "{a: {b: ''}}", "{a: {b: own}}", "{a: {b: own}}"},
		{"the live number is 0", "{a: {b: 7}}", "{a: {b: 0}}", "{a: {b: 7}}", "{a: {b: 7}}"},
		{"false is a value", "{a: {}}", "{a: {b: false}}", "{a: {b: false}}", "{a: {b: false}}"},
		{"both have a value", "{a: {b: own}}", "{a: {b: live}}", "{a: {b: live}}", "{a: {b: own}}"},
		{"the desired value is empty", "{a: {b: ''}}", "{a: {b: live}}", "{a: {b: live}}", "{a: {b: live}}"},
		{"the desired object has no map to hold it", "{}", "{a: {b: live}}", "{a: {b: live}}", "{a: {b: live}}"},
		{"a list", "{a: {b: []}}", "{a: {b: [x]}}", "{a: {b: [x]}}", "{a: {b: [x]}}"},
	} {
		for _, way := range []struct {
			name string
			do   func(into, from map[string]any, path ...string) error
			want string
		}{{"keep", keep, row.kept}, {"fill", fill, row.filled}} {
			desired, live := tree(t, row.desired), tree(t, row.live)
			if err := way.do(desired, live, "a", "b"); err != nil {
				t.Errorf("%s: %s: %v", way.name, row.reason, err)
			}
			if diff := cmp.Diff(tree(t, way.want), desired); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", way.name, row.reason, diff)
			}
			if diff := cmp.Diff(tree(t, row.live), live); diff != "" {
				t.Errorf("%s: %s: the live object was changed:\n%s", way.name, row.reason, diff)
			}
		}
	}
	for name, do := range map[string]func(into, from map[string]any, path ...string) error{"keep": keep, "fill": fill} {
		if err := do(tree(t, "{a: text}"), tree(t, "{a: {b: live}}"), "a", "b"); err == nil {
			t.Errorf("%s writes into a text", name)
		}
		if err := do(tree(t, "{}"), tree(t, "{a: text}"), "a", "b"); err == nil {
			t.Errorf("%s takes a text for a map without the field", name)
		}
	}
}

// tree is a map of YAML.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	object := under(t, "{apiVersion: v1, kind: X}", text).Object
	delete(object, "apiVersion")
	delete(object, "kind")
	return object
}

// TestKeepDoesNotShare checks that what is kept can be changed without a change of the live object.
func TestKeepDoesNotShare(t *testing.T) {
	desired, live := tree(t, "{}"), tree(t, "{a: {b: {c: live}}, list: [{name: x, c: live}]}")
	if err := keep(desired, live, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := mergeByKey(desired, live, "name", "list"); err != nil {
		t.Fatal(err)
	}
	desired["a"].(map[string]any)["b"].(map[string]any)["c"] = "changed"
	desired["list"].([]any)[0].(map[string]any)["c"] = "changed"
	if diff := cmp.Diff(tree(t, "{a: {b: {c: live}}, list: [{name: x, c: live}]}"), live); diff != "" {
		t.Errorf("the live object was changed (-want +got):\n%s", diff)
	}
}

// TestMergeByKey checks the order and the keys of lists that are merged.
func TestMergeByKey(t *testing.T) {
	for _, row := range []struct{ reason, desired, live, want, wrong string }{
		{"desired entries come first, live ones in their order", "{l: [{k: b}]}", "{l: [{k: c}, {k: b, x: 1}, {k: a}]}", "{l: [{k: b}, {k: c}, {k: a}]}", ""},
		{"no desired list", "{}", "{l: [{k: a}]}", "{l: [{k: a}]}", ""},
		{"an empty live list leaves no empty list behind", "{}", "{l: []}", "{}", ""},
		{"a null list is none", "{l: null}", "{l: [{k: a}]}", "{l: [{k: a}]}", ""},
		{"entries without the key are one and the same", "{l: [{x: 1}]}", "{l: [{x: 2}]}", "{l: [{x: 1}]}", ""},
		{"a desired list of another type", "{l: a}", "{l: [{k: a}]}", "", "[l] is a string, not a list"},
		{"a live list of another type", "{}", "{l: {k: a}}", "", "[l] is a map[string]interface {}, not a list"},
		{"an entry of another type is named by its place", "{}", "{l: [{k: a}, 5]}", "", "entry 1 of [l] is a int64, not a map"},
	} {
		desired := tree(t, row.desired)
		err := mergeByKey(desired, tree(t, row.live), "k", "l")
		if row.wrong != "" {
			if err == nil || err.Error() != row.wrong {
				t.Errorf("%s: got %v, want %q", row.reason, err, row.wrong)
			}
			continue
		}
		if diff := cmp.Diff(tree(t, row.want), desired); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", row.reason, err, diff)
		}
	}
}

// TestSetList checks that maps on the way are made, and that nothing else is overwritten.
func TestSetList(t *testing.T) {
	for _, row := range []struct{ reason, object, want, wrong string }{
		{"maps are made", "{}", "{a: {b: [x]}}", ""},
		{"a null is no map yet", "{a: null}", "{a: {b: [x]}}", ""},
		{"other fields stay", "{a: {c: d}, e: f}", "{a: {c: d, b: [x]}, e: f}", ""},
		{"the list before is replaced", "{a: {b: [y, z]}}", "{a: {b: [x]}}", ""},
		{"a text is not overwritten", "{a: text}", "{a: text}", "a of [a b] is a string, not a map"},
	} {
		object := tree(t, row.object)
		err := setList(object, []any{"x"}, "a", "b")
		if (err == nil) != (row.wrong == "") || err != nil && err.Error() != row.wrong {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.wrong)
		}
		if diff := cmp.Diff(tree(t, row.want), object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
	}
}

// TestNumber checks what counts as a whole number.
func TestNumber(t *testing.T) {
	for _, row := range []struct {
		reason string
		value  any
		want   int64
		whole  bool
	}{
		{"as clients decode", int64(-3), -3, true},
		{"as other decoders do", float64(5), 5, true},
		{"of Go", 7, 7, true},
		{"of typed fields", int32(9), 9, true},
		{"a half", 1.5, 1, false},
		{"text is no number", "5", 0, false},
		{"null is no number", nil, 0, false},
		{"true is no number", true, 0, false},
	} {
		got, whole := number(row.value)
		if whole != row.whole || whole && got != row.want {
			t.Errorf("%s: got %d (%v)", row.reason, got, whole)
		}
	}
	if _, whole := number(1e300); whole {
		t.Error("a number beyond 64 bits is not whole")
	}
}

// TestBuilt checks that rules go by group and kind: a kind of another group with the same name is none of Kubernetes' own.
func TestBuilt(t *testing.T) {
	for _, row := range []struct{ reason, group, kind, want string }{
		{"the core group", "", "Pod", "Pod"},
		{"a kind of the core group in another one", "apps", "Pod", ""},
		{"the group of today", "apps", "Deployment", "Deployment"},
		{"the group of before", "extensions", "Deployment", "Deployment"},
		{"a set was never in extensions", "extensions", "StatefulSet", ""},
		{"an Ingress of before", "extensions", "Ingress", "Ingress"},
		{"a job is in no other group", "batch.example.com", "Job", ""},
		{"a workload is not in the core group", "", "Deployment", ""},
		{"names of kinds have one spelling", "", "pod", ""},
		{"a kind without a rule", "", "ConfigMap", ""},
		{"a policy", "policy", "PodDisruptionBudget", "PodDisruptionBudget"},
	} {
		if got := built(schema.GroupKind{Group: row.group, Kind: row.kind}); got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

// TestReadsTextStrictly checks that a field of another type is an error that names it.
func TestReadsTextStrictly(t *testing.T) {
	object := tree(t, "{a: {b: 5}, c: d}")
	if _, err := text(object, "a", "b"); err == nil || !strings.Contains(err.Error(), "a.b") {
		t.Errorf("the field is named: %v", err)
	}
	if _, err := text(object, "c", "d"); err == nil {
		t.Error("a text has no fields")
	}
	if value, err := text(object, "a", "x"); value != "" || err != nil {
		t.Errorf("a field that is absent is empty: %q, %v", value, err)
	}
}
