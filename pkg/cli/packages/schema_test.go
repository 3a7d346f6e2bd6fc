package packages

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
	text, err := json.Marshal(parameterSchema(pkg))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	const wanted = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Parameters of operator web 1.0.0",
		"type": "object", "additionalProperties": false, "required": ["NAME", "LINE", "HOST", "GO"], "properties": {
		"NAME": {"type": ["string", "number", "boolean"], "title": "Name", "description": "What it is called. Hint: short"},
		"SIZE": {"type": ["integer", "string"], "default": 3, "enum": ["1", 1, "3", 3]},
		"LIST": {"type": ["array", "string"], "default": ["a", "b"]},
		"LINE": {"type": ["string", "number", "boolean"], "pattern": "^[^\\r\\n\\u0085\\u2028\\u2029]*(?:\\r\\n|[\\r\\n\\u0085\\u2028\\u2029])?$"},
		"HOST": {"type": ["string", "number", "boolean"], "pattern": "^(?:[a-z.]+)?$"},
		"GO": {"type": ["string", "number", "boolean"]},
		"TEXT": {"type": ["string", "number", "boolean"], "default": "5.70", "writeOnly": true}}}`
	for from, to := range map[string]*any{string(text): &got, wanted: &want} {
		if err := json.Unmarshal([]byte(from), to); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
