package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"

// contained renders a template whose parameter V has a value, and W another one.
func contained(text string, value any, options ...Option) (Result, error) {
	set := New(map[string]string{"t.yaml": text, "_h.yaml": helpers})
	return set.Objects("t.yaml", Variables{Name: "n", Namespace: "ns", Params: map[string]any{"V": value, "W": "two words", "ON": "true",
		"LIST": []any{"a", "b: c"}, "MAP": map[string]any{"k": "v: w", "l": []any{"x"}}}}, options...)
}

const helpers = `{{- define "labels" -}}
app: x
value: {{ .Params.V }}
{{- end -}}
{{- define "config" -}}
a={{ .Params.V }}
b=2
{{- end -}}`

// hostile are values that are more than a value where they stand without quotes.
var hostile = map[string]string{
	"Documents":      "50m\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: evil\n---\n",
	"Map":            "\n    a: b",
	"Key":            "a\n  evil: b",
	"RootKey":        "a\nevil: b",
	"KindTwice":      "a\nkind: ClusterRole",
	"List":           "\n  - a\n  - b",
	"FlowMap":        "{a: b}",
	"FlowList":       "[a, b]",
	"FlowKey":        "a, evil: b",
	"FlowEnd":        "a}\nevil: {b: c",
	"Comment":        "a # b",
	"OnlyComment":    "# b",
	"CommentLine":    "a #\n  evil: b",
	"Alias":          "*x",
	"Anchor":         "&x a",
	"Tag":            "!!binary aGk=",
	"LocalTag":       "!x a",
	"DoubleQuote":    "a\" , evil: \"b",
	"SingleQuote":    "a' , evil: 'b",
	"QuoteLine":      "a\"\n  evil: \"b",
	"Backslash":      "a\\",
	"OpenQuote":      "\"a",
	"OpenSingle":     "'a",
	"Comma":          "a, b",
	"Colon":          "a: b",
	"ColonEnd":       "a:",
	"CR":             "a\r  evil: b",
	"CRDocument":     "a\r---\rkind: evil",
	"NEL":            "a\u0085  evil: b",
	"LineSeparator":  "a\u2028  evil: b",
	"Paragraph":      "a\u2029  evil: b",
	"Tab":            "a\n\tevil: b",
	"Merge":          "<<",
	"MergeLine":      "a\n  <<: {b: c}",
	"Literal":        "|",
	"Folded":         ">-",
	"Question":       "? a",
	"Dash":           "- a",
	"Dashes":         "---",
	"DocumentEnd":    "a\n...\nkind: evil",
	"Directive":      "a\n%TAG ! x",
	"LineBreak":      "\n",
	"LineBreakSpace": "\n  ",
	"Spaces":         "   ",
	"ByteOrder":      "\ufeff",
	"At":             "@a",
	"Percent":        "%a",
	"Backtick":       "`a",
	"Template":       "{{ .Name }}",
	"MultiLine":      "a\nb\nc\n",
	"LeadingBreak":   "\na\n",
}

