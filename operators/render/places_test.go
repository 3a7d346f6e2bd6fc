package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlaces checks where values stand: parameters and functions of the action, path in the object, and whether they are bare.
func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Plain":  {"a value without quotes", "kind: A\na: {{ .Params.V }}\n", []string{"t.yaml:2 A a bare [V] []"}},
		"Double": {"between quotes", "kind: A\na: \"{{ .Params.V }}\"\n", []string{"t.yaml:2 A a [V] []"}},
		"Single": {"between single quotes", "a: '{{ .Params.V }}'\n", []string{"t.yaml:1  a [V] []"}},
		"Block":  {"in a block", "a: |\n  {{ .Params.V }}\n", []string{"t.yaml:2  a [V] []"}},
		"Functions": {"functions in the order of the action", "a: {{ .Params.V | default \"x\" | upper }}\n",
			[]string{"t.yaml:1  a bare [V] [default upper]"}},
		"Nested": {"functions in parentheses", "a: {{ printf \"%s\" (lower .Params.V) }}\n",
			[]string{"t.yaml:1  a bare [V] [printf lower]"}},
		"Two": {"two parameters in one action", "a: {{ printf \"%s%s\" .Params.V .Params.W }}\n",
			[]string{"t.yaml:1  a bare [V W] [printf]"}},
		"TwoPlaces": {"two actions in one value", "a: {{ .Params.V }}-{{ .Params.W }}\n",
			[]string{"t.yaml:1  a bare [V] []", "t.yaml:1  a bare [W] []"}},
		"Other": {"a variable that is no parameter", "a: {{ .Name }}\n", []string{"t.yaml:1  a bare [] []"}},
		"List":  {"items have an index", "a:\n- b\n- c: {{ .Params.V }}\n", []string{"t.yaml:3  a.1.c bare [V] []"}},
		"Key": {"a key that a value makes", "a:\n  {{ .Params.V }}: {{ .Params.W }}\n",
			[]string{"t.yaml:2  a.* bare [V] []", "t.yaml:2  a.* bare [W] []"}},
		"Documents": {"each document has its kind", "kind: A\n---\nkind: B\nb: {{ .Params.V }}\n---\nc: {{ .Params.W }}\n",
			[]string{"t.yaml:4 B b bare [V] []", "t.yaml:6  c bare [W] []"}},
		"Kind": {"a kind that a value makes is not known", "kind: {{ .Params.V }}\n", []string{"t.yaml:1  kind bare [V] []"}},
		"Range": {"dot of a loop comes from its list", "a:\n{{ range .Params.L }}- {{ . }}\n{{ end }}",
			[]string{"t.yaml:2  a.0 bare [L] []", "t.yaml:2  a.1 bare [L] []"}},
		"RangeVar": {"so do its variables", "a:\n{{ range $i, $v := .Params.L }}- {{ $v }}\n{{ end }}",
			[]string{"t.yaml:2  a.0 bare [L] []", "t.yaml:2  a.1 bare [L] []"}},
		"With":     {"dot of with", "a: {{ with .Params.V }}{{ . }}{{ end }}\n", []string{"t.yaml:1  a bare [V] []"}},
		"WithElse": {"not in else", "a: {{ with .Params.EMPTY }}{{ . }}{{ else }}{{ .Name }}{{ end }}\n", []string{"t.yaml:1  a bare [] []"}},
		"Variable": {"a variable comes from what it is set to", "{{ $x := .Params.V }}{{ $x = .Params.W }}a: {{ $x }}\n",
			[]string{"t.yaml:1  a bare [V W] []"}},
		"Root": {"parameters by the root", "{{ range .Params.L }}{{ end }}a: {{ $.Params.V }}\n", []string{"t.yaml:1  a bare [V] []"}},
		"ToYaml": {"what toYaml writes has a place for each scalar", "a: {{ toYaml .Params.M | nindent 2 }}\n",
			[]string{"t.yaml:1  a.* bare [M] [toYaml]", "t.yaml:1  a.* bare [M] [toYaml]"}},
		"Include": {"an include has the places of its actions", "a: {{ include \"h\" . }}\n{{ define \"h\" }}\n{{- .Params.V }}{{ end }}",
			[]string{"t.yaml:3  a bare [V] []"}},
		"Constant":  {"what stands in the template has none", "a: {{ print \"x\" }}{{ 1 }}{{ ternary \"a\" \"b\" true }}\n", nil},
		"Condition": {"a condition prints nothing", "{{ if .Params.V }}a: b{{ end }}\n", nil},
		"Sum": {"a sum of an include is one value", "a: {{ include \"h\" . | sha256sum }}\n{{ define \"h\" }}{{ .Params.V }}{{ end }}",
			[]string{"t.yaml:1  a bare [] [include sha256sum]"}},
		"Trimmed": {"trimming arranges a value, and is no function of it", "a: {{ .Params.V | trim | trimSuffix \"x\" }}\n",
			[]string{"t.yaml:1  a bare [V] []"}},
		"Chain":     {"a field of a value in parentheses", "a: {{ (index .Params.LM 0).k }}\n", []string{"t.yaml:1  a bare [LM] [index]"}},
		"Fails":     {"a template that fails has none", "a: {{ .Params.V }}{{ fail \"x\" }}\n", nil},
		"Malformed": {"nor has what is no YAML", "a: [{{ .Params.V }}\n", nil},
		"Absent":    {"an empty value has no place", "a: {{ .Params.EMPTY }}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := Variables{Name: "n",
				Params: map[string]any{"V": "v", "W": "w", "EMPTY": "", "L": []any{"a", "b"}, "M": map[string]any{"k": "v"},
					"LM": []any{map[string]any{"k": "v"}}}}
			var got []string
			for _, p := range New(map[string]string{"t.yaml": tc.text}).Places("t.yaml", v) {
				bare := ""
				if p.Bare {
					bare = " bare"
				}
				got = append(got,
					fmt.Sprintf("%s:%d %s %s%s %v %v", p.Template, p.Line, p.Kind, strings.Join(p.Path, "."), bare, p.Parameters, p.Functions))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	if places := New(nil).Places("t.yaml", Variables{}); places != nil {
		t.Errorf("no template: %v", places)
	}
}
