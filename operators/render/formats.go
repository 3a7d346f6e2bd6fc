package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	yamlv2 "go.yaml.in/yaml/v2"

	"kudo.dev/kudo/operators/yamldoc"
)

// formats are the functions that write and read YAML and JSON, with integers exact, and `required`.
var formats = template.FuncMap{
	"toYaml":        toYaml,
	"fromYaml":      fromYaml,
	"fromJson":      fromYaml,
	"mustFromJson":  fromYaml,
	"toPrettyJson":  func(v any) (string, error) { return toJSON(v, "  ", true) },
	"toJson":        func(v any) (string, error) { return toJSON(v, "", true) },
	"toRawJson":     func(v any) (string, error) { return toJSON(v, "", false) },
	"mustToJson":    func(v any) (string, error) { return toJSON(v, "", true) },
	"mustToRawJson": func(v any) (string, error) { return toJSON(v, "", false) },
	"mustToPrettyJson": func(v any) (string, error) {
		return toJSON(v, "  ", true)
	},
	"required": required,
}

// toYaml writes a value as KUDO does, by go-yaml v2: lists are not indented, and the text ends with a line break.
func toYaml(v any) (string, error) {
	check(size(v, 0))
	text, err := yamlv2.Marshal(unsigned(v))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// unsigned makes numbers that go-yaml v2 knows of the integers that are larger than an int64.
func unsigned(v any) any {
	switch v := v.(type) {
	case json.Number:
		var n uint64
		if err := json.Unmarshal([]byte(v), &n); err == nil {
			return n
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = unsigned(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key := range v {
			m[key] = unsigned(v[key])
		}
		return m
	}
	return v
}

// fromYaml reads the first document of a text. JSON is YAML too.
func fromYaml(text string) (any, error) {
	value, _, err := yamldoc.Parse([]byte(text))
	return value, err
}

func toJSON(v any, indent string, escape bool) (string, error) {
	check(size(v, 0))
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(escape)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// required fails with a message of the author if there is no value.
func required(message string, v any) (any, error) {
	if text, isText := v.(string); v == nil || (isText && text == "") {
		if message == "" {
			return nil, errors.New("a required value is empty")
		}
		return nil, fmt.Errorf("%s", message)
	}
	return v, nil
}
