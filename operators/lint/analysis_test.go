package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFollowing checks at which construct a value is followed on, and where all that it holds counts as used. A is used by the
// construct alone, B by nothing but it, so that a finding for B shows that the value is still followed.
func TestFollowing(t *testing.T) {
	const params = "parameters:\n- {name: A, default: a}\n- {name: B, default: b}\n"
	const unused = `W params.yaml:3: parameter "B" defined but not used.`
	for name, tc := range map[string]struct {
		reason, template, helper string
		want                     []string
	}{
		"Parentheses": {"parentheses change nothing", `{{ ((.Params)).A }}`, "", []string{unused}},
		"GetDefault":  {"a value that is piped on", `{{ .Params.A | default "x" | upper }}`, "", []string{unused}},
		"PipedRoot": {"the root as the last argument", `{{ . | include "h" }}`, `{{ define "h" }}{{ .Params.A }}{{ end }}`,
			[]string{unused}},
		"PipedParams":  {"all parameters into a function", `{{ .Params | toJson }}`, "", nil},
		"PipedUnknown": {"a field of a piped value", `{{ with .Params | deepCopy }}{{ .A }}{{ end }}`, "", nil},
		"List":         {"a list of the root", `{{ $l := list "x" . }}{{ (index $l 1).Params.A }}`, "", []string{unused}},
		"Tuple":        {"a tuple of the root", `{{ $l := tuple . }}{{ (index $l 0).Params.A }}`, "", []string{unused}},
		"DictDynamic":  {"a map with a key that is made", `{{ $d := dict (print "r") . }}{{ $d.r.Params.A }}`, "", nil},
		"DictOdd":      {"a map of an odd number of arguments", `{{ $d := dict "r" . "x" }}{{ $d.r.Params.A }}`, "", nil},
		"DictPrinted":  {"a map that is printed", `{{ dict "r" .Params | toYaml | indent 4 }}`, "", nil},
		"DictUnused":   {"a map that nothing reads", `{{ $d := dict "r" .Params }}{{ .Params.A }}`, "", []string{unused}},
		"Nested":       {"maps in maps", `{{ $d := dict "a" (dict "b" .) }}{{ $d.a.b.Params.A }}`, "", []string{unused}},
		"DictKey": {"a key that the map does not have is nothing", `{{ $d := dict "r" . }}{{ if $d.q }}{{ end }}{{ .Params.A }}`, "",
			[]string{unused}},
		"IndexDynamic": {"an index that is made", `{{ $l := list .Params "x" }}{{ $i := int "0" }}{{ (index $l $i).A }}`, "", nil},
		"HasKeyOther":  {"hasKey of another map", `{{ if hasKey (dict "B" 1) "B" }}{{ .Params.A }}{{ end }}`, "", []string{unused}},
		"HasKeyMade":   {"hasKey of a key that is made", `{{ if hasKey .Params (print "B") }}{{ .Params.A }}{{ end }}`, "", nil},
		"SetParams":    {"a template may set a parameter", `{{ $_ := set .Params "NEW" 1 }}{{ .Params.NEW }}`, "", nil},
		"Loop":         {"going through the names of all", `{{ range $k, $v := .Params }}{{ $v }}{{ end }}`, "", nil},
		"LoopList":     {"going through a list of the root", `{{ range list . }}{{ .Params.A }}{{ end }}`, "", nil},
		"LoopAssign": {"a loop that assigns a variable", `{{ $x := "" }}{{ range $x = list 1 }}{{ $x }}{{ end }}{{ .Params.A }}`, "",
			[]string{unused}},
		"IfVariable":   {"a variable of if", `{{ if $p := .Params }}{{ $p.A }}{{ end }}`, "", []string{unused}},
		"WithVariable": {"a variable of with", `{{ with $p := .Params }}{{ $p.A }}{{ end }}`, "", []string{unused}},
		"ElseIf":       {"else if", `{{ if false }}{{ else if .Params.A }}{{ end }}`, "", []string{unused}},
		"Method":       {"a call of a value", `{{ if false }}{{ .Params.A.Call .Params }}{{ end }}`, "", nil},
		"Nil":          {"nil is nothing", `{{ if eq .Params.A nil }}{{ end }}`, "", []string{unused}},
		"TemplateNone": {"a definition without dot", `{{ template "h" }}{{ .Params.A }}`, `{{ define "h" }}x{{ end }}`, []string{unused}},
		"Block":        {"a block is used where it stands", `{{ block "b" .Params }}{{ .A }}{{ end }}`, "", []string{unused}},
		"Merge":        {"merge makes the parameters known to nothing", `{{ $m := merge (dict) .Params }}{{ $m.A }}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := files{"params.yaml": params, "templates/a.yaml": data(tc.template)}
			if tc.helper != "" {
				f["templates/h.yaml"] = tc.helper
			}
			if diff := cmp.Diff(tc.want,
				lines(Chain{parametersDefined, checkImplicitNames, definitions, parametersUsed}.Lint(NewSubject(f.read(t))))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownNames checks the message for each name that does not exist, with its line and what is proposed.
func TestUnknownNames(t *testing.T) {
	const params = "parameters: [{name: REPLICAS, default: a}]\n"
	for name, tc := range map[string]struct {
		reason, template, helper string
		want                     []string
	}{
		"Near": {"a name that was meant", `{{ .Params.REPLICA }}`, "",
			[]string{`E templates/a.yaml:6: parameter "REPLICA" in template a.yaml is not defined, did you mean REPLICAS?`}},
		"Case": {"another letter case", `{{ .Params.replicas }}`, "",
			[]string{`E templates/a.yaml:6: parameter "replicas" in template a.yaml is not defined, did you mean REPLICAS?`}},
		"Get": {"get returns nothing, which is a warning", `{{ get .Params "REPLICA" }}`, "",
			[]string{`W templates/a.yaml:6: parameter "REPLICA" in template a.yaml is not defined, did you mean REPLICAS?`}},
		"Variable": {"a variable that was meant", `{{ .Names }}`, "",
			[]string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "Names", did you mean .Name?`}},
		"Lower": {"the root in another letter case", `{{ .params.REPLICAS }}`, "",
			[]string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "params", did you mean .Params?`}},
		"Values": {"a variable of Helm", `{{ .Values.x }}`, "",
			[]string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "Values"`}},
		"From": {"G5: the version before has two fields", `{{ .From.AppVersion }}{{ .From.OperatorVersion }}{{ .From.Version }}`, "",
			[]string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "From.Version": .From has OperatorVersion and AppVersion`}},
		"IndexRoot": {"index of the root returns nothing", `{{ index . "Values" }}`, "", nil},
		"Template": {"a definition that does not exist", `{{ template "no" . }}`, "",
			[]string{`W templates/a.yaml:6: definition "no" used in template a.yaml is not defined`}},
		"Include": {"also by include", `{{ include "no" . }}`, "",
			[]string{`W templates/a.yaml:6: definition "no" used in template a.yaml is not defined`}},
		"InHelper": {"in a definition, at its own line", `{{ include "h" . }}`, "\n\n{{ define \"h\" }}\n{{ .Params.NO }}{{ end }}",
			[]string{`E templates/h.yaml:4: parameter "NO" in template h.yaml is not defined`}},
		"TwoDots": {"a definition that is used with two dots", `{{ include "h" . }}{{ include "h" .Params }}`,
			"{{ define \"h\" }}{{ .NO }}{{ end }}",
			[]string{`E templates/h.yaml:1: parameter "NO" in template h.yaml is not defined`,
				`E templates/h.yaml:1: template h.yaml defines an invalid implicit parameter "NO"`}},
		"Twice": {"two uses in one line are one finding", `{{ .Params.NO }}{{ .Params.NO }}`, "",
			[]string{`E templates/a.yaml:6: parameter "NO" in template a.yaml is not defined`}},
		"OpenByMerge": {"a template that merges into the root may use any name", `{{ $_ := mergeOverwrite . (dict "x" 1) }}{{ .x }}`, "", nil},
		"OpenBySet":   {"so may one that sets a name that is made", `{{ $_ := set . (print "x") 1 }}{{ .y }}`, "", nil},
		"SetOther": {"a name that is set is known", `{{ $_ := set . "x" 1 }}{{ .x }}{{ .z }}`, "",
			[]string{`E templates/a.yaml:6: template a.yaml defines an invalid implicit parameter "z"`}},
		"FieldOfText": {"fields of values are not checked", `{{ .Name.x.y }}`, "", nil},
		"IncludeTwice": {"a name that stands in two files is looked for in both", `{{ include "both" . }}`,
			`{{ define "both" }}{{ .Params.NO }}{{ end }}`, []string{`E templates/h.yaml:1: parameter "NO" in template h.yaml is not defined`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := files{"params.yaml": params, "templates/a.yaml": data(tc.template)}
			if tc.helper != "" {
				f["templates/h.yaml"] = tc.helper
			}
			if diff := cmp.Diff(tc.want,
				lines(Chain{parametersDefined, checkImplicitNames, definitions}.Lint(NewSubject(f.read(t))))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecordBound checks that maps that grow with each call are not followed without end.
func TestRecordBound(t *testing.T) {
	fields := map[string]value{}
	for i := range maxRecord {
		fields[fmt.Sprint(i)] = value{}
		_, followed := newRecord(fields)
		if want := len(fields) <= maxRecord-1; followed != want {
			t.Fatalf("a record of %d fields is followed: %v", len(fields), followed)
		}
	}
	grows := `{{ define "a" }}{{ template "b" (dict "x" . "y" .) }}{{ end }}{{ define "b" }}{{ template "a" (dict "x" . "y" .) }}{{ ` +
		`end }}{{ template "a" . }}`
	pkg := files{"params.yaml": "parameters: [{name: A, default: a}]", "templates/a.yaml": grows}.read(t)
	if a := analyze(pkg); a.work > maxWork/100 || !a.uses("A") {
		t.Errorf("the work is %d", a.work)
	}
}

// TestSignatures checks that values that templates could treat differently have signatures of their own.
func TestSignatures(t *testing.T) {
	record := func(fields map[string]value) value { v, _ := newRecord(fields); return v }
	seen := map[string]int{}
	for i, v := range []value{
		{}, {kind: variables}, {kind: parameters}, {kind: pipeNames}, {kind: from}, {kind: literal}, {kind: literal, text: "a"}, {kind: literal, text: "1"},
		record(nil),
		record(map[string]value{"a": {}}), record(map[string]value{"b": {}}), record(map[string]value{"a": {kind: parameters}}),
		record(map[string]value{"a": {}, "b": {}}),
		record(map[string]value{"a": record(map[string]value{"b": {}})}), record(map[string]value{`a":0,"b`: {}}),
	} {
		if other, same := seen[v.signature()]; same {
			t.Errorf("values %d and %d have the signature %s", other, i, v.signature())
		}
		seen[v.signature()] = i
	}
}

// TestBlankFiles checks which files hold nothing but definitions.
func TestBlankFiles(t *testing.T) {
	for text, want := range map[string]bool{
		`{{ define "a" }}x{{ end }}`: true, "# a\n{{/* b */}}\n\n{{ define \"a\" }}x{{ end }}\n": true, `{{ define "a" }}x{{ end }}y`: false,
		"": false, "# a\n": false,
		`{{ define "a" }}x{{ end }}{{ .Name }}`: false, `{{ define "a" }}`: false, `{{ define "a" }}x{{ end }}{{ if .x }}{{ end }}`: false,
	} {
		a := analyze(files{"templates/x.yaml": text}.read(t))
		if got := a.onlyDefines("x.yaml"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestFindingsAreStable checks that a package with many mistakes has the same findings in the same order each time.
func TestFindingsAreStable(t *testing.T) {
	f := files{"params.yaml": "parameters: [{name: B}, {name: A, trigger: x}, {name: C, type: y}]",
		"operator.yaml": strings.Replace(plainOperator, "tasks: [a]", "tasks: [a, z, y]", 1)}
	for i := range 6 {
		f[fmt.Sprintf("templates/t%d.yaml",
			i)] = fmt.Sprintf("{{ define \"d%d\" }}{{ .Params.N%d }}{{ end }}{{ template \"d%d\" . }}{{ .Wrong }}", i, i, (i+1)%6)
	}
	want := lines(Lint(f.read(t)))
	if len(want) < 15 {
		t.Errorf("only %d findings", len(want))
	}
	for range 10 {
		if diff := cmp.Diff(want, lines(Lint(f.read(t)))); diff != "" {
			t.Fatalf("-first +now:\n%s", diff)
		}
	}
}