// shapes are templates that print a value in all kinds of places.
var shapes = map[string]string{
	"Plain":       head + "data:\n  a: {{ .Params.V }}\n  b: c\n",
	"PlainTail":   head + "data:\n  a: x{{ .Params.V }}:latest\n  b: c\n",
	"Last":        head + "data:\n  a: {{ .Params.V }}",
	"Double":      head + "data:\n  a: \"{{ .Params.V }}\"\n  b: c\n",
	"Single":      head + "data:\n  a: '{{ .Params.V }}'\n  b: c\n",
	"FlowMap":     head + "data: {a: {{ .Params.V }}, b: c}\n",
	"FlowQuoted":  head + "data: {a: \"{{ .Params.V }}\", b: c}\n",
	"FlowList":    head + "list: [{{ .Params.V }}, c]\n",
	"Item":        head + "list:\n- {{ .Params.V }}\n- c\n",
	"ItemMap":     head + "list:\n- a: {{ .Params.V }}\n  b: c\n",
	"Literal":     head + "data:\n  a: |\n    x {{ .Params.V }} y: z\n    b\n  c: d\n",
	"Indented":    head + "data:\n  a: |\n{{ .Params.V | indent 4 }}\n  c: d\n",
	"Nindented":   head + "data:\n  a: |-\n    {{- .Params.V | nindent 4 }}\n  c: d\n",
	"Quoted":      head + "data:\n  a: {{ .Params.V | quote }}\n  b: c\n",
	"ToYaml":      head + "data:\n  a: {{ toYaml .Params.V | nindent 4 }}\n  b: c\n",
	"ToJson":      head + "data:\n  a: {{ toJson .Params.V }}\n  b: c\n",
	"JsonQuoted":  head + "data: {a: '{{ dict \"k\" .Params.V | toJson }}', b: c}\n",
	"YamlQuoted":  head + "data: {a: \"{{ toYaml .Params.V | trim }}\", b: c}\n",
	"Key":         head + "data:\n  {{ .Params.V }}: x\n  b: c\n",
	"KeyPart":     head + "data:\n  x{{ .Params.V }}: x\n  b: c\n",
	"Prefix":      head + "data:\n  b: c\n{{ .Params.V }}tail: x\n",
	"Include":     head + "  labels:\n    {{- include \"labels\" . | nindent 4 }}\ndata:\n  b: c\n",
	"IncludeTrim": head + "  labels:\n{{ include \"labels\" . | trim | indent 4 }}\ndata:\n  b: c\n",
	"Variable":    head + "  labels:\n{{ $l := include \"labels\" . }}{{ $l | indent 4 }}\ndata:\n  b: c\n",
	"Template":    head + "data:\n  {{ template \"labels\" . }}\n",
	"Checksum":    head + "  annotations:\n    sum: {{ include \"config\" . | sha256sum }}\ndata:\n  a: {{ .Params.V | quote }}\n  b: c\n",
	"Range":       head + "list:\n{{- range list .Params.V \"x\" }}\n- {{ . }}\n{{- end }}\n",
	"Printf":      head + "data:\n  a: {{ printf \"%s-%s\" .Params.V .Params.W }}\n  b: c\n",
	"Comment":     "# {{ .Params.V }}\n" + head + "data: {b: c}\n",
	"Top":         "{{ .Params.V }}: x\n" + head + "data: {b: c}\n",
	"Decoded":     head + "data:\n  a: {{ .Params.V | b64enc | b64dec }}\n  b: c\n",
	"AnchorName":  head + "data:\n  a: &x {{ .Params.V }}\n  b: *x\n",
}

// TestHostileValues is T20: wherever an action prints, a value is refused or stays one value.
func TestHostileValues(t *testing.T) {
	for place, text := range shapes {
		plain := map[string]bool{}
		for _, value := range []string{"word", "1", ""} {
			result, err := contained(text, value)
			if err == nil {
				plain[skeleton(result)] = true
			} else if value == "word" {
				t.Errorf("%s: a plain value is refused: %v", place, err)
			}
		}
		for name, value := range hostile {
			result, err := contained(text, value)
			if err == nil && !plain[skeleton(result)] {
				t.Errorf("T20: %s in %s slipped through:\n%s\ninstead of\n%v", name, place, skeleton(result), plain)
			}
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s in %s: the error is %T", name, place, err)
			}
		}
	}
}

// skeleton is the structure of objects: kinds of values by place. Of a key that a value makes, only the place counts.
func skeleton(result Result) string {
	var b strings.Builder
	for _, object := range result.Objects {
		fmt.Fprintf(&b, "%s/%s", object.GetAPIVersion(), object.GetKind())
		bones(&b, object.Object)
		b.WriteString("\n")
	}
	return b.String()
}

func bones(b *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		known := 0
		b.WriteString("{")
		for _, key := range []string{"apiVersion", "kind", "metadata", "name", "labels", "annotations", "data", "list", "a", "b", "c", "k", "app", "value", "sum"} {
			if item, ok := v[key]; ok {
				known++
				b.WriteString(key + ":")
				bones(b, item)
			}
		}
		fmt.Fprintf(b, "+%d}", len(v)-known)
	case []any:
		b.WriteString("[")
		for _, item := range v {
			bones(b, item)
		}
		b.WriteString("]")
	default:
		b.WriteString(".")
	}
}

