package crdcompat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// drawSchema makes a schema of at most some levels, with limits that can be widened.
func drawSchema(t *rapid.T, depth int) props {
	kinds := []string{"string", "integer", "object", "array", "map"}
	if depth == 0 {
		kinds = kinds[:2]
	}
	number := func(label string) *int64 { n := rapid.Int64Range(2, 9).Draw(t, label); return &n }
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "integer":
		low, high := float64(*number("min")), float64(*number("max"))
		return props{Type: "integer", Minimum: &low, Maximum: &high, Nullable: rapid.Bool().Draw(t, "nullable")}
	case "object":
		s := props{Type: "object", Properties: map[string]props{}, Required: []string{"a"}}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c.d"}), rapid.ID).Draw(t, "names") {
			s.Properties[name] = drawSchema(t, depth-1)
		}
		return s
	case "array":
		items := drawSchema(t, depth-1)
		return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}, MaxItems: number("maxItems")}
	case "map":
		value := drawSchema(t, depth-1)
		return props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}, MinProperties: number("minProperties")}
	}
	return props{Type: "string", MaxLength: number("maxLength"), MinLength: number("minLength"), Enum: []apiextensionsv1.JSON{{Raw: []byte(`"x"`)}}}
}

// widen changes one thing of a schema, or of one below it, so that it takes more.
func widen(t *rapid.T, s *props) {
	var ways []func()
	add := func(possible bool, way func()) {
		if possible {
			ways = append(ways, way)
		}
	}
	add(s.Maximum != nil, func() { *s.Maximum++ })
	add(s.Minimum != nil, func() { *s.Minimum-- })
	add(s.MaxLength != nil, func() { *s.MaxLength++ })
	add(s.MinLength != nil, func() { *s.MinLength-- })
	add(s.MaxItems != nil, func() { s.MaxItems = nil })
	add(s.MinProperties != nil, func() { *s.MinProperties-- })
	add(!s.Nullable, func() { s.Nullable = true })
	add(len(s.Enum) > 0, func() { s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"y"`)}) })
	add(len(s.Required) > 0, func() { s.Required = nil })
	add(s.Properties != nil, func() { s.Properties["new"] = props{Type: "string"} })
	add(s.Items != nil, func() { widen(t, s.Items.Schema) })
	add(s.AdditionalProperties != nil, func() { widen(t, s.AdditionalProperties.Schema) })
	for _, name := range []string{"a", "b", "c.d"} {
		child, ok := s.Properties[name]
		add(ok, func() { widen(t, &child); s.Properties[name] = child })
	}
	ways[rapid.IntRange(0, len(ways)-1).Draw(t, "way")]()
}

func drawn(schema props) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}}
	return crd
}

func TestWidening(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := drawn(drawSchema(t, 3))
		kept := old.DeepCopy()
		if b, safe := Diff(old, old.DeepCopy()); !b.Safe() || len(safe) > 0 {
			t.Fatalf("nothing changes:\n%s%v", b, safe)
		}
		wide := old.DeepCopy()
		widen(t, wide.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if b, safe := Diff(old, wide); !b.Safe() || len(safe) != 1 {
			t.Fatalf("one widening is one safe change:\n%s%v", b, safe)
		}
		if b, safe := Diff(wide, old); len(b) != 1 || len(safe) > 0 {
			t.Fatalf("and one breach the other way:\n%s%v", b, safe)
		}
		if diff := cmp.Diff(kept, old); diff != "" {
			t.Fatalf("definitions are not changed: %s", diff)
		}
	})
}

// FuzzCompare must not panic, whatever the definitions, nor find a breach where nothing changes.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(twoVersions), []byte(twoVersions+webhook))
	f.Add([]byte(definition("{type: object, required: [a], properties: {a: {type: string, default: x}}}")), []byte(definition("{type: object, additionalProperties: {type: string}, not: {enum: [1]}}")))
	f.Add([]byte(definition("{type: array, items: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}")), []byte(definition("{x-kubernetes-validations: [{rule: 'true'}], multipleOf: 0}")))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		old, new := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if yaml.Unmarshal(a, old) != nil || yaml.Unmarshal(b, new) != nil {
			return
		}
		first := Compare(old, new)
		if again := Compare(old, new); first.String() != again.String() {
			t.Errorf("the order differs:\n%s\n%s", first, again)
		}
		for _, same := range []*apiextensionsv1.CustomResourceDefinition{old, new} {
			if twins(same) {
				continue // names that come twice are refused by the API server
			}
			if b := Compare(same, same.DeepCopy()); !b.Safe() {
				t.Errorf("nothing changes:\n%s", b)
			}
		}
		for i := range new.Spec.Versions {
			_, _ = newChecker(new, &new.Spec.Versions[i], false)
		}
	})
}

// twins reports whether a version comes twice.
func twins(crd *apiextensionsv1.CustomResourceDefinition) bool {
	seen := map[string]bool{}
	for _, v := range crd.Spec.Versions {
		if seen[v.Name] {
			return true
		}
		seen[v.Name] = true
	}
	return false
}
