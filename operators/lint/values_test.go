package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQuotes is T23: a parameter of type string that is printed without quotes, outside of a block scalar, is a warning.
func TestQuotes(t *testing.T) {
	with := func(parameter, template string) files {
		return files{"params.yaml": "parameters: [{name: A, " + parameter + "}]\n", "templates/a.yaml": plainObject + template}
	}
	warning := func(line string) []string {
		return []string{"W templates/a.yaml:" + line + `: parameter "A" is printed without quotes: write {{ .Params.A | quote }}, or a value that is more than one word of YAML is refused`}
	}
	run(t, map[string]lintCase{
		"Bare":    {"without quotes", with("default: x", "data:\n  x: y\n  a: {{ .Params.A }}\n"), warning("6")},
		"Part":    {"as a part of a value", with("default: x", "data:\n  a: b-{{ .Params.A }}\n"), warning("5")},
		"Flow":    {"in a list", with("default: x", "data: {a: [{{ .Params.A }}]}\n"), warning("4")},
		"Branch":  {"in a branch that the default does not take", with("required: false", "data:\n  {{- if .Params.A }}\n  a: {{ .Params.A }}\n  {{- end }}\n"), warning("6")},
		"Quoted":  {"with quote", with("default: x", "data:\n  a: {{ .Params.A | quote }}\n"), nil},
		"Quotes":  {"between quotes", with("default: x", "data:\n  a: \"{{ .Params.A }}\"\n"), nil},
		"Block":   {"in a block scalar", with("default: x", "data:\n  a: |\n    {{ .Params.A }}\n"), nil},
		"Yaml":    {"by toYaml", with("default: x", "data:\n  a: {{ toYaml .Params.A }}\n"), nil},
		"Number":  {"made a number", with("default: x", "data:\n  a: {{ int .Params.A }}\n"), nil},
		"Integer": {"values of other types are checked", with("default: 3, type: integer", "data:\n  a: {{ .Params.A }}\n"), nil},
		"Enum":    {"as are those of an enum", with("default: x, enum: [x, y]", "data:\n  a: {{ .Params.A }}\n"), nil},
		"Untyped": {"a number without a type would not be one between quotes", with("default: 3", "data:\n  a: {{ .Params.A }}\n"), nil},
		"Default": {"T20: a default that is structure is an error", with(`default: "x: y"`, "data:\n  {{ .Params.A }}\n"),
			[]string{"E templates/a.yaml: rendering template \"a.yaml\" with the defaults failed: parameter A changes the structure of template a.yaml (data is a map instead of one value); a value must stay one value; quote it in the template ({{ .Params.A | quote }}), or declare the parameter as map or array and write it with toYaml"}},
		"Kind": {"T22: a kind of a value is an error", files{"params.yaml": "parameters: [{name: A, default: Secret}]\n", "templates/a.yaml": strings.Replace(plainObject, "ConfigMap", "{{ .Params.A | quote }}", 1)},
			[]string{"E templates/a.yaml: rendering template \"a.yaml\" with the defaults failed: parameter A makes kind of an object of template a.yaml; write apiVersion and kind in the template, since only install plans may take them from a value"}},
	})
}

// TestChoices is T23: what decides what runs, or what it reads, is listed.
func TestChoices(t *testing.T) {
	pkg := files{"params.yaml": "parameters: [{name: A, default: x}, {name: L, type: array}, {name: M, type: map}]\n",
		"templates/a.yaml": `apiVersion: v1
kind: Pod
metadata: {name: "{{ .Params.A }}"}
spec:
  containers:
  {{- range .Params.L }}
  - image: {{ . | quote }}
  {{- end }}
  - image: nginx
    env: [{name: X, value: {{ .Params.A | quote }}}]
    resources: {{ toJson .Params.M }}
  {{- with .Params.M }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
`}.read(t)
	var got []string
	for _, c := range Choices(pkg) {
		got = append(got, c.Parameter+" "+c.Kind+" "+c.Field)
	}
	if diff := cmp.Diff([]string{"L Pod spec.containers[0].image", "M Pod spec.*"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
