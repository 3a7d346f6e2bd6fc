package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlainValue checks the function against the regular expression of its comment, for all texts of up to three characters
// of an alphabet that has each kind of character.
func TestPlainValue(t *testing.T) {
	plain := regexp.MustCompile(`^([A-Za-z0-9_/]([A-Za-z0-9._/+=@-]|:[A-Za-z0-9])*)?$`)
	alphabet := strings.Split("a Z 0 _ / . + = @ - : # , & * ! | > ' \" % ` { [ ] } ? ~ \\ \n \r \t é", " ")
	alphabet = append(alphabet, " ", "\x00", "\x7f")
	var each func(text string, left int)
	each = func(text string, left int) {
		if got, want := plainValue(text), plain.MatchString(text); got != want {
			t.Errorf("%q: plain is %v, want %v", text, got, want)
		}
		if left > 0 {
			for _, c := range alphabet {
				each(text+c, left-1)
			}
		}
	}
	each("", 3)
}

// TestPlainValuesStayScalars checks the law that a plain value is one scalar in each place of a template.
func TestPlainValuesStayScalars(t *testing.T) {
	for _, value := range []string{"a", "0", "_", "/", "a.b", "a+b", "a=", "a@b", "a-", "a:b", "a:1:2", "1.2.3", "a/b@sha256:0a", "50m",
		"__proto__", "0x1F", "1e3", "null", "true"} {
		if !plainValue(value) {
			t.Errorf("%q is plain", value)
		}
		for place, text := range shapes {
			if place == "YamlQuoted" {
				continue // quotes of toYaml between quotes are no YAML, whatever the template is
			}
			set := New(map[string]string{"t.yaml": text, "_h.yaml": helpers})
			v := Variables{Name: "n", Namespace: "ns", Params: map[string]any{"V": value, "W": "w"}}
			if s, err := set.Text("t.yaml", v); err == nil {
				if _, wrong, err := set.difference("t.yaml", s, v, true); err != nil || wrong != nil && wrong.what != "data has a key twice" {
					t.Errorf("%q in %s: %+v, %v", value, place, wrong, err)
				}
			}
		}
	}
}

