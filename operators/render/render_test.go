package render

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vars are what the tests render with.
func vars() Variables {
	return Variables{
		OperatorName: "op", OperatorVersion: "0.1.0", AppVersion: "5.7", Name: "inst", Namespace: "ns",
		PlanName: "deploy", PhaseName: "main", StepName: "all",
		Params: map[string]any{
			"COUNT": "3", "ON": "true", "EMPTY": "", "NONE": nil, "OCTAL": "010", "FRACTION": "1.5",
			"LIST": []any{"a", int64(12345678)}, "MAP": map[string]any{"b": int64(1000000), "a": "x"},
		},
		Pipes: map[string]string{"cert": "inst-cert"},
	}
}

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Variables":   {"all variables", "{{ .OperatorName }} {{ .OperatorVersion }} {{ .AppVersion }} {{ .Name }} {{ .Namespace }} {{ .PlanName }} {{ .PhaseName }} {{ .StepName }} {{ .Pipes.cert }}", "op 0.1.0 5.7 inst ns deploy main all inst-cert"},
		"From":        {"G5: the version before, empty at first", `[{{ .From.AppVersion }}{{ .From.OperatorVersion }}]{{ if .From.AppVersion }}x{{ end }}`, "[]"},
		"ScalarText":  {"scalars are text", `{{ if eq .Params.ON "true" }}yes{{ end }}`, "yes"},
		"Null":        {"rule 7: null is empty and false", `[{{ .Params.NONE }}]{{ if .Params.NONE }}x{{ end }}{{ range .Params.NONE }}x{{ end }}`, "[]"},
		"NullLiteral": {"a template may say so itself", `<no value>`, "<no value>"},
		"ExactInList": {"integers have no exponent", `{{ range .Params.LIST }}{{ . }},{{ end }}{{ .Params.MAP.b }}`, "a,12345678,1000000"},
		"ToYaml":      {"as KUDO: go-yaml v2, with the line break", "{{ toYaml .Params.MAP }}|{{ toYaml .Params.LIST }}|{{ .Params.MAP | toYaml | trim | indent 2 }}", "a: x\nb: 1000000\n|- a\n- 12345678\n|  a: x\n  b: 1000000"},
		"FromYaml":    {"integers stay exact", `{{ (fromYaml "a: 12345678").a }} {{ (fromJson "{\"a\": 12345678}").a }}`, "12345678 12345678"},
		"ToJson":      {"integers stay exact", `{{ toJson .Params.MAP }}`, `{"a":"x","b":1000000}`},
		"Int":         {"int of text, base 10 as in sprig 2.22", `{{ int .Params.COUNT }} {{ int .Params.OCTAL }} {{ int .Params.FRACTION }} {{ int "x" }} {{ int 2.9 }} {{ int true }}`, "3 10 0 0 2 1"},
		"Arithmetic":  {"as in sprig 2.22", `{{ add 1 .Params.COUNT 2 }} {{ sub .Params.COUNT 1 }} {{ mul 2 .Params.COUNT }} {{ div 7 .Params.COUNT }} {{ mod 7 .Params.COUNT }} {{ add1 .Params.COUNT }}`, "6 2 6 2 1 4"},
		"Pipeline":    {"the piped value comes last", `{{ .Params.COUNT | mul 2 }}`, "6"},
		"MinMax":      {"whole numbers of text", `{{ min 5 .Params.COUNT 9 }} {{ max 5 .Params.COUNT 9 }} {{ biggest 1 2 }} {{ min 1.9 2 }}`, "3 9 2 1"},
		"Until":       {"counting", `{{ until 3 }} {{ untilStep 1 (int .Params.COUNT) 1 }} {{ untilStep 3 0 -1 }} {{ until -2 }} {{ untilStep 0 3 0 }}`, "[0 1 2] [1 2] [3 2 1] [0 -1] []"},
		"Seq":         {"as the command", `{{ seq 3 }}|{{ seq 2 4 }}|{{ seq 0 2 6 }}|{{ seq 3 1 }}|{{ seq 6 -2 0 }}`, "1 2 3|2 3 4|0 2 4 6|3 2 1|6 4 2 0"},
		"Strings":     {"the usual ones", `{{ trim " a " }}{{ indent 2 "a\nb" }}{{ nindent 1 "c" }}{{ b64dec "aGk=" }}{{ "a" | repeat 3 }}{{ replace "a" "b" "aXa" }}`, "a  a\n  b\n chiaaabXb"},
		"List":        {"lists", `{{ list "a" 1 | toJson }} {{ (list "a" "b") | join "," }} {{ first (list 1 2) }} {{ has 1 (list 1 2) }}`, `["a",1] a,b 1 true`},
		"Dict":        {"maps", `{{ $d := dict "b" 1 "a" 2 }}{{ keys $d }} {{ values $d }} {{ get $d "a" }} {{ hasKey $d "x" }}`, "[a b] [2 1] 2 false"},
		"Set":         {"changes stay inside", `{{ $_ := set .Params.MAP "c" 1 }}{{ .Params.MAP.c }}`, "1"},
		"Printf":      {"formats", `{{ printf "%s-%02d" .Name 7 }} {{ print 1 2 }} {{ println "x" }}`, "inst-07 1 2 x\n"},
		"Split":       {"split gives _0, _1", `{{ (split "," "a,b")._1 }} {{ splitList "," "a,b" }}`, "b [a b]"},
		"Regex":       {"regular expressions", `{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexMatch "^a" "ab" }}`, "-W-xxW- true"},
		"Date":        {"a given time", `{{ date "2006-01-02" 86400 }} {{ toDate "2006-01-02" "2020-03-04" | date "02.01." }} {{ dateInZone "15:04" 3600 "UTC" }} {{ htmlDate 0 }}`, "1970-01-02 04.03. 01:00 1970-01-01"},
		"Required":    {"a value that is there", `{{ required "needed" .Name }}`, "inst"},
		"Default":     {"defaults", `{{ default "x" .Params.EMPTY }}{{ .Params.NONE | default "y" }}`, "xy"},
		"RangeInt":    {"loops", `{{ range $i, $v := until 3 }}{{ $i }}{{ if eq $i 1 }}{{ break }}{{ end }}{{ end }}{{ range list }}x{{ else }}none{{ end }}`, "01none"},
		"Root":        {"the root in a loop", `{{ $root := . }}{{ range .Params.LIST }}{{ $root.Name }}{{ $.Namespace }}{{ end }}`, "instnsinstns"},
		"Trim":        {"white space is trimmed", "a\n  {{- if true }} b {{- end }}\n", "a b\n"},
		"Define":      {"definitions of the file", `{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" .Name }}{{ include "x" 1 | upper }}`, "<inst><1>"},
		"Recursion":   {"definitions may use themselves", `{{ define "n" }}{{ . }}{{ if gt . 0 }}{{ template "n" (int (sub . 1)) }}{{ end }}{{ end }}{{ template "n" 3 }}`, "3210"},
		"Block":       {"blocks", `{{ block "b" . }}{{ .Name }}{{ end }}`, "inst"},
		"Comment":     {"comments", `{{/* x */}}a`, "a"},
		"Empty":       {"nothing", ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(map[string]string{"a.yaml": tc.text}).Text("a.yaml", vars())
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTextErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         Error // Err and Template are not compared
	}{
		"Parameter": {"a missing parameter is named with the line and a near name", "a\nb: {{ .Params.COUNTS }}",
			Error{Kind: ExecError, Line: 2, Column: 14, Reason: `parameter "COUNTS" is not defined (at <.Params.COUNTS>)`, Hint: "did you mean COUNT?", Source: "b: {{ .Params.COUNTS }}"}},
		"NoVariable": {"a variable that KUDO has neither", "{{ .Capabilities }}",
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `there is no variable ".Capabilities" (at <.Capabilities>)`, Hint: "there are .AppVersion, .From, .Name, .Namespace, .OperatorName, .OperatorVersion, .Params, .PhaseName, .Pipes, .PlanName, .StepName", Source: "{{ .Capabilities }}"}},
		"NoNear": {"nothing near", "{{ .Params.Sleep }}",
			Error{Kind: ExecError, Line: 1, Column: 11, Reason: `parameter "Sleep" is not defined (at <.Params.Sleep>)`, Hint: "define it in params.yaml", Source: "{{ .Params.Sleep }}"}},
		"Variable": {"a variable that KUDO does not have either", "{{ .StepNumber }}",
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `there is no variable ".StepNumber" (at <.StepNumber>)`, Hint: "did you mean StepName?", Source: "{{ .StepNumber }}"}},
		"Pipe": {"a missing pipe", "{{ .Pipes.certs }}",
			Error{Kind: ExecError, Line: 1, Column: 10, Reason: `there is no pipe "certs" (at <.Pipes.certs>)`, Hint: "did you mean cert?", Source: "{{ .Pipes.certs }}"}},
		"Key": {"a missing key of a map parameter", "{{ .Params.MAP.c }}",
			Error{Kind: ExecError, Line: 1, Column: 11, Reason: `the map has no key "c" (at <.Params.MAP.c>)`, Hint: "test for the key with hasKey, or read it with get or dig", Source: "{{ .Params.MAP.c }}"}},
		"Syntax": {"a syntax error", "a\n{{ if }}",
			Error{Kind: ParseError, Line: 2, Column: 1, Reason: "missing value for if", Source: "{{ if }}"}},
		"Unclosed": {"an unclosed action", "a\n{{ if .Name }}\nb",
			Error{Kind: ParseError, Line: 3, Reason: "unexpected EOF", Source: "b"}},
		"Function": {"a function that does not exist", "{{ toYml .Name }}",
			Error{Kind: ParseError, Line: 1, Column: 4, Reason: `there is no function "toYml"`, Hint: "did you mean toYaml?", Source: "{{ toYml .Name }}"}},
		"Denied": {"a denied function says why, wherever it stands", "x\n{{ if false }}{{ (printf \"%s\" (uuidv4)).x | quote }}{{ end }}",
			Error{Kind: ParseError, Line: 2, Column: 32, Reason: "the function uuidv4 is denied in kudo: " + random, Hint: "pass the value as a parameter", Source: `{{ if false }}{{ (printf "%s" (uuidv4)).x | quote }}{{ end }}`}},
		"Env": {"the environment", `{{ env "HOME" }}`,
			Error{Kind: ParseError, Line: 1, Column: 4, Reason: "the function env is denied in kudo: " + environment, Hint: "pass the value as a parameter", Source: `{{ env "HOME" }}`}},
		"Now": {"a date without a time", `{{ date "2006" "x" }}`,
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `at <date "2006" "x">: error calling date: a date needs a time (from toDate) or seconds since 1970, not string: the current time is denied`, Source: `{{ date "2006" "x" }}`}},
		"Fail": {"the author's own error", `{{ fail "no" }}`,
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `at <fail "no">: error calling fail: no`, Source: `{{ fail "no" }}`}},
		"Required": {"a required value", `{{ required "set X" .Params.EMPTY }}`,
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `at <required "set X" .Params.EMPTY>: error calling required: set X`, Source: `{{ required "set X" .Params.EMPTY }}`}},
		"Division": {"division by zero", `{{ div 1 .Params.EMPTY }}`,
			Error{Kind: ExecError, Line: 1, Column: 4, Reason: `at <div 1 .Params.EMPTY>: error calling div: division by zero ( is 0 as a whole number)`, Source: `{{ div 1 .Params.EMPTY }}`}},
		"Template": {"a definition that does not exist", `{{ define "labels" }}{{ end }}{{ template "lables" . }}`,
			Error{Kind: ExecError, Line: 1, Column: 43, Reason: `there is no template or definition "lables"`, Hint: "did you mean labels?", Source: `{{ define "labels" }}{{ end }}{{ template "lables" . }}`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(map[string]string{"a:1.yaml": tc.text}).Text("a:1.yaml", vars())
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("%s: error is %T %v", tc.reason, err, err)
			}
			if got.Template != "a:1.yaml" {
				t.Errorf("the template is %q", got.Template)
			}
			got.Err, got.Template = nil, ""
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Repeat":    {"a text that is repeated", `{{ repeat 1000000000 "aaaa" }}`, "a value grows beyond"},
		"Negative":  {"a negative count", `{{ repeat -1 "a" }}`, "negative"},
		"Until":     {"a long list", `{{ until 1000000000 }}`, "would have more than 100000"},
		"UntilStep": {"a long list", `{{ untilStep 0 -9223372036854775807 -1 }}`, "would have more than"},
		"Seq":       {"a long sequence", `{{ seq 1 1000000000 }}`, "would have more than"},
		"Indent":    {"deep indentation", `{{ indent 1000000000 "a" }}`, "a value grows beyond"},
		"IndentOf":  {"many lines indented", `{{ indent 10000 (repeat 1000 "\n") }}`, "a value grows beyond"},
		"Printf":    {"wide formats", `{{ printf "%999999d%999999d%999999d" 1 2 3 }}`, "a value grows beyond"},
		"PrintfArg": {"a width from an argument", `{{ printf "%*d%*d%*d" 999999 1 999999 1 999999 1 }}`, "a value grows beyond"},
		"PrintfRep": {"an argument many times", `{{ $a := repeat 1000000 "a" }}{{ printf "%[1]s%[1]s%[1]s" $a }}`, "a value grows beyond"},
		"Replace":   {"each letter replaced by many", `{{ $a := repeat 10000 "a" }}{{ replace "a" $a $a }}`, "a value grows beyond"},
		"Regex":     {"each letter replaced by many", `{{ $a := repeat 10000 "a" }}{{ regexReplaceAll "a" $a $a }}`, "a value grows beyond"},
		"Join":      {"a long separator", `{{ join (repeat 100000 "a") (until 100000) }}`, "a value grows beyond"},
		"Doubling":  {"a text that doubles", `{{ $a := "aaaaaaaa" }}{{ range until 64 }}{{ $a = print $a $a }}{{ end }}`, "a value grows beyond"},
		"Quoting":   {"quotes that double", `{{ $a := "\"" }}{{ range until 64 }}{{ $a = quote $a }}{{ end }}`, "a value grows beyond"},
		"Html":      {"escapes of escapes", `{{ $a := "&&&&" }}{{ range until 100 }}{{ $a = html $a $a }}{{ end }}`, "a value grows beyond"},
		"List":      {"a list of lists of lists", `{{ $a := list "aaaaaaaa" }}{{ range until 64 }}{{ $a = list $a $a }}{{ end }}{{ $a }}`, "a value grows beyond"},
		"Concat":    {"a list that doubles", `{{ $a := list 1 }}{{ range until 64 }}{{ $a = concat $a $a }}{{ end }}`, "a value grows beyond"},
		"Dict":      {"maps of maps", `{{ $a := dict "k" "aaaaaaaa" }}{{ range until 64 }}{{ $a = dict "a" $a "b" $a }}{{ end }}{{ toYaml $a }}`, "a value grows beyond"},
		"Cycle":     {"a map that holds itself", `{{ $a := dict }}{{ $_ := set $a "a" $a }}{{ $a }}`, "nested deeper"},
		"Split":     {"many parts", `{{ splitList "" (repeat 1000000 "a") }}`, "would be split into"},
		"Loop":      {"a loop without output", `{{ range 9223372036854775807 }}{{ end }}`, "more than 200000 rounds"},
		"Loops":     {"loops in loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, "more than 200000 rounds"},
		"Output":    {"much output", `{{ $a := repeat 2000000 "a" }}{{ range until 100 }}{{ $a }}{{ end }}`, "renders to more than"},
		"Recursion": {"a template that uses itself", `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "more than 1000 levels deep"},
		"Include":   {"an include that includes itself", `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "more than 1000 levels deep"},
		"Branching": {"templates that use two each", `{{ define "a" }}{{ if gt . 0 }}{{ template "a" (int (sub . 1)) }}{{ template "a" (int (sub . 1)) }}{{ end }}{{ end }}{{ template "a" 100 }}`, "rounds"},
		"Work":      {"long values again and again", `{{ $a := repeat 1000000 "aB" }}{{ range until 100000 }}{{ $x := lower $a }}{{ end }}`, "too much work"},
		"Pipeline":  {"long values in one action", `{{ $a := repeat 1000000 "aB" }}{{ $x := $a` + strings.Repeat(" | lower", 10_000) + ` }}`, "too much work"},
		"Nodes":     {"a long body many times", `{{ range until 100000 }}` + strings.Repeat("{{ $x := 1 }}", 10_000) + `{{ end }}`, "too much work"},
		"Variables": {"a variable that is searched for among many", "{{$b:=1}}" + strings.Repeat("{{$a:=1}}", 80_000) + strings.Repeat("{{$b}}", 80_000), "it declares 80001 variables and uses variables 160001 times, which takes too much work"},
		"Lookups":   {"the same in a loop", "{{ $b := 1 }}" + strings.Repeat("{{ $a := 1 }}", 10_000) + "{{ range until 100000 }}" + strings.Repeat("{{ $x := $b }}", 1000) + "{{ end }}", "too much work"},
		"Assigned":  {"the same with assignments", "{{ $b := 1 }}" + strings.Repeat("{{ $a := 1 }}", 10_000) + "{{ range until 100000 }}" + strings.Repeat("{{ $b = 1 }}", 1000) + "{{ end }}", "too much work"},
		"Args":      {"one long action many times", `{{ range until 100000 }}{{ $x := or ` + strings.Repeat("0 ", 100_000) + `}}{{ end }}`, "too much work"},
		"Included":  {"a long definition many times", `{{ define "a" }}` + strings.Repeat("{{ $x := 1 }}", 10_000) + `{{ end }}{{ range until 100000 }}{{ template "a" }}{{ end }}`, "too much work"},
		"Match":     {"a large expression on a long text", `{{ $a := repeat 1000000 "a" }}{{ $x := regexMatch (printf "%sz" (repeat 100 "(x?a?){300}")) $a }}`, "too much work"},
		"FindAll":   {"matches that look at all that follows", `{{ $a := repeat 1000000 "a" }}{{ $x := regexFindAll "a*b|a" $a -1 }}`, "too much work"},
		"Pattern":   {"a long expression", `{{ regexMatch (repeat 5000 "a") "a" }}`, "a regular expression has 5000 bytes, more than the 4096 allowed"},
		"Uniq":      {"each item compared with all others", `{{ $x := uniq (until 100000) }}`, "too much work"},
		"Without":   {"each item compared with many", `{{ $a := until 50000 }}{{ range $a }}{{ $x := has -1 $a }}{{ end }}`, "too much work"},
		"Whole":     {"a value that is measured again and again", `{{ $a := list (until 50000) }}{{ range until 100000 }}{{ $x := list $a }}{{ end }}`, "too much work"},
		"Large":     {"a large template", strings.Repeat("a", MaxTemplate+1), "more than the"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(map[string]string{"a.yaml": tc.text}).Text("a.yaml", vars())
			var got *Error
			if !errors.As(err, &got) || !strings.Contains(got.Reason, tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestBudget: templates that are bounded each are bounded together, too.
func TestBudget(t *testing.T) {
	set := New(map[string]string{"a.yaml": `{{ $a := repeat 1000000 "aB" }}{{ range until 50 }}{{ $x := lower $a }}{{ end }}`})
	v := vars()
	v.Budget = &Budget{}
	var err error
	done := 0
	for ; err == nil && done < 100; done++ {
		_, err = set.Text("a.yaml", v)
	}
	var got *Error
	if !errors.As(err, &got) || !strings.Contains(got.Reason, "take too much work: their loops and functions go through more than 2048 MiB") || done < 8 {
		t.Errorf("after %d renderings: %v", done, err)
	}
	v.Budget = &Budget{}
	if _, err := set.Text("a.yaml", v); err != nil {
		t.Errorf("with another budget: %v", err)
	}
}

// TestBudgetShared: renderings at the same time share a budget. Each of many small ones counts.
func TestBudgetShared(t *testing.T) {
	set := New(map[string]string{"a.yaml": `{{ $a := repeat 1000 "aB" }}{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: {{ lower $a }}}}`})
	one := vars()
	one.Budget = &Budget{}
	if _, err := set.Objects("a.yaml", one); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 64)
	for i := range names {
		names[i] = "a.yaml"
	}
	many := vars()
	many.Budget = &Budget{}
	if _, err := set.All(names, many); err != nil {
		t.Fatal(err)
	}
	if got, want := many.Budget.spent.Load(), int64(len(names))*one.Budget.spent.Load(); got != want || want == 0 {
		t.Errorf("%d renderings at the same time spent %d, want %d", len(names), got, want)
	}
}

func TestSharedDefinitions(t *testing.T) {
	set := New(map[string]string{
		"_helpers.yaml": `{{ define "labels" }}shared: {{ .Name }}{{ end }}{{ define "nested" }}{{ template "labels" . }}{{ end }}`,
		"own.yaml":      `{{ define "labels" }}own: {{ .Name }}{{ end }}{{ template "labels" . }}, {{ include "labels" . }}, {{ template "nested" . }}`,
		"b.yaml":        `{{ define "only" }}b{{ end }}`,
		"c.yaml":        `{{ define "only" }}b{{ end }}`,
		"broken.yaml":   `{{ define "lost" }}{{ nope }}{{ end }}`,
		"denied.yaml":   `{{ define "good" }}good{{ end }}{{ define "late" }}{{ now }}{{ end }}{{ define "chance" }}{{ uuidv4 }}{{ end }}`,
		"good.yaml":     `{{ template "good" . }} {{ include "good" . }}`,
		"shared.yaml":   `{{ template "nested" . }} {{ include "only" . }}`,
		"differs.yaml":  `{{ if false }}{{ template "labels" . }}{{ end }}`,
		"dynamic.yaml":  `{{ include "labels" . }}`,
		"lost.yaml":     `{{ include "lost" . }}`,
		"whole.yaml":    `{{ include "piece.yaml" . }}`,
		"piece.yaml":    `piece of {{ .Name }}`,
	})
	for name, tc := range map[string]struct{ reason, want, err string }{
		"own.yaml":      {reason: "a file sees its own definition, as in KUDO; another file sees that file's own", want: "own: inst, own: inst, shared: inst"},
		"shared.yaml":   {reason: "definitions of other files are seen, equal ones are one", want: "shared: inst b"},
		"_helpers.yaml": {reason: "a file of definitions only renders to nothing", want: ""},
		"whole.yaml":    {reason: "a file is found by its path", want: "piece of inst"},
		"differs.yaml":  {reason: "definitions that differ cannot be chosen from", err: `"labels" is defined differently by _helpers.yaml and own.yaml`},
		"dynamic.yaml":  {reason: "also by include", err: `"labels" is defined differently by _helpers.yaml and own.yaml`},
		"broken.yaml":   {reason: "a file that is wrong fails when used", err: `template broken.yaml:1:23: there is no function "nope"`},
		"lost.yaml":     {reason: "its definitions are not there, and the error says why", err: "broken.yaml, which has that name, has an error"},
		"good.yaml":     {reason: "a definition that is right is there, also if others of its file use what is denied", want: "good good"},
		"pieces.yaml":   {reason: "a template that is not there", err: "did you mean piece.yaml?"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := set.Text(name, vars())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestErrorInOtherFile(t *testing.T) {
	set := New(map[string]string{
		"_h.yaml":  "{{ define \"x\" }}\n{{ .Params.COUNTS }}{{ end }}{{ define \"y\" }}{{ range 2000000 }}{{ end }}{{ end }}",
		"a.yaml":   "{{ include \"x\" . }}",
		"b.yaml":   "{{ template \"x\" . }}",
		"big.yaml": "\n\n{{ include \"y\" . }}",
	})
	for _, name := range []string{"a.yaml", "b.yaml"} {
		_, err := set.Text(name, vars())
		const want = `template _h.yaml:2:11: parameter "COUNTS" is not defined (at <.Params.COUNTS>); did you mean COUNT? (in "{{ .Params.COUNTS }}{{ end }}{{ define \"y\" }}{{ range 2000000 }}{{ end }}{{ end }}")`
		if err == nil || err.Error() != want {
			t.Errorf("%s: the error is of the file and line that is wrong: %v", name, err)
		}
	}
	if _, err := set.Text("big.yaml", vars()); err == nil || !strings.Contains(err.Error(), "rounds") {
		t.Errorf("loops of included templates count: %v", err)
	}
}

// Run with -race: one set is used by many, and changes of one rendering are not seen by another.
func TestConcurrent(t *testing.T) {
	set := New(map[string]string{
		"a.yaml": `{{ define "x" }}{{ .Name }}{{ end }}{{ $_ := set .Params.MAP "c" .Name }}{{ $_ := set .Params "COUNT" "9" }}{{ include "x" . }}{{ .Params.MAP }}`,
		"b.yaml": `{{ .Params.MAP }}`,
	})
	v := vars()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if got, err := set.Text("a.yaml", v); err != nil || got != "instmap[a:x b:1000000 c:inst]" {
					t.Errorf("got %q, %v", got, err)
				}
				if got, err := set.Text("b.yaml", v); err != nil || got != "map[a:x b:1000000]" {
					t.Errorf("parameters are never changed: got %q, %v", got, err)
				}
			}
		})
	}
	wait.Wait()
	if v.Params["COUNT"] != "3" {
		t.Error("parameters are never changed")
	}
}

func TestFunctions(t *testing.T) {
	names := FunctionNames()
	for _, name := range names {
		if denied[name] != "" {
			t.Errorf("%s is offered and denied", name)
		}
	}
	for name := range denied {
		if _, err := New(map[string]string{"a.yaml": "{{ " + name + " }}"}).Text("a.yaml", vars()); err == nil || !strings.Contains(err.Error(), "is denied in kudo") {
			t.Errorf("%s is denied: %v", name, err)
		}
	}
	if len(names) < 180 {
		t.Errorf("there are only %d functions", len(names))
	}
}