// TestRefused is T21: the message names parameter, template, difference and remedy.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		value        any
		want         string
	}{
		"Documents": {"the known attack", head + "data:\n  a: {{ .Params.V }}\n  b: c\n", hostile["Documents"],
			"parameter V changes the structure of template t.yaml (3 documents instead of 1): a value must stay one value; quote it in the template ({{ .Params.V | quote }}), or declare the parameter as map or array and write it with toYaml"},
		"Key":       {"one more key", head + "data:\n  a: {{ .Params.V }}\n", "x\n  b: c", "parameter V changes the structure of template t.yaml (data has 2 keys instead of 1): a value"},
		"List":      {"a list for a value", head + "data:\n  a: {{ .Params.V }}\n", "[x]", "(data.a is a list instead of one value)"},
		"Items":     {"one more item", head + "list: [{{ .Params.V }}]\n", "x, y", "(list has 2 items instead of 1)"},
		"Cut":       {"a comment cuts off what the template writes", head + "data:\n  a: {{ .Params.V }}:latest\n", "x #", "(data.a lacks text of the template)"},
		"Malformed": {"text that is no YAML any more", head + "data:\n  a: {{ .Params.V }}\n", `"x`, "(malformed YAML)"},
		"Tag":       {"a tag", head + "data:\n  a: {{ .Params.V }}\n", "!!int 1", "(data.a has another tag)"},
		"Anchor":    {"an anchor", head + "data:\n  a: {{ .Params.V }}\n", "&x 1", "(data.a has another anchor)"},
		"Merge":     {"a key may be free, but no merge", head + "data:\n  {{ .Params.V }}: {x: y}\n", "<<", "(data has a merge key)"},
		"Twice":     {"a key may be free, but not one that is there", head + "data:\n  a: x\n  {{ .Params.V }}: y\n", "a", "(data has a key twice)"},
		"TwiceSafe": {"nor when no check is needed otherwise", head + "data:\n  a: x\n  {{ .Name }}: y\n  n: z\n", "a", "what template t.yaml prints changes its structure (data has a key twice): "},
		"Opening":   {"the marks themselves", head + "data:\n  a: {{ .Params.V }}\n", "x\uf3f1", "parameter V holds the character U+F3F1 or U+F3F2"},
		"Closing":   {"in a map, too", head, map[string]any{"a": []any{"\uf3f2"}}, "parameter V holds the character U+F3F1 or U+F3F2"},
		"Forged":    {"marks that a function makes", head + `data: {a: {{ printf "%s%c" .Params.V 62449 }}}`, "x y", "template t.yaml cannot be checked"},
		"Author":    {"structure that is printed beside the parameters", head + "data:\n{{ printf \"  a: %s\" .Name }}\n", "x y", "what template t.yaml prints changes its structure (valid YAML only with this value)"},
		"Kind":      {"T22: kind holds no value, plain or not", "apiVersion: v1\nkind: {{ .Params.V }}\nmetadata: {name: x}\n", "Secret", "parameter V makes kind of an object of template t.yaml: write apiVersion and kind in the template, since only install plans may take them from a value"},
		"KindLine":  {"nor in the next line", "apiVersion: v1\nkind:\n  {{ .Params.V }}\nmetadata: {name: x}\n", "Secret", "parameter V makes kind of"},
		"KindFlow":  {"nor in a flow map", "{apiVersion: v1, kind: \"{{ .Params.V }}\", metadata: {name: x}}\n", "Secret", "parameter V makes kind of"},
		"KindKey":   {"nor is its key a value", "apiVersion: v1\n{{ .Params.V }}: Secret\nmetadata: {name: x}\n", "kind", "parameter V makes kind of"},
		"KindAlias": {"nor by an alias", "apiVersion: v1\nmetadata: {name: x, labels: {a: &a {{ .Params.V }}}}\nkind: *a\n", "Secret", "parameter V makes kind of"},
		"KindMerge": {"nor by a merge", "apiVersion: v1\nmetadata: {name: x, labels: &a {kind: {{ .Params.V }}}}\n<<: *a\n", "Secret", "parameter V makes kind of"},
		"KindYaml":  {"nor by toYaml", "metadata: {name: x}\n{{ toYaml .Params.V }}", map[string]any{"kind": "Secret", "apiVersion": "v1"}, "parameter V makes "},
		"KindItem":  {"nor in a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: {{ .Params.V }}\n  metadata: {name: x}\n", "Secret", "parameter V makes kind of"},
		"KindItems": {"nor in a list of values", "apiVersion: v1\nkind: List\nitems: {{ toJson .Params.V }}\n", []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x"}}}, "parameter V makes "},
		"Version":   {"nor apiVersion", "apiVersion: {{ .Params.V }}/v1\nkind: A\nmetadata: {name: x}\n", "example.org", "parameter V makes apiVersion of"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := contained(tc.text, tc.value)
			var e *Error
			if !errors.As(err, &e) || e.Kind != StructureError || !strings.HasPrefix(err.Error(), tc.want) && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: -want +got:\n-%s\n+%v\n%v", tc.reason, tc.want, err, result.Objects)
			}
		})
	}
}

