// Package jsonschema describes the parameters of a package for editors.
package jsonschema

import (
	"encoding/json"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/yamldoc"
)

// OfParameters returns the JSON Schema (draft 2020-12) of a file with parameters, as -P of the command line takes it: editors
// complete and check such a file by it.
func OfParameters(pkg *operators.Package) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, p := range pkg.Params.Parameters {
		properties[p.Name] = ofParameter(p)
		if p.IsRequired() && !p.HasDefault() {
			required = append(required, p.Name)
		}
	}
	out := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Parameters of operator " + pkg.Operator.Name + " " + pkg.Operator.OperatorVersion,
		"type":    "object", "properties": properties, "additionalProperties": false,
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// ofParameter returns the schema of one value. Values may be given as text too, as in an Instance.
func ofParameter(p operators.Parameter) map[string]any {
	types := map[v1beta1.ParameterType][]string{
		v1beta1.IntegerType: {"integer", "string"}, v1beta1.NumberType: {"number", "string"}, v1beta1.BooleanType: {"boolean", "string"},
		v1beta1.ArrayType: {"array", "string"}, v1beta1.MapType: {"object", "string"},
	}
	out := map[string]any{"type": []string{"string", "number", "boolean"}}
	if t, known := types[p.Type]; known {
		out["type"] = t
	}
	if p.DisplayName != "" {
		out["title"] = p.DisplayName
	}
	if text := describe(p); text != "" {
		out["description"] = text
	}
	if p.Default != nil {
		out["default"] = parseTyped(p.Type, *p.Default)
	}
	if p.Enum != nil {
		values := []any{}
		for _, v := range *p.Enum {
			values = append(values, v)
			if t := parseTyped(p.Type, v); p.Type != v1beta1.ArrayType && p.Type != v1beta1.MapType && t != any(v) {
				values = append(values, t)
			}
		}
		out["enum"] = values
	}
	if pattern := params.SchemaPattern(p.Parameter); pattern != "" {
		out["pattern"] = pattern
	}
	if p.Sensitive {
		out["writeOnly"] = true
	}
	if p.IsImmutable() {
		out["$comment"] = "immutable: fixed when the Instance is created"
	}
	return out
}

// describe returns the texts for people.
func describe(p operators.Parameter) string {
	text := p.Description
	if p.Hint != "" {
		if text != "" {
			text += " "
		}
		text += "Hint: " + p.Hint
	}
	return text
}

// parseTyped reads a text as a value of the type; what cannot be read stays text.
func parseTyped(kind v1beta1.ParameterType, text string) any {
	if kind == "" || kind == v1beta1.StringType {
		return text
	}
	value, _, err := yamldoc.Parse([]byte(text))
	if err != nil || value == nil {
		return text
	}
	if _, err := json.Marshal(value); err != nil { // an infinite number
		return text
	}
	return value
}