// TestTame checks that each text of a value becomes a word, and that its structure stays.
func TestTame(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		in, want any
	}{
		{"text", "a b", "word"}, {"a number stays", int64(3), int64(3)}, {"a boolean stays", true, true}, {"nothing stays", nil, nil},
		{"items", []any{"a", int64(1), []any{"b"}}, []any{"word", int64(1), []any{"word"}}}, {"plain keys stay", map[string]any{"a": "b"},
			map[string]any{"a": "word"}},
		{"other keys become words", map[string]any{"a b": "c"}, map[string]any{"word0": "word"}}, {"an empty list", []any{}, []any{}},
		{"an empty map", map[string]any{}, map[string]any{}},
	} {
		if diff := cmp.Diff(tc.want, tame(tc.in, "word")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
	if got := tame(map[string]any{"a b": 1, "c d": 2, "e: f": 3}, "w").(map[string]any); len(got) != 3 {
		t.Errorf("two keys become one: %v", got)
	}
}

// TestHarmless checks which values cannot change the structure of a template.
func TestHarmless(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		v      Variables
		want   bool
	}{
		"Nothing": {"no values", Variables{}, true},
		"Plain": {"plain values", Variables{Name: "n", Namespace: "ns", Params: map[string]any{"A": "a", "B": int64(-1), "C": nil,
			"D": true, "E": ""}, Pipes: map[string]string{"k": "i.d.k"}}, false},
		"Numbers":   {"whole numbers without a sign", Variables{Params: map[string]any{"A": int64(1), "B": 1.5}}, true},
		"Name":      {"a name that is not plain", Variables{Name: "a b"}, false},
		"Namespace": {"a namespace that is not plain", Variables{Namespace: "a: b"}, false},
		"Pipe":      {"an object of a pipe that is not plain", Variables{Pipes: map[string]string{"k": "a b"}}, false},
		"Text":      {"a value that is not plain", Variables{Params: map[string]any{"A": "a b"}}, false},
		"Default":   {"the default of the author", Variables{Params: map[string]any{"A": "a b"}, Defaults: map[string]any{"A": "a b"}}, true},
		"DefaultList": {"the default of the author that is a list", Variables{Params: map[string]any{"A": []any{"a b"}},
			Defaults: map[string]any{"A": []any{"a b"}}}, true},
		"OtherList": {"another list", Variables{Params: map[string]any{"A": []any{"a c"}}, Defaults: map[string]any{"A": []any{"a b"}}},
			false},
		"OtherType": {"text is no list", Variables{Params: map[string]any{"A": "a b"}, Defaults: map[string]any{"A": []any{"a b"}}}, false},
		"OtherKey": {"the default of another parameter", Variables{Params: map[string]any{"A": "a b"},
			Defaults: map[string]any{"B": "a b"}}, false},
		"Strange": {"a type of Go is compared by its text", Variables{Params: map[string]any{"A": []string{"a", "b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.v.Harmless(); got != tc.want {
				t.Errorf("%s: harmless is %v", tc.reason, got)
			}
		})
	}
}

// TestSuspicious checks which values stand near a kind or an apiVersion, by the lines around them.
func TestSuspicious(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string // a value stands between < and >
		want         bool
	}{
		"None":       {"no value", "kind: A\n", false},
		"Elsewhere":  {"a value in another line", "kind: A\nname: <x>\n", false},
		"Kind":       {"a value of kind", "kind: <x>\n", true},
		"KindPart":   {"a part of kind", "kind: A<x>B\n", true},
		"Key":        {"a value that is the key", "<kind>: A\n", true},
		"Version":    {"a value of apiVersion", "apiVersion: <x>/v1\n", true},
		"LastLine":   {"without a line break at the end", "name: a\nkind: <x>", true},
		"NextLine":   {"a value in the line behind the key", "kind:\n  <x>\n", true},
		"NextEmpty":  {"with empty lines between", "kind:\n\n  \n  <x>\n", true},
		"NextSame":   {"a key of its own in the next line", "kind: A\n<x>: b\n", false},
		"NextDeeper": {"a deeper line may continue with a text", "kind: A\n  <x>\n", true},
		"Anchor":     {"an anchor in the line", "a: &a <x>\n", true},
		"AnchorLine": {"an anchor in the line above", "a: &a\n  b: <x>\n", true},
		"MadeKind":   {"a text that makes the word", "a: <kind>\n", true},
		"Flow":       {"a flow map in one line", "{kind: A, name: <x>}\n", true},
		"Second":     {"the second of two values", "name: <x>\nkind: <y>\n", true},
		"ManyInLine": {"many values in one line", "name: <a><b><c><d>\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			var values []int
			for _, r := range tc.text {
				if r == '<' || r == '>' {
					values = append(values, text.Len())
					continue
				}
				text.WriteRune(r)
			}
			if got := suspicious(text.String(), values); got != tc.want {
				t.Errorf("%s: suspicious is %v", tc.reason, got)
			}
		})
	}
}

// TestAllTexts checks that all texts of a value are looked at, the keys of maps and numbers as well.
func TestAllTexts(t *testing.T) {
	var seen []string
	note := func(text string) bool { seen = append(seen, text); return true }
	if !all([]any{"a", nil, true, int64(5), 1.5, map[string]any{"k": []any{"b"}}}, note) {
		t.Error("all texts hold")
	}
	if diff := cmp.Diff([]string{"a", "5", "1.5", "k", "b"}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, value := range []any{"bad", []any{"a", "bad"}, map[string]any{"bad": nil}, map[string]any{"a": map[string]any{"b": "bad"}}} {
		if all(value, func(text string) bool { return text != "bad" }) {
			t.Errorf("%v holds a bad text", value)
		}
	}
}
