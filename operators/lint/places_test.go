package lint

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators/render"
)

// TestReaches checks which places of values decide what runs.
func TestReaches(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		path   []string
		does   []string // functions
		want   bool
	}{
		"Image":       {"an image", []string{"spec", "containers", "0", "image"}, nil, true},
		"Below":       {"a field below a powerful one", []string{"spec", "volumes", "0", "hostPath", "path"}, nil, true},
		"Plain":       {"another field", []string{"spec", "replicas"}, nil, false},
		"PlainYaml":   {"a map for another field", []string{"spec", "resources", "*"}, []string{"toYaml"}, false},
		"SpecYaml":    {"a map for the whole of spec", []string{"spec", "*"}, []string{"toYaml"}, true},
		"SpecJson":    {"also as JSON", []string{"spec", "*"}, []string{"toJson"}, true},
		"SpecText":    {"text cannot bring fields", []string{"spec", "*"}, []string{"quote"}, false},
		"Items":       {"an item of containers", []string{"spec", "containers", "1", "*"}, []string{"toYaml"}, true},
		"ItemsDeep":   {"what the value holds does not matter", []string{"spec", "volumes", "*", "a", "b"}, []string{"toYaml"}, true},
		"Labels":      {"labels bring nothing", []string{"metadata", "labels", "*"}, []string{"toYaml"}, false},
		"WholeObject": {"a whole object", []string{"*"}, []string{"toYaml"}, false},
		"Root":        {"no path", nil, []string{"toYaml"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reaches(render.Place{Path: tc.path, Origin: render.Origin{Functions: tc.does}}); got != tc.want {
				t.Errorf("%s: reaches is %v", tc.reason, got)
			}
		})
	}
}

// TestFieldOf checks that a path is written as Kubernetes writes it.
func TestFieldOf(t *testing.T) {
	for want, path := range map[string][]string{
		"": nil, "a": {"a"}, "a.b": {"a", "b"}, "a[0].b[10]": {"a", "0", "b", "10"}, "[1].a": {"1", "a"}, "a.*": {"a", "*"},
		"a[0][1]": {"a", "0", "1"},
	} {
		if got := fieldOf(path); got != want {
			t.Errorf("%v: got %q, want %q", path, got, want)
		}
	}
}

