package render

import (
	"testing"
)

// TestStructures checks that functions of lists and maps do as those of sprig, with keys in their order.
func TestStructures(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ keys (dict "b" 1 "a" 2) (dict "d" 1 "c" 2) | join "" }}`: "abcd", `{{ keys (dict) | toJson }}`: "[]",
		`{{ values (dict "b" 1 "a" 2) | toJson }}`: "[2,1]",
		`{{ values (dict) | toJson }}`:             "[]", `{{ list | toJson }}`: "[]", `{{ tuple 1 "a" | toJson }}`: `[1,"a"]`,
		`{{ dict "a" | toJson }}`:          `{"a":""}`,
		`{{ append (list 1) 2 | toJson }}`: "[1,2]", `{{ prepend (list 1) 2 | toJson }}`: "[2,1]",
		`{{ concat (list 1) (list) (list 2 3) | toJson }}`:        "[1,2,3]",
		`{{ merge (dict "a" 1) (dict "a" 2 "b" 3) | toJson }}`:    `{"a":1,"b":3}`,
		`{{ mergeOverwrite (dict "a" 1) (dict "a" 2) | toJson }}`: `{"a":2}`,
		`{{ set (dict "a" 1) "b" 2 | toJson }}`:                   `{"a":1,"b":2}`, `{{ unset (dict "a" 1 "b" 2) "a" | toJson }}`: `{"b":2}`,
		`{{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) | toJson }}`: "[1,3]",
		`{{ chunk 2 (list 1 2 3) | toJson }}`:                             "[[1,2],[3]]", `{{ join "-" (list 1 "a" true nil) }}`: "1-a-true",
		`{{ join "-" "a" }}`:                         "a",
		`{{ join "-" (list) }}`:                      "",
		`{{ sortAlpha (list "b" "a" 1) | join "" }}`: "1ab", `{{ cat "a" 1 nil "b" }}`: "a 1 b", `{{ quote "a" nil 1 }}`: `"a" "1"`,
		`{{ squote "a" "b" }}`:                  `'a' 'b'`,
		`{{ toStrings (list 1 "a") | toJson }}`: `["1","a"]`, `{{ deepCopy (dict "a" (list 1)) | toJson }}`: `{"a":[1]}`,
		`{{ toString 1.5 }}`: "1.5",
	})
}

// TestSize checks about how many bytes a value has, with all that it holds.
func TestSize(t *testing.T) {
	for _, tc := range []struct {
		reason string
		value  any
		want   int
	}{
		{"nothing", nil, 16}, {"a boolean", true, 16}, {"a number", int64(1), 16}, {"text", "abc", 19}, {"a list", []any{"a", 1}, 49},
		{"a list of texts", []string{"a", "bc"}, 51},
		{"a map", map[string]any{"ab": "c"}, 35}, {"a list of numbers", []int{1, 2}, 48}, {"an array", [2]string{"a", "b"}, 50},
		{"a map of texts", map[string]string{"ab": "c"}, 35},
		{"a map of numbers", map[int]int{12: 3}, 34}, {"a text of another type", Kind("abc"), 19}, {"a struct", struct{ A string }{"abc"}, 16},
	} {
		if got := size(tc.value, 0); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}

// TestWeight checks that only the top level of a value counts.
func TestWeight(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  int
	}{
		{"abc", 3}, {5, 0}, {map[string]any{"a": "long text", "b": 1}, 32}, {[]any{"abc", 1, []any{"x"}}, 63}, {[]string{"ab"}, 22},
		{[]any{}, 0}, {nil, 0},
		{make([]any, MaxList+1), 20 * (MaxList + 1)},
	} {
		if got := measure(tc.value, top); got != tc.want {
			t.Errorf("%T: %d, want %d", tc.value, got, tc.want)
		}
	}
}