// TestAccepted is T20: what packages do with values works as before.
func TestAccepted(t *testing.T) {
	const block = "first: line\n--- no document\n  # indented\n\n\"last\"\n"
	for name, tc := range map[string]struct {
		reason, text string
		value, want  any
	}{
		"Block":      {"a text of many lines in a block scalar, by indent", head + "data:\n  a: |\n{{ .Params.V | indent 4 }}\n", block, block},
		"Nindent":    {"by nindent", head + "data:\n  a: |\n    {{- .Params.V | nindent 4 }}\n", block, block},
		"Call":       {"by a call instead of a pipe", head + "data:\n  a: |\n{{ indent 4 .Params.V }}\n", block, block},
		"ToYaml":     {"by toYaml", head + "data:\n  a: {{ toYaml .Params.V | nindent 4 }}\n", block, block},
		"Quote":      {"by quote", head + "data:\n  a: {{ quote .Params.V }}\n", block, block},
		"Words":      {"words without quotes", head + "data:\n  a: {{ .Params.V }}\n", "some words, and more", "some words, and more"},
		"URL":        {"a URL", head + "data:\n  a: {{ .Params.V }}\n", "https://x:80/?a=b&c", "https://x:80/?a=b&c"},
		"Number":     {"types of scalars are free", head + "data:\n  a: {{ .Params.V }}\n", "1e3", int64(1000)},
		"Map":        {"a map by toYaml is free in its structure", head + "data:\n  a:\n    {{- toYaml .Params.V | nindent 4 }}\n", map[string]any{"x y": []any{"- a"}, "b": map[string]any{}}, map[string]any{"x y": []any{"- a"}, "b": map[string]any{}}},
		"Merged":     {"beside keys of the template, too", head + "data:\n  a:\n    b: c\n{{ toYaml .Params.V | trimSuffix \"\\n\" | indent 4 }}\n", map[string]any{"x": "y z"}, map[string]any{"b": "c", "x": "y z"}},
		"Json":       {"by toJson", head + "data:\n  a: {{ .Params.V | toJson }}\n", []any{"a b", map[string]any{"c": "d"}}, []any{"a b", map[string]any{"c": "d"}}},
		"Keys":       {"keys by range", head + "data:\n  a:\n{{- range $k, $v := .Params.V }}\n    {{ $k }}: {{ $v | quote }}\n{{- end }}\n", map[string]any{"x y": "z: z"}, map[string]any{"x y": "z: z"}},
		"Branch":     {"control flow sees the values", head + "data:\n  {{- if eq .Params.V \"a: b\" }}\n  a: [1, 2]\n  {{- else }}\n  a: {{ .Params.V }}\n  {{- end }}\n", "a: b", []any{int64(1), int64(2)}},
		"Sum":        {"T21: a sum of an include is that of the unmarked text", head + "data:\n  a: {{ include \"config\" . | sha256sum | trunc 8 | quote }}\n", "x y", "4eca8a69"},
		"SumIf":      {"an include in a condition", head + "data:\n  a: {{ if contains \"x y\" (include \"config\" .) }}yes, {{ .Params.V }}{{ end }}\n", "x y", "yes, x y"},
		"SumVar":     {"a variable that is printed and summed", head + "data:\n  {{- $c := include \"config\" . }}\n  a: |-\n    {{- $c | nindent 4 }}\n    {{ $c | len }}\n", "x y", "a=x y\nb=2\n9"},
		"YamlVar":    {"a variable of toYaml", head + "data:\n  {{- $c := toYaml .Params.V }}\n  a:\n{{ $c | indent 4 }}\n  b: {{ if $c }}{{ $c | len }}{{ end }}\n", map[string]any{"x": "a b"}, map[string]any{"x": "a b"}},
		"Empty":      {"an empty value", head + "data:\n  a: {{ .Params.V }}\n  b: {{ .Params.W }}\n", "", nil},
		"Null":       {"no value", head + "data:\n  a: {{ .Params.V }}\n  b: {{ .Params.W }}\n", nil, nil},
		"Ternary":    {"a choice among texts of the template", head + "{{ ternary \"data: {a: b}\" \"data: {a: c}\" (eq .Params.V \"x y\") }}\n", "x y", "b"},
		"Constant":   {"what stands in the template is its own", head + "{{ printf \"data: {%s: %s}\" \"a\" \"b\" }}\n", "x y", "b"},
		"IncludeEnd": {"an include whose end is trimmed", head + "data:\n  a: |-\n{{ include \"end\" . | trim | indent 4 }}\n{{ define \"end\" }}x\n{{ .Params.V }}{{ end }}", "y z\n\n", "x\ny z"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := contained(tc.text, tc.value)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			data, _ := result.Objects[0].Object["data"].(map[string]any)
			if diff := cmp.Diff(tc.want, data["a"]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := contained("apiVersion: v1\nkind: {{ .Params.V }}\nmetadata: {name: x}\n", "Secret", WithAnyKind()); err != nil {
		t.Errorf("T22: install plans may take the kind from a value: %v", err)
	}
	if _, err := contained("apiVersion: v1\nkind: {{ .Params.V }}\nmetadata: {name: x}\n", "A\nspec: {}", WithAnyKind()); err == nil {
		t.Errorf("T20: not more than the kind")
	}
}

// TestSkip is T22: values that are plain are not checked, as long as no function can take them apart.
func TestSkip(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		params       map[string]any
		want         bool // it is checked
	}{
		"Plain":    {"plain values", "{{ .Params.A }}{{ .Params.B | quote }}", map[string]any{"A": "a/b:1@sha256:0-+=._", "B": "", "C": []any{int64(1), true, "x"}}, false},
		"Words":    {"a space", "{{ .Params.A }}", map[string]any{"A": "a b"}, true},
		"Dash":     {"a dash in front", "{{ .Params.A }}", map[string]any{"A": "-a"}, true},
		"Colon":    {"a colon at the end", "{{ .Params.A }}", map[string]any{"A": "a:"}, true},
		"Line":     {"a line break at the end", "{{ .Params.A }}", map[string]any{"A": "a\n"}, true},
		"Default":  {"the author's own value", "{{ .Params.A }}", map[string]any{"A": "the default"}, false},
		"Deep":     {"a text in a map", "{{ .Params.A }}", map[string]any{"A": map[string]any{"x": []any{"y z"}}}, true},
		"DeepKey":  {"a key of a map", "{{ .Params.A }}", map[string]any{"A": map[string]any{"x y": nil}}, true},
		"Decode":   {"a function that decodes", "{{ .Params.A | b64dec }}", map[string]any{"A": "a"}, true},
		"Split":    {"a function that takes apart", `{{ index (splitList "=" .Params.A) 1 }}`, map[string]any{"A": "a"}, true},
		"Other":    {"in a definition of another file", `{{ include "decode" . }}`, map[string]any{"A": "a"}, true},
		"WholeUse": {"in another file", `{{ template "decode.yaml" . }}`, map[string]any{"A": "a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := New(map[string]string{"t.yaml": tc.text, "decode.yaml": `{{ define "decode" }}{{ .Params.A | b64dec }}{{ end }}`})
			if err := set.Check("t.yaml"); err != nil {
				t.Fatal(err)
			}
			v := Variables{Name: "n", Params: tc.params, Defaults: map[string]any{"A": "the default"}}
			if got := set.checked("t.yaml", v); got != tc.want {
				t.Errorf("%s: checked is %v", tc.reason, got)
			}
		})
	}
}

// TestManyValues: a line of many values is checked in about the time that it takes to render it.
func TestManyValues(t *testing.T) {
	const text = head + "data:\n  a: x{{ range until 50000 }},{{ $.Params.V }}-{{ . }}{{ end }}\n"
	for _, value := range []string{"plain", "not plain"} {
		if _, err := contained(text, value); err != nil {
			t.Error(err)
		}
	}
}

// TestParametersContained is T20 for parameter files: the values of one parameter of a dependency stay that.
func TestParametersContained(t *testing.T) {
	set := New(map[string]string{"p.yaml": "A: {{ .Params.V }}\n"})
	if _, err := set.Parameters("p.yaml", Variables{Name: "n", Params: map[string]any{"V": "x\nPRIVILEGED: \"true\""}}); err == nil ||
		!strings.HasPrefix(err.Error(), "parameter V changes the structure of template p.yaml (the document has 2 keys instead of 1): ") {
		t.Errorf("a parameter more: %v", err)
	}
}
