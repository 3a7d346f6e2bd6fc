package jsonschema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// TestParameterSchema: what an editor needs to check and complete a file with parameters.
func TestParameterSchema(t *testing.T) {
	parameter := func(name string, kind v1beta1.ParameterType, value string, change func(*operators.Parameter)) operators.Parameter {
		yes := true
		p := operators.Parameter{Parameter: v1beta1.Parameter{Name: name, Type: kind, Required: &yes}}
		if value != "" {
			p.Default = &value
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	pkg := &operators.Package{Operator: operators.OperatorFile{Name: "web", OperatorVersion: "1.0.0"}}
	pkg.Params.Parameters = []operators.Parameter{
		parameter("NAME", "", "", func(p *operators.Parameter) {
			p.Description, p.Hint, p.DisplayName = "What it is called.", "short", "Name"
		}),
		parameter("SIZE", v1beta1.IntegerType, "3", func(p *operators.Parameter) { p.Enum = &[]string{"1", "3"} }),
		parameter("LIST", v1beta1.ArrayType, "[a, b]", nil),
		parameter("LINE", v1beta1.StringType, "", func(p *operators.Parameter) { one := int32(1); p.MaxLines = &one }),
		parameter("HOST", v1beta1.StringType, "", func(p *operators.Parameter) { p.Pattern = "[a-z.]+" }),
		parameter("GO", v1beta1.StringType, "", func(p *operators.Parameter) { p.Pattern = "(?i)[a-z.]+" }),
		parameter("TEXT", v1beta1.StringType, "5.70", func(p *operators.Parameter) { p.Sensitive = true }),
	}
	text, err := json.Marshal(OfParameters(pkg))
	if err != nil {
		t.Fatal(err)
	}
	const wanted = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Parameters of operator web 1.0.0",
		"type": "object", "additionalProperties": false, "required": ["NAME", "LINE", "HOST", "GO"], "properties": {
		"NAME": {"type": ["string", "number", "boolean"], "title": "Name", "description": "What it is called. Hint: short"},
		"SIZE": {"type": ["integer", "string"], "default": 3, "enum": ["1", 1, "3", 3]},
		"LIST": {"type": ["array", "string"], "default": ["a", "b"]},
		"LINE": {"type": ["string", "number", "boolean"], "pattern": "^[^\\r\\n\\u0085\\u2028\\u2029]*(?:\\r\\n|[\\r\\n\\u0085\\u2028\\u2029])?$"},
		"HOST": {"type": ["string", "number", "boolean"], "pattern": "^(?:[a-z.]+)?$"},
		"GO": {"type": ["string", "number", "boolean"]},
		"TEXT": {"type": ["string", "number", "boolean"], "default": "5.70", "writeOnly": true}}}`
	if diff := cmp.Diff(decode(t, wanted), decode(t, string(text))); diff != "" {
		t.Error(diff)
	}
}

// TestParameterTypes checks the schema of one value: it may be given as a value of its type, and as text.
func TestParameterTypes(t *testing.T) {
	set := func(text string) *string { return &text }
	yes, no := true, false
	for name, tc := range map[string]struct {
		reason    string
		parameter operators.Parameter
		want      string
	}{
		"Number": {"numbers", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.NumberType, Default: set("1.5")}},
			`{"type": ["number", "string"], "default": 1.5}`},
		"Boolean": {"booleans in the words of YAML", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.BooleanType, Default: set("yes")}},
			`{"type": ["boolean", "string"], "default": true}`},
		"Map": {"maps are objects", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.MapType, Default: set("{a: 1}")}},
			`{"type": ["object", "string"], "default": {"a": 1}}`},
		"Unreadable": {"a default that is no YAML stays text", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: set("[a")}},
			`{"type": ["array", "string"], "default": "[a"}`},
		"Null": {"a default that means nothing stays text", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.IntegerType, Default: set("")}},
			`{"type": ["integer", "string"], "default": ""}`},
		"Infinite": {"JSON has no infinite numbers", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: set("[.inf]")}},
			`{"type": ["array", "string"], "default": "[.inf]"}`},
		"EnumOfArrays": {"arrays are listed as text", operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.ArrayType, Enum: &[]string{"[a]", "[b]"}}},
			`{"type": ["array", "string"], "enum": ["[a]", "[b]"]}`},
		"EnumOfText": {"text that looks like a number is text", operators.Parameter{Parameter: v1beta1.Parameter{Enum: &[]string{"1"}}},
			`{"type": ["string", "number", "boolean"], "enum": ["1"]}`},
		"EmptyEnum": {"an enum without values allows none", operators.Parameter{Parameter: v1beta1.Parameter{Enum: &[]string{}}},
			`{"type": ["string", "number", "boolean"], "enum": []}`},
		"Immutable": {"a value that is fixed", operators.Parameter{Parameter: v1beta1.Parameter{Immutable: &yes}},
			`{"type": ["string", "number", "boolean"], "$comment": "immutable: fixed when the Instance is created"}`},
		"Mutable": {"and one that is not", operators.Parameter{Parameter: v1beta1.Parameter{Immutable: &no}},
			`{"type": ["string", "number", "boolean"]}`},
		"Hint": {"a hint without a description", operators.Parameter{Hint: "short"},
			`{"type": ["string", "number", "boolean"], "description": "Hint: short"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(ofParameter(tc.parameter))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, tc.want), decode(t, string(got))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestIntegersAreExact checks that integers keep their digits.
func TestIntegersAreExact(t *testing.T) {
	for _, digits := range []string{"9007199254740993", "-9223372036854775808", "18446744073709551615", "123456789012345678901234567890"} {
		p := operators.Parameter{Parameter: v1beta1.Parameter{Type: v1beta1.IntegerType, Default: &digits, Enum: &[]string{digits}}}
		got, err := json.Marshal(ofParameter(p))
		want := `{"default":` + digits + `,"enum":["` + digits + `",` + digits + `],"type":["integer","string"]}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// TestRequired checks that the schema requires what has no default, and nothing else.
func TestRequired(t *testing.T) {
	yes, no, value := true, false, "x"
	pkg := &operators.Package{}
	for name, p := range map[string]v1beta1.Parameter{
		"DEFAULT": {Required: &yes, Default: &value}, "OPTIONAL": {Required: &no}, "NEITHER": {Required: &no, Default: &value},
	} {
		p.Name = name
		pkg.Params.Parameters = append(pkg.Params.Parameters, operators.Parameter{Parameter: p})
	}
	if got, exists := OfParameters(pkg)["required"]; exists {
		t.Errorf("no parameter is required: %v", got)
	}
	pkg.Params.Parameters = append(pkg.Params.Parameters, operators.Parameter{Parameter: v1beta1.Parameter{Name: "OPEN", Required: &yes}})
	if diff := cmp.Diff([]string{"OPEN"}, OfParameters(pkg)["required"]); diff != "" {
		t.Error(diff)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
