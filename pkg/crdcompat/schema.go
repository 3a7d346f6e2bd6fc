package crdcompat

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

type props = apiextensionsv1.JSONSchemaProps

// schema compares the schemas of one field, and of all below it.
func (c *comparer) schema(path string, old, new *props) {
	c.types(path, old, new)
	c.values(path, old, new)
	c.defaults(path, old, new)
	c.rules(path, old, new)
	c.combinations(path, old, new)
	c.merging(path, old, new)
	c.required(path, old, new)
	c.properties(path, old, new)
	c.additional(path, old, new)
	c.items(path, old, new)
	if a, b := restOfSchema(old), restOfSchema(new); !equality.Semantic.DeepEqual(a, b) {
		c.decide(false, path, RuleUnrecognized, "the rest of the schema", a, b)
	}
}

// restOfSchema is what schema does not look at. A field of a later API stands in it.
func restOfSchema(s *props) props {
	r := *s
	r.Description, r.Title, r.Example, r.ExternalDocs = "", "", nil, nil
	r.Type, r.Format, r.Nullable, r.Default, r.Enum = "", "", false, nil, nil
	r.Maximum, r.ExclusiveMaximum, r.Minimum, r.ExclusiveMinimum, r.MultipleOf = nil, false, nil, false, nil
	r.MaxLength, r.MinLength, r.Pattern = nil, nil, ""
	r.MaxItems, r.MinItems, r.UniqueItems, r.MaxProperties, r.MinProperties = nil, nil, false, nil, nil
	r.Required, r.Properties, r.AllOf, r.OneOf, r.AnyOf, r.Not = nil, nil, nil, nil, nil, nil
	if r.Items != nil && len(r.Items.JSONSchemas) == 0 {
		r.Items = nil
	}
	r.AdditionalProperties, r.XPreserveUnknownFields, r.XEmbeddedResource, r.XIntOrString = nil, nil, false, false
	r.XListType, r.XListMapKeys, r.XMapType, r.XValidations = nil, nil, nil, nil
	return r
}

func (c *comparer) types(path string, old, new *props) {
	if old.Type != new.Type {
		c.decide(false, path, RuleType, "type", old.Type, new.Type)
	}
	if old.XIntOrString != new.XIntOrString {
		c.decide(false, path, RuleIntOrString, "x-kubernetes-int-or-string", old.XIntOrString, new.XIntOrString)
	}
	if old.XEmbeddedResource != new.XEmbeddedResource {
		// To true asks for apiVersion, kind and metadata; to false prunes those that the schema does not name.
		c.decide(false, path, RuleEmbedded, "x-kubernetes-embedded-resource", old.XEmbeddedResource, new.XEmbeddedResource)
	}
	if a, b := keeps(old), keeps(new); a != b {
		c.decide(b, path, RulePruning, "x-kubernetes-preserve-unknown-fields", a, b)
	}
	if old.Format != new.Format {
		wider := new.Format == "" || old.Format == "int32" && new.Format == "int64" || old.Format == "float" && new.Format == "double"
		c.decide(wider, path, RuleFormat, "format", old.Format, new.Format)
	}
	if old.Nullable != new.Nullable {
		// A null that was replaced by the default would stay.
		c.decide(new.Nullable && new.Default == nil, path, RuleNullable, "nullable", old.Nullable, new.Nullable)
	}
}

// keeps reports whether fields that the schema does not name are kept.
func keeps(s *props) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

func (c *comparer) required(path string, old, new *props) {
	for _, name := range missing(new.Required, old.Required) {
		c.breach(join(path, name), RuleRequired, "the field was optional and is required")
	}
	for _, name := range missing(old.Required, new.Required) {
		c.allow(join(path, name), "the field was required and is optional")
	}
}

func (c *comparer) properties(path string, old, new *props) {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was, at := old.Properties[name], join(path, name)
		if is, ok := new.Properties[name]; ok {
			c.schema(at, &was, &is)
			continue
		}
		c.breach(at, RuleFieldRemoved, "the field of type %s was removed", show(was.Type))
	}
	for _, name := range slices.Sorted(maps.Keys(new.Properties)) {
		if _, ok := old.Properties[name]; ok {
			continue
		}
		is, at := new.Properties[name], join(path, name)
		if keeps(old) || old.AdditionalProperties != nil {
			c.breach(at, RuleFieldTyped, "the field could hold anything, as unknown fields were kept, and has a schema (type %s)", show(is.Type))
			continue
		}
		c.addedField(at, &is)
	}
}

// addedField looks for what a new field must not bring.
func (c *comparer) addedField(path string, is *props) {
	before := len(c.breaches)
	c.brings(path, is)
	if len(c.breaches) == before {
		c.allow(path, "the field is new (type %s)", show(is.Type))
	}
}

// brings notes defaults and validation rules of a new schema and of all below it.
func (c *comparer) brings(path string, is *props) {
	c.defaults(path, &props{}, is)
	c.rules(path, &props{}, is)
	for _, name := range slices.Sorted(maps.Keys(is.Properties)) {
		child := is.Properties[name]
		c.brings(join(path, name), &child)
	}
	if is.Items != nil && is.Items.Schema != nil {
		c.brings(path+"[]", is.Items.Schema)
	}
	if is.AdditionalProperties != nil && is.AdditionalProperties.Schema != nil {
		c.brings(path+"[*]", is.AdditionalProperties.Schema)
	}
	for i := range is.AllOf {
		c.brings(path, &is.AllOf[i])
	}
}

func (c *comparer) additional(path string, old, new *props) {
	a, b := old.AdditionalProperties, new.AdditionalProperties
	switch {
	case a == nil && b == nil:
	case a == nil:
		// Without the field, unknown ones are pruned, unless they are kept.
		open := b.Schema != nil || b.Allows
		c.decide(open && !keeps(old) && len(old.Properties) == 0, path, RuleAdditionalProperties, "additionalProperties", nil, describe(b))
		if b.Schema != nil {
			c.brings(path+"[*]", b.Schema)
		}
	case b == nil:
		c.decide(false, path, RuleAdditionalProperties, "additionalProperties", describe(a), nil)
	case a.Schema != nil && b.Schema != nil:
		c.schema(path+"[*]", a.Schema, b.Schema)
	case (a.Schema == nil) != (b.Schema == nil), a.Allows != b.Allows:
		// Even `true` instead of a schema is narrower: the fields of objects within are pruned.
		c.decide(a.Schema == nil && b.Schema == nil && b.Allows, path, RuleAdditionalProperties, "additionalProperties", describe(a), describe(b))
	}
}

func describe(p *apiextensionsv1.JSONSchemaPropsOrBool) any {
	if p.Schema != nil {
		return p.Schema
	}
	return p.Allows
}

func (c *comparer) items(path string, old, new *props) {
	var a, b *props
	if old.Items != nil {
		a = old.Items.Schema
	}
	if new.Items != nil {
		b = new.Items.Schema
	}
	switch {
	case a == nil && b == nil:
	case a == nil || b == nil:
		c.decide(false, path, RuleItems, "the schema of items", present(a != nil), present(b != nil))
	default:
		c.schema(path+"[]", a, b)
	}
}

// join adds a field to a path; one whose name has dots or brackets stands in brackets.
func join(path, name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"`) {
		return path + "[" + quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// missing are those of want that have has not, sorted, each once.
func missing(want, have []string) []string {
	var out []string
	for _, name := range want {
		if !slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