// TestChoicesOrder checks that choices are sorted, that each stands once, and what each says.
func TestChoicesOrder(t *testing.T) {
	pkg := files{
		"params.yaml": "parameters: [{name: Z, default: z}, {name: A, default: a}, {name: ON, default: 'false', type: boolean}, {name: " +
			"E, enum: [a, b], default: a}]\n",
		"operator.yaml": used("{name: b, kind: Apply, spec: {resources: [b.yaml, a.yaml]}}"),
		"templates/a.yaml": plainObject +
			"image: {{ .Params.Z | quote }}\ncommand: [{{ .Params.A | quote }}, {{ .Params.Z | quote }}]\nname: {{ .Params.A | quote " +
			"}}\nargs: {{ .Name }}\n",
		"templates/b.yaml": plainObject +
			"{{ if eq .Params.ON \"true\" }}\nimage: {{ .Params.A | quote }}\n{{ end }}\n{{ if eq .Params.E \"b\" }}\nsecretName: {{ " +
			".Params.A | quote }}\n{{ end }}\n",
	}.read(t)
	want := []string{
		"A ConfigMap command[0] templates/a.yaml:5", "A ConfigMap image templates/b.yaml:5", "A ConfigMap secretName templates/b.yaml:8",
		"Z ConfigMap image templates/a.yaml:4", "Z ConfigMap command[1] templates/a.yaml:5",
	}
	for range 5 {
		var got []string
		for _, c := range Choices(pkg) {
			got = append(got, fmt.Sprintf("%s %s %s %s:%d", c.Parameter, c.Kind, c.Field, c.File, c.Line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// TestSamples checks the values that are made up for parameters that users must set, and those that take other branches.
func TestSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, parameter string
		want, others      string // "-" for none
	}{
		"Default":    {"a default is no sample", "default: x", "-", "-"},
		"Text":       {"text that is required", "", "sample", "sample"},
		"Integer":    {"a number that is required", "type: integer", "1", "1"},
		"Number":     {"a number that is required", "type: number", "1", "1"},
		"Boolean":    {"a boolean that is required", "type: boolean", "true", "true"},
		"Enum":       {"an allowed value that is required", "enum: [b, a]", "b", "b"},
		"EnumOther":  {"another allowed value", "enum: [b, a, c], default: b", "-", "c"},
		"True":       {"the other boolean", "default: 'true'", "-", "false"},
		"False":      {"the other boolean", "default: 'false', type: boolean", "-", "true"},
		"EmptyText":  {"a text where there is none", "default: ''", "-", "sample"},
		"Optional":   {"a text where there is none", "required: false", "-", "sample"},
		"OptList":    {"a list where there is none", "required: false, type: array", "-", "[sample]"},
		"OptMap":     {"a map where there is none", "required: false, type: map", "-", "{sample: sample}"},
		"OptInteger": {"a number where there is none", "required: false, type: integer", "-", "1"},
		"OptBoolean": {"a boolean where there is none", "required: false, type: boolean", "-", "true"},
		"EmptyList":  {"a list where there is an empty one", "default: [], type: array", "-", "[sample]"},
		"EmptyMap":   {"a map where there is an empty one", "default: {}, type: map", "-", "{sample: sample}"},
		"FullList":   {"a list that is full stays", "default: [a], type: array", "-", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSubject(files{"params.yaml": "parameters: [{name: A, " + tc.parameter + "}]"}.read(t))
			for _, sample := range []struct {
				values map[string]string
				want   string
			}{{s.samples(), tc.want}, {s.otherSamples(), tc.others}} {
				got, ok := sample.values["A"]
				if !ok {
					got = "-"
				}
				if got != sample.want {
					t.Errorf("%s: got %q, want %q", tc.reason, got, sample.want)
				}
			}
		})
	}
}

// TestUnquotedValues checks which defaults make a parameter a text, and that each function that quotes is known.
func TestUnquotedValues(t *testing.T) {
	const warning = `W templates/a.yaml:5: parameter "A" is printed without quotes: write {{ .Params.A | quote }}, or a value that is ` +
		`more than one word of YAML is refused`
	with := func(parameter, action string) files {
		return files{"params.yaml": "parameters: [{name: A, " + parameter + "}]",
			"templates/a.yaml": plainObject + "data:\n  a: {{ " + action + " }}\n"}
	}
	cases := map[string]lintCase{
		"Text":     {"text", with("default: x", ".Params.A"), []string{warning}},
		"NoValue":  {"no default", with("required: false", ".Params.A"), []string{warning}},
		"TypeText": {"a number whose type is string", with("default: '1', type: string", ".Params.A"), nil},
		"Boolean":  {"a boolean without a type", with("default: yes", ".Params.A"), nil},
		"Version":  {"a version is text", with("default: 1.2.3", ".Params.A"), []string{warning}},
		"Upper":    {"a function that does not quote", with("default: x", ".Params.A | upper"), []string{warning}},
		"Printf":   {"nor does printf", with("default: x", `printf "%s-b" .Params.A`), []string{warning}},
		"Twice":    {"two places in one line are one finding", with("default: x", ".Params.A }}-{{ .Params.A"), []string{warning}},
	}
	for _, function := range []string{"quote", "squote", "toYaml", "toJson", "toRawJson", "mustToJson", "b64enc", "sha256sum", "len", "int",
		"float64", "add 1"} {
		cases["Quoting "+function] = lintCase{"a function whose text is one value", with("default: x", function+" .Params.A"), nil}
	}
	only(t, quotes, cases)
}

// TestIsText checks which defaults YAML reads as text.
func TestIsText(t *testing.T) {
	for text, want := range map[string]bool{"": true, "a": true, "a b": true, "1.2.3": true, "~": true, "[": true, "'1'": true, "1": false,
		"1.5": false, "true": false, "on": false, "[a]": false, "{}": false, "a: b": false} {
		if got := isText(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
