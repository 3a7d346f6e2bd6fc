package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestMerge checks which value of a key counts when `<<` brings it in.
func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         any
		err          string
	}{
		"Inline":  {"a map in place", "{<<: {a: 1}, b: 2}", map[string]any{"a": int64(1), "b": int64(2)}, ""},
		"First":   {"the first of several maps wins", "{<<: [{a: 1}, {a: 2, b: 3}]}", map[string]any{"a": int64(1), "b": int64(3)}, ""},
		"OwnWins": {"the map itself wins, wherever its key stands", "{<<: [{a: 1}], a: 2}", map[string]any{"a": int64(2)}, ""},
		"OwnNull": {"a null of the map itself wins as well", "{<<: {a: 1}, a: ~}", map[string]any{"a": nil}, ""},
		"Nested":  {"merged maps merge others", "{<<: {<<: {a: 1}, b: 2}}", map[string]any{"a": int64(1), "b": int64(2)}, ""},
		"ListAlias": {"a list by its alias", "x: &l [{a: 1}, {b: 2}]\nz: {<<: *l}",
			map[string]any{"x": []any{map[string]any{"a": int64(1)}, map[string]any{"b": int64(2)}},
				"z": map[string]any{"a": int64(1), "b": int64(2)}}, ""},
		"Quoted":     {"a quoted key is a key", `{"<<": {a: 1}}`, map[string]any{"<<": map[string]any{"a": int64(1)}}, ""},
		"Tagged":     {"the tag makes a merge of a quoted key", `{!!merge "<<": {a: 1}}`, map[string]any{"a": int64(1)}, ""},
		"Text":       {"text cannot be merged", "a: 1\nb: {<<: x}", nil, "line 2: << needs a map or a list of maps"},
		"Null":       {"nothing cannot be merged", "{<<: ~}", nil, "line 1: << needs a map or a list of maps"},
		"ListOfText": {"a list of texts cannot be merged", "{<<: [{a: 1}, x]}", nil, "line 1: << needs a map or a list of maps"},
		"Wrong":      {"a wrong value in a merged map", "{<<: {a: !!int x}}", nil, `line 1: "x" is no value of type !!int`},
		"Endless":    {"a map that merges itself", "&a {<<: *a}", nil, "line 1: nested deeper than 200 levels once aliases are expanded"},
	} {
		t.Run(name, func(t *testing.T) {
			got, duplicates, err := Parse([]byte(tc.text))
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("%s: error %v, want %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || len(duplicates) > 0 {
				t.Fatalf("%s: %v, %v", tc.reason, duplicates, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeys checks the text that each type of key becomes, which is what Kubernetes makes of it.
func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"a": "a", "1": "1", "010": "8", "0x10": "16", "1_0": "10", "-1": "-1", "yes": "true", "Off": "false", "1.50": "1.5", "1e3": "1000",
		"1e30": "1e+30",
		"0.1":  "0.1", ".inf": ".inf", "-.INF": "-.inf", ".NaN": ".nan", "'1'": "1", `"yes"`: "yes", "2001-01-02": "2001-01-02", "!!str 1": "1",
		"!!int '7'":            "7",
		"99999999999999999999": "99999999999999999999", "a b": "a b", `""`: "",
	} {
		value, _, err := Parse([]byte(key + ": v"))
		if diff := cmp.Diff(any(map[string]any{want: "v"}), value); diff != "" || err != nil {
			t.Errorf("key %s: %v, -want +got:\n%s", key, err, diff)
		}
	}
	if value, _, err := Parse([]byte("a: &k 0x10\n*k : v")); err != nil ||
		!cmp.Equal(value, any(map[string]any{"a": int64(16), "16": "v"})) {
		t.Errorf("an alias as a key: %v, %v", value, err)
	}
}

// TestKeyRefuses checks the message for what cannot be a key, with its line.
func TestKeyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n? [b]\n: c":            "line 2: a key must be a single value, not a map or list",
		"a: 1\n? {b: c}\n: d":         "line 2: a key must be a single value, not a map or list",
		"a: &x [b]\n*x : d":           "line 1: a key must be a single value, not a map or list",
		"a: 1\n~: c":                  "line 2: a key must not be empty or null",
		"a: 1\n!!int b: c":            `line 2: "b" is no value of type !!int`,
		"a:\n  - b: 1\n    null: c\n": "line 3: a key must not be empty or null",
	} {
		_, _, err := Parse([]byte(text))
		var at *Error
		if !errors.As(err, &at) || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// TestDuplicatePaths checks the path and the lines by which a duplicate key is named.
func TestDuplicatePaths(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Root": {"a key of the root", "a: 1\nb: 2\na: 3", []string{"line 3: a is a duplicate of line 1, whose value is lost"}},
		"Thrice": {"each later key is named with the one before it", "a: 1\na: 2\na: 3",
			[]string{"line 2: a is a duplicate of line 1, whose value is lost", "line 3: a is a duplicate of line 2, whose value is lost"}},
		"Lists": {"lists in lists", "a: [[{b: 1, b: 2}]]", []string{"line 1: a[0][0].b is a duplicate of line 1, whose value is lost"}},
		"SecondOne": {"the index of an item", "- a: 1\n- a: 1\n  a: 2",
			[]string{"line 3: [1].a is a duplicate of line 2, whose value is lost"}},
		"Notations": {"keys that become the same text", "1: a\n0x1: b\n'1': c",
			[]string{"line 2: 1 is a duplicate of line 1, whose value is lost", "line 3: 1 is a duplicate of line 2, whose value is lost"}},
		"Booleans": {"booleans that become the same text", "yes: a\ntrue: b",
			[]string{"line 2: true is a duplicate of line 1, whose value is lost"}},
		"Within": {"the value of a duplicate has duplicates", "a: 1\na: {b: 1, b: 2}",
			[]string{"line 2: a is a duplicate of line 1, whose value is lost", "line 2: a.b is a duplicate of line 2, whose value is lost"}},
		"Sibling": {"keys of different maps are no duplicates", "a: {b: 1}\nc: {b: 2}\nd: [{b: 3}, {b: 4}]", nil},
		"Merged":  {"a merged key is no duplicate", "a: &a {b: 1}\nc: {<<: *a, b: 2}", nil},
		"Case":    {"another letter case is another key", "a: 1\nA: 2", nil},
		"Alias": {"a map that is used twice is named at each place", "a: &a {b: 1, b: 2}\nc: *a",
			[]string{"line 1: a.b is a duplicate of line 1, whose value is lost", "line 1: c.b is a duplicate of line 1, whose value is lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, duplicates, err := Parse([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range duplicates {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDuplicatesAreBounded checks that only the first duplicates are named, and that the last value counts nevertheless.
func TestDuplicatesAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "a: %d\n", i)
	}
	value, duplicates, err := Parse([]byte(text.String()))
	if err != nil || len(duplicates) != maxDuplicates || duplicates[99].Line != 101 {
		t.Errorf("%d duplicates, %v", len(duplicates), err)
	}
	if diff := cmp.Diff(any(map[string]any{"a": int64(299)}), value); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNodeBound checks the bound on values at its edge, and that aliases count each time that they are used.
func TestNodeBound(t *testing.T) {
	// The map, the list x, its 1000 items, and the list y with 498 aliases to x, each of 1 alias, 1 list and 1000 items.
	text := func(aliases, more int) string {
		return "x: &x [" + strings.Repeat("0,", 1000) + "]\ny: [" + strings.Repeat("*x,", aliases) + strings.Repeat("0,", more) + "]"
	}
	const rest = MaxNodes - 3 - 1000 - 497*1002
	if _, _, err := Parse([]byte(text(497, rest))); err != nil {
		t.Errorf("the bound itself is allowed: %v", err)
	}
	if _, _, err := Parse([]byte(text(497, rest+1))); err == nil ||
		err.Error() != "line 2: more than 500000 values once aliases are expanded" {
		t.Errorf("one more value: %v", err)
	}
}

// TestDepthBound checks the bound on nesting at its edge, for what is written and for what aliases add.
func TestDepthBound(t *testing.T) {
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	if _, _, err := Parse([]byte(nested(MaxDepth))); err != nil {
		t.Errorf("the bound itself is allowed: %v", err)
	}
	if _, _, err := Parse([]byte("\n" + nested(MaxDepth+1))); err == nil || err.Error() != "line 2: nested deeper than 200 levels" {
		t.Errorf("one level more: %v", err)
	}
	half := "a: &a " + nested(MaxDepth/2) + "\nb: " + strings.Repeat("[", MaxDepth/2) + "*a" + strings.Repeat("]", MaxDepth/2)
	if _, _, err := Parse([]byte(half)); err == nil || err.Error() != "line 1: nested deeper than 200 levels once aliases are expanded" {
		t.Errorf("half by an alias: %v", err)
	}
}

// TestJSON checks what unstructured objects hold after the API machinery has read a value.
func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		value, want any
	}{
		"Whole":             {"a whole float is an integer", 3.0, int64(3)},
		"Negative":          {"a whole negative float is an integer", -3.0, int64(-3)},
		"Fraction":          {"a fraction is a float", 3.5, 3.5},
		"Boundary":          {"two to the power of 63 is a float", float64(1 << 63), float64(1 << 63)},
		"Below":             {"the largest float below it is an integer", math.Nextafter(1<<63, 0), int64(9223372036854774784)},
		"BoundaryBelowZero": {"minus two to the power of 63 is a float", -float64(1 << 63), -float64(1 << 63)},
		"NegativeZero":      {"an integer has one zero", math.Copysign(0, -1), int64(0)},
		"Smallest":          {"the smallest float is not rounded", math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64},
		"Mixed": {"a whole float between others", []any{0.5, 1.0, json.Number("18446744073709551615"), "1.0"},
			[]any{0.5, int64(1), 18446744073709551615.0, "1.0"}},
		"Integer":    {"an integer is left alone", int64(1) << 62, int64(1) << 62},
		"LargeWhole": {"a large whole number is a float", 1e300, 1e300},
		"Number":     {"an integer beyond int64 is a float", json.Number("18446744073709551615"), 18446744073709551615.0},
		"Text":       {"text is left alone", "1.0", "1.0"},
		"Null":       {"a null is left alone", nil, nil},
		"List":       {"items of lists", []any{1.0, []any{2.0}}, []any{int64(1), []any{int64(2)}}},
		"Map":        {"values of maps", map[string]any{"a": map[string]any{"b": 1.0}}, map[string]any{"a": map[string]any{"b": int64(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := JSON(tc.value)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestJSONRefuses checks that numbers that JSON does not have are named, at any depth.
func TestJSONRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"Inf": {math.Inf(1), "the number +Inf cannot be written as JSON"},
		"NaN": {map[string]any{"a": math.NaN()}, "the number NaN cannot be written as JSON"},
		"Huge": {[]any{json.Number("9" + strings.Repeat("0", 309))},
			`the number "9` + strings.Repeat("0", 63) + `"` + "… (310 bytes) is too large"},
		"InAList":   {[]any{"x", []any{math.Inf(-1)}}, "the number -Inf cannot be written as JSON"},
		"HugeInMap": {map[string]any{"a": []any{json.Number("1e400")}}, `the number "1e400" is too large`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := JSON(tc.value); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestValueRefusesOtherNodes checks that a node that no parser makes is an error, and no panic.
func TestValueRefusesOtherNodes(t *testing.T) {
	for _, node := range []*yaml.Node{{Line: 7}, {Kind: yaml.DocumentNode, Line: 7}} {
		if _, _, err := Value(node); err == nil || err.Error() != "line 7: unexpected kind of YAML node" {
			t.Errorf("%v: error %v", node.Kind, err)
		}
	}
}

// TestIsMerge checks which nodes count as merge keys, for those who walk through nodes themselves.
func TestIsMerge(t *testing.T) {
	for text, want := range map[string]bool{"<<: {}": true, "'<<': {}": false, "!!merge <<: {}": true, "<: {}": false, "a: {}": false,
		"[<<]: {}": false} {
		if got := IsMerge(root(t, text).Content[0]); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
