package lint

import (
	"testing"
	"testing/fstest"
	"time"

	"kudo.dev/kudo/operators"
)

// TestScope is what is followed through a template, and where following ends.
func TestScope(t *testing.T) {
	const params = "parameters:\n- {name: A, default: '[{b: 1}]', type: array}\n- {name: M, default: '{b: {c: 1}}', type: map}\n"
	both := `{{ $x := .Params.A }}{{ $y := .Params.M }}`
	unused := func(name string) string {
		return map[string]string{"A": `W params.yaml:2: parameter "A" defined but not used.`, "M": `W params.yaml:3: parameter "M" defined but not used.`}[name]
	}
	undefined := func(where string) string { return "E templates/" + where + " is not defined" }
	cases := map[string]lintCase{}
	for name, tc := range map[string]struct {
		reason, template string
		helper           string
		want             []string
	}{
		"Range":           {"members have fields of their own", `{{ range .Params.A }}{{ .b }}{{ . }}{{ end }}{{ .Params.M }}`, "", nil},
		"RangeRoot":       {"$ is the root in range", `{{ range .Params.A }}{{ $.Params.M }}{{ $.Name }}{{ end }}`, "", nil},
		"RangeRootWrong":  {"and is checked there", both + `{{ range .Params.A }}{{ $.Params.NOPE }}{{ end }}`, "", []string{undefined(`a.yaml:6: parameter "NOPE" in template a.yaml`)}},
		"RangeVariables":  {"variables of range are members", both + `{{ range $i, $v := .Params.A }}{{ $v.b }}{{ $i }}{{ end }}`, "", nil},
		"RangeElse":       {"dot is the outer one in else", both + `{{ range .Params.A }}{{ else }}{{ .Params.NOPE }}{{ end }}`, "", []string{undefined(`a.yaml:6: parameter "NOPE" in template a.yaml`)}},
		"With":            {"with sets dot", both + `{{ with .Params.M }}{{ .b.c }}{{ end }}`, "", nil},
		"WithParams":      {"even to all parameters", `{{ with .Params }}{{ .A }}{{ .M }}{{ end }}`, "", nil},
		"WithParamsWrong": {"whose fields are checked", both + `{{ with .Params }}{{ .NOPE }}{{ end }}`, "", []string{undefined(`a.yaml:6: parameter "NOPE" in template a.yaml`)}},
		"WithElse":        {"and not in else", both + `{{ with false }}{{ .b }}{{ else }}{{ .Nam }}{{ end }}`, "", []string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "Nam", did you mean .Name?`}},
		"Implicit":        {"only these variables exist", both + `{{ .OperatorName }}{{ .OperatorVersion }}{{ .AppVersion }}{{ .Namespace }}{{ .PlanName }}{{ .PhaseName }}{{ .StepName }}{{ if false }}{{ .Instance.x }}{{ end }}`, "", []string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "Instance"`}},
		"Forgotten":       {"a parameter without .Params", both + `{{ if false }}{{ .A }}{{ end }}`, "", []string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "A", did you mean .Params.A?`}},
		"Chain":           {"fields of parameters are not checked", both + `{{ .Params.M.b.c }}{{ (.Params.M).b }}{{ (index .Params.A 0).b }}`, "", nil},
		"ChainWrong":      {"in parentheses", both + `{{ if false }}{{ (.Params).NOPE }}{{ end }}`, "", []string{undefined(`a.yaml:6: parameter "NOPE" in template a.yaml`)}},
		"Index":           {"index and get use a parameter", `{{ index .Params "A" }}{{ get $.Params "M" }}`, "", nil},
		"IndexNested":     {"through all", `{{ index . "Params" "A" }}{{ index .Params "M" "b" "c" }}`, "", nil},
		"IndexWrong":      {"one that is not there is empty, but surely a mistake", both + `{{ index .Params "NOPE" }}`, "", []string{`W templates/a.yaml:6: parameter "NOPE" in template a.yaml is not defined`}},
		"IndexDynamic":    {"a name that is made may be any", `{{ index .Params (printf "%s" "A") }}`, "", nil},
		"HasKey":          {"asking uses", `{{ if hasKey .Params "A" }}{{ end }}{{ .Params.M }}`, "", nil},
		"All":             {"printing all uses all", `{{ toJson .Params }}`, "", nil},
		"AllRange":        {"so does going through all", `{{ range $k, $v := .Params }}{{ $k }}{{ end }}`, "", nil},
		"AllDot":          {"and printing dot", `{{ toJson . }}`, "", nil},
		"Condition":       {"asking whether there are any does not", `{{ if .Params }}{{ .Params.M }}{{ end }}`, "", []string{unused("A")}},
		"Variable":        {"variables keep what they hold", `{{ $p := .Params }}{{ $r := . }}{{ $p.A }}{{ $r.Params.M }}`, "", nil},
		"VariableWrong":   {"and are checked", both + `{{ $p := .Params }}{{ if false }}{{ $p.NOPE }}{{ end }}`, "", []string{undefined(`a.yaml:6: parameter "NOPE" in template a.yaml`)}},
		"Assigned":        {"but not when they change", both + `{{ $p := .Params }}{{ $p = dict "NOPE" 1 }}{{ $p.NOPE }}`, "", nil},
		"Shadowed":        {"inner ones end", both + `{{ $p := .Params }}{{ if true }}{{ $p := dict "NOPE" 1 }}{{ $p.NOPE }}{{ end }}{{ $p.A }}`, "", nil},
		"Set":             {"templates may add to dot", both + `{{ $_ := set . "Extra" 1 }}{{ .Extra }}`, "", nil},
		"Helper":          {"definitions see the dot they are called with", `{{ template "h" . }}{{ include "h" $ }}`, `{{ define "h" }}{{ .Params.A }}{{ $.Params.M }}{{ .Name }}{{ end }}`, nil},
		"HelperWrong":     {"and findings are where they stand", both + `{{ if false }}{{ template "h" . }}{{ end }}`, "\n{{ define \"h\" }}{{ .Params.NOPE }}{{ end }}", []string{undefined(`h.yaml:2: parameter "NOPE" in template h.yaml`)}},
		"HelperValue":     {"a value has fields of its own", both + `{{ include "h" .Params.M }}`, `{{ define "h" }}{{ .b.c }}{{ $.b }}{{ end }}`, nil},
		"HelperDict":      {"dict carries the root", `{{ include "h" (dict "root" . "v" .Params.M) }}`, `{{ define "h" }}{{ .root.Params.A }}{{ .v.b }}{{ .root.Name }}{{ end }}`, nil},
		"HelperDictWrong": {"and it is checked there", both + `{{ if false }}{{ include "h" (dict "root" .) }}{{ end }}`, `{{ define "h" }}{{ .root.Params.NOPE }}{{ end }}`, []string{undefined(`h.yaml:1: parameter "NOPE" in template h.yaml`)}},
		"HelperList":      {"so does list", `{{ include "h" (list . "x") }}`, `{{ define "h" }}{{ $ctx := index . 0 }}{{ $ctx.Params.A }}{{ (index . 0).Params.M }}{{ end }}`, nil},
		"HelperDynamic":   {"a name that is made may be any definition", `{{ include (print "h") . }}`, `{{ define "h" }}{{ .Params.A }}{{ .Params.M }}{{ end }}`, nil},
		"HelperUnused":    {"a definition that nothing calls uses nothing", `{{ .Params.A }}`, `{{ define "h" }}{{ .Params.M }}{{ .Nam }}{{ end }}`, []string{unused("M")}},
		"HelperMissing":   {"definitions exist", both + `{{ if false }}{{ template "hh" . }}{{ end }}`, "", []string{`W templates/a.yaml:6: definition "hh" used in template a.yaml is not defined`}},
		"HelperRecursion": {"definitions may call themselves", both + `{{ include "h" (dict "n" .) }}`, `{{ define "h" }}{{ if false }}{{ include "h" (dict "n" .) }}{{ end }}{{ end }}`, nil},
		"Broken":          {"what does not parse may use anything", `{{ .Params.A `, "", []string{`E templates/a.yaml:7: template file "a.yaml" reports the following error: unclosed action started at a.yaml:6`}},
		"Comment":         {"comments use nothing", `{{/* .Params.M */}}{{ .Params.A }}`, "", []string{unused("M")}},
	} {
		f := files{"params.yaml": params, "templates/a.yaml": data(tc.template)}
		if tc.helper != "" {
			f["templates/h.yaml"] = tc.helper
		}
		cases[name] = lintCase{tc.reason, f, tc.want}
	}
	run(t, cases)
}

// FuzzWalk: no template makes the linter fail or run for ever.
func FuzzWalk(f *testing.F) {
	for _, text := range []string{
		`{{ .Params.A }}{{ range $i, $v := .Params }}{{ $v.x }}{{ end }}`,
		`{{ define "a" }}{{ template "a" (dict "x" . "y" .) }}{{ end }}{{ template "a" . }}`,
		`{{ define "a" }}{{ include "b" (list . .) }}{{ end }}{{ define "b" }}{{ include "a" (list . .) }}{{ end }}{{ include "a" . }}`,
		`{{ with $x := index . "Params" }}{{ $x.A }}{{ $x = . }}{{ else with .Name }}{{ . }}{{ end }}`,
		`{{ $_ := set .Params "NOPE" (dict "a") }}{{ (.Params.NOPE).a | index . 1 "x" }}{{ include (print .) nil }}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pkg, err := operators.Read(fstest.MapFS{
			"operator.yaml":    {Data: []byte(plainOperator)},
			"params.yaml":      {Data: []byte("parameters: [{name: A, default: 1}]")},
			"templates/a.yaml": {Data: []byte(text)},
		})
		if err != nil {
			return
		}
		start := time.Now()
		analyze(pkg)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("the analysis took %v", took)
		}
	})
}
