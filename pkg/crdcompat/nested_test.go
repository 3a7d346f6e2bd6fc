package crdcompat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// changed are the rules and paths of the breaches, and the paths of the safe changes, of a field f.
func changed(t *testing.T, old, new string) []string {
	t.Helper()
	breaches, safe := Diff(parse(t, definition(old)), parse(t, definition(new)))
	out := []string{}
	for _, b := range breaches {
		out = append(out, fmt.Sprintf("%s %s", b.Rule, b.Path))
	}
	for _, c := range safe {
		out = append(out, "safe "+c.Path)
	}
	return out
}

// TestNewFieldBrings checks that a default or a rule below a new field is found, wherever it stands: it changes objects that the
// old schema allows.
func TestNewFieldBrings(t *testing.T) {
	const rule = "x-kubernetes-validations: [{rule: 'self > 0'}]"
	for _, tc := range []struct {
		reason, field string
		want          []string
	}{
		{"nothing", "{type: string}", []string{"safe spec.f.a"}},
		{"a default of its own", "{type: string, default: x}", []string{"Default spec.f.a"}},
		{"a default in a field", "{type: object, properties: {b: {type: string, default: x}, c: {type: string}}}", []string{"Default spec.f.a.b"}},
		{"a default in a list", "{type: array, items: {type: object, properties: {b: {type: string, default: x}}}}", []string{"Default spec.f.a[].b"}},
		{"a rule of the items of a list", "{type: array, items: {type: integer, " + rule + "}}", []string{"ValidationRule spec.f.a[]"}},
		{"a default in a map", "{type: object, additionalProperties: {type: object, properties: {b: {type: string, default: x}}}}", []string{"Default spec.f.a[*].b"}},
		{"a map of anything", "{type: object, additionalProperties: true}", []string{"safe spec.f.a"}},
		{"a rule that all must obey", "{type: integer, allOf: [{minimum: 1}, {" + rule + "}]}", []string{"ValidationRule spec.f.a"}},
		{"lists in maps in lists", "{type: array, items: {type: object, additionalProperties: {type: array, items: {type: string, default: x}}}}", []string{"Default spec.f.a[][*][]"}},
		{"several, in the order of paths", "{type: object, properties: {c: {type: string, default: x}, b: {type: integer, " + rule + "}}}", []string{"ValidationRule spec.f.a.b", "Default spec.f.a.c"}},
	} {
		got := changed(t, "{type: object}", "{type: object, properties: {a: "+tc.field+"}}")
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestTextsInCombinations checks that texts for people count nowhere below a choice, and that all else does.
func TestTextsInCombinations(t *testing.T) {
	for reason, at := range map[string]string{
		"the choice":             "{%s}",
		"a field":                "{properties: {a: {type: string%s}}}",
		"the items of a list":    "{items: {type: string%s}}",
		"the values of a map":    "{additionalProperties: {type: string%s}}",
		"what must not be":       "{not: {type: string%s}}",
		"a choice in a choice":   "{oneOf: [{type: string%s}]}",
		"all of a choice":        "{allOf: [{type: string%s}]}",
		"any of a choice":        "{anyOf: [{type: string%s}]}",
		"a list in a map":        "{additionalProperties: {items: {type: string%s}}}",
		"a field of what is not": "{not: {properties: {a: {type: string%s}}}}",
	} {
		for _, combination := range []string{"anyOf: [%s]", "not: %s"} {
			schema := func(more string) string {
				if strings.HasPrefix(at, "{%s") {
					more = strings.TrimPrefix(more, ", ")
				}
				return "{type: object, " + fmt.Sprintf(combination, fmt.Sprintf(at, more)) + "}"
			}
			texts := ", description: d, title: t, example: e, externalDocs: {url: u}"
			if got := changed(t, schema(", description: old"), schema(texts)); len(got) > 0 {
				t.Errorf("%s below %s: texts count: %v", reason, combination, got)
			}
			if got := changed(t, schema(""), schema(", maxLength: 3")); !cmp.Equal([]string{"Combination spec.f"}, got) {
				t.Errorf("%s below %s: a bound does not count: %v", reason, combination, got)
			}
		}
	}
}

// TestCompareLeavesDefinitions checks that a comparison changes neither definition, though it leaves texts and defaults out.
func TestCompareLeavesDefinitions(t *testing.T) {
	const field = "{type: object, description: d, anyOf: [{properties: {a: {description: d, title: t}}}], not: {items: {description: d}}}"
	old, new := parse(t, definition(field)), parse(t, definition(strings.Replace(field, "title: t", "maxLength: 1", 1)))
	before, after := old.DeepCopy(), new.DeepCopy()
	Diff(old, new)
	if diff := cmp.Diff(before, old) + cmp.Diff(after, new); diff != "" {
		t.Errorf("a definition was changed:\n%s", diff)
	}
}

// TestUnrecognized checks that a change that no rule knows is a breach at its path, whether it comes or goes, and is safe nowhere.
func TestUnrecognized(t *testing.T) {
	const plain = "{type: object, properties: {a: {type: array, items: {type: string}}}}"
	for reason, tc := range map[string]struct{ schema, path string }{
		"an id":                  {"{type: object, id: x, properties: {a: {type: array, items: {type: string}}}}", "spec.f"},
		"a reference":            {"{type: object, $ref: x, properties: {a: {type: array, items: {type: string}}}}", "spec.f"},
		"fields by a pattern":    {"{type: object, patternProperties: {b: {type: string}}, properties: {a: {type: array, items: {type: string}}}}", "spec.f"},
		"dependencies of fields": {"{type: object, dependencies: {a: [b]}, properties: {a: {type: array, items: {type: string}}}}", "spec.f"},
		"definitions":            {"{type: object, definitions: {b: {type: string}}, properties: {a: {type: array, items: {type: string}}}}", "spec.f"},
		"further items":          {"{type: object, properties: {a: {type: array, additionalItems: true, items: {type: string}}}}", "spec.f.a"},
		"an id of the items":     {"{type: object, properties: {a: {type: array, items: {type: string, id: x}}}}", "spec.f.a[]"},
	} {
		want := []string{"Unrecognized " + tc.path}
		for _, pair := range [][2]string{{plain, tc.schema}, {tc.schema, plain}} {
			if diff := cmp.Diff(want, changed(t, pair[0], pair[1])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", reason, diff)
			}
		}
		if got := changed(t, tc.schema, tc.schema); len(got) > 0 {
			t.Errorf("%s: an unchanged schema has changes: %v", reason, got)
		}
	}
}

// TestCanonical checks which texts of JSON are one value. A text that is no JSON equals itself only.
func TestCanonical(t *testing.T) {
	for _, tc := range []struct {
		reason, a, b string
		same         bool
	}{
		{"white space", `{"a": [1, 2]}`, `{"a":[1,2]}`, true},
		{"the order of fields", `{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"the order of entries", `[1,2]`, `[2,1]`, false},
		{"an escape", `"\u0061"`, `"a"`, true},
		{"a number and its text", `1`, `"1"`, false},
		{"null and none", `null`, `{}`, false},
		{"integers that a float does not hold", `9007199254740993`, `9007199254740992`, false},
		{"no JSON", `{`, `{`, true},
		{"different texts that are no JSON", `{`, `{ `, false},
	} {
		a, b := canonical(apiextensionsv1.JSON{Raw: []byte(tc.a)}), canonical(apiextensionsv1.JSON{Raw: []byte(tc.b)})
		if (a == b) != tc.same {
			t.Errorf("%s: %s and %s", tc.reason, a, b)
		}
	}
}
