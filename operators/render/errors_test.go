package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestErrorText checks which parts of an error stand in its text, by its kind.
func TestErrorText(t *testing.T) {
	for want, e := range map[string]Error{
		`template a: wrong`:   {Kind: ExecError, Template: "a", Reason: "wrong"},
		`template a:3: wrong`: {Kind: ExecError, Template: "a", Line: 3, Reason: "wrong"},
		`template a:3:4: wrong; do it (in "x \"y\"")`: {Kind: ParseError, Template: "a", Line: 3, Column: 4, Reason: "wrong", Hint: "do it",
			Source: `x "y"`},
		`template a, line 3 of what it renders to: wrong`: {Kind: DecodeError, Template: "a", Line: 3, Column: 4, Reason: "wrong"},
		`template b: wrong`: {Kind: ExecError, Template: "b", Column: 4, Reason: "wrong"},
		// a column without a line says nothing
		`wrong: do it`: {Kind: StructureError, Template: "a", Line: 3, Reason: "wrong", Hint: "do it",
			Source: "x"},
		`beyond: less`: {Kind: BudgetError, Reason: "beyond", Hint: "less"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	cause := errors.New("cause")
	if err := (&Error{Template: "a", Reason: "x", Err: cause}); !errors.Is(err, cause) || errors.Unwrap(&Error{}) != nil {
		t.Error("the cause is kept")
	}
}

// TestSourceLine checks which text of a template an error shows.
func TestSourceLine(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tc := range []struct {
		source string
		line   int
		want   string
	}{
		{"a\nb\nc", 2, "b"}, {"a\n  b \r\nc", 2, "b"}, {"a", 1, "a"}, {"a\n", 2, ""}, {"a", 2, ""}, {"a", 0, ""}, {"a", -1, ""}, {"", 1, ""},
		{"a\n\nb", 2, ""},
		{long, 1, long[:117] + "…"},
	} {
		if got := sourceLine(tc.source, tc.line); got != tc.want {
			t.Errorf("line %d of %q: got %q, want %q", tc.line, tc.source, got, tc.want)
		}
	}
}

// TestColumnOf checks that columns count from 1, and that a text that is not there has none.
func TestColumnOf(t *testing.T) {
	for _, tc := range []struct {
		line   int
		needle string
		want   int
	}{{1, "a", 1}, {1, "b", 2}, {2, "d", 2}, {2, "a", 0}, {3, "x", 0}, {0, "a", 0}} {
		if got := columnOf("ab\ncd", tc.line, tc.needle); got != tc.want {
			t.Errorf("%q in line %d: column %d, want %d", tc.needle, tc.line, got, tc.want)
		}
	}
}

// TestMissingKeys checks the words for a name that does not exist, by where it stands, and what is proposed.
func TestMissingKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{{ .Params.X.y }}`:   `template t.yaml:1:11: parameter "X" is not defined (at <.Params.X.y>); define it in params.yaml`,
		`{{ $.Params.NON }}`:  `template t.yaml:1:5: parameter "NON" is not defined (at <$.Params.NON>); did you mean NONE?`,
		`{{ .params.COUNT }}`: `template t.yaml:1:11: there is no variable ".params" (at <.params.COUNT>); did you mean Params?`,
		`{{ $.Names }}`:       `template t.yaml:1:5: there is no variable ".Names" (at <$.Names>); did you mean Name?`,
		`{{ .Pipes.other }}`: `template t.yaml:1:10: there is no pipe "other" (at <.Pipes.other>); ` +
			`only keys of the package's Pipe tasks can be used`,
		`{{ .Params.MAP.deep.er }}`: `template t.yaml:1:11: the map has no key "deep" (at <.Params.MAP.deep.er>); ` +
			`test for the key with hasKey, or read it with get or dig`,
		`{{ with .Params.MAP }}{{ .k }}{{ end }}`: `template t.yaml:1:26: there is no variable ".k" (at <.k>); ` +
			`there are .AppVersion, .From, .Name, .Namespace, ` +
			`.OperatorName, .OperatorVersion, .Params, .PhaseName, .Pipes, .PlanName, .StepName`,
		`{{ .Name.x }}`:            `template t.yaml:1:9: at <.Name.x>: can't evaluate field x in type interface {}`,
		`{{ template "no" }}`:      `template t.yaml:1:13: there is no template or definition "no"`,
		`{{ include "no" . }}`:     `template t.yaml:1:4: there is no template or definition "no"`,
		"\n\n  {{ fail \"x\" }}  ": `template t.yaml:3:6: at <fail "x">: error calling fail: x`,
	} {
		_, err := New(map[string]string{"t.yaml": text}).Text("t.yaml", vars())
		if err == nil {
			t.Errorf("%s renders", text)
			continue
		}
		if got, _, _ := strings.Cut(err.Error(), " (in "); got != want {
			t.Errorf("%.60s: got %s, want %s", text, got, want)
		}
	}
}

// TestLongErrors checks that neither a long expression nor a long reason makes a long error.
func TestLongErrors(t *testing.T) {
	_, err := New(map[string]string{"t.yaml": `{{ fail "` + strings.Repeat("y", 100_000) + `" }}`}).Text("t.yaml", vars())
	if err == nil || len(err.Error()) > 1500 || strings.Count(err.Error(), "…") != 3 {
		t.Errorf("%d bytes: %.2000v", len(err.Error()), err)
	}
}

// TestParseErrors checks the place and the words of what is no template.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]Error{
		"a\n{{ nopee }}": {Line: 2, Column: 4, Reason: `there is no function "nopee"`, Source: "{{ nopee }}"},
		"{{ .x | toyaml }}": {Line: 1, Column: 9, Reason: `there is no function "toyaml"`, Hint: "did you mean toYaml?",
			Source: "{{ .x | toyaml }}"},
		"{{ end }}":              {Line: 1, Column: 1, Reason: "unexpected {{end}}", Source: "{{ end }}"},
		"a {{ range }}{{ end }}": {Line: 1, Column: 3, Reason: "missing value for range", Source: "a {{ range }}{{ end }}"},
		"{{ $x }}":               {Line: 1, Column: 1, Reason: `undefined variable "$x"`, Source: "{{ $x }}"},
		"{{ \"a }}":              {Line: 1, Column: 1, Reason: "unterminated quoted string", Source: `{{ "a }}`},
		"{{/* a }}":              {Line: 1, Column: 1, Reason: "unclosed comment", Source: "{{/* a }}"},
		"{{ 1 2":                 {Line: 1, Column: 1, Reason: "unclosed action", Source: "{{ 1 2"},
		"{{ break }}":            {Line: 1, Column: 1, Reason: "{{break}} outside {{range}}", Source: "{{ break }}"},
		"{{ kudoEmit 1 2 }}":     {Line: 1, Column: 4, Reason: `there is no function "kudoEmit"`, Source: "{{ kudoEmit 1 2 }}"},
		"{{ kudoUnmark \"a\" }}": {Line: 1, Column: 4, Reason: `there is no function "kudoUnmark"`, Source: `{{ kudoUnmark "a" }}`},
		"{{ shuffle \"a\" }}": {Line: 1, Column: 4, Reason: "the function shuffle is denied in kudo: " + random,
			Hint: "pass the value as a parameter", Source: `{{ shuffle "a" }}`},
		"{{ getHostByName \"a\" }}": {Line: 1, Column: 4, Reason: "the function getHostByName is denied in kudo: it asks the network",
			Hint:   "pass the value as a parameter",
			Source: `{{ getHostByName "a" }}`},
		"{{ now }}\n{{ env \"a\" }}": {Line: 1, Column: 4, Reason: "the function now is denied in kudo: " + clock,
			Hint: "pass the value as a parameter", Source: "{{ now }}"},
	} {
		err := New(map[string]string{"t.yaml": text}).Check("t.yaml")
		var got *Error
		if !errors.As(err, &got) {
			t.Errorf("%q: error is %T %v", text, err, err)
			continue
		}
		want.Kind, want.Template, want.Err = ParseError, "t.yaml", got.Err
		if diff := cmp.Diff(want.Error(), got.Error()); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

// TestMissingTemplates checks what is proposed for a template that does not exist.
func TestMissingTemplates(t *testing.T) {
	set := New(map[string]string{"a.yaml": "", "sub/b.yaml": ""})
	for name, want := range map[string]string{
		"c.yaml":      "template c.yaml: there is no template of this path; did you mean a.yaml?",
		"sub/bb.yaml": "template sub/bb.yaml: there is no template of this path; did you mean sub/b.yaml?",
		"other":       "template other: there is no template of this path", "": "there is no template of this path: ",
	} {
		for what, err := range map[string]error{"Check": set.Check(name), "Text": second(set.Text(name, vars())),
			"Objects": second(set.Objects(name, vars())), "Parameters": second(set.Parameters(name, vars()))} {
			if err == nil || err.Error() != want {
				t.Errorf("%s of %q: error %v, want %s", what, name, err, want)
			}
		}
		if set.Has(name) {
			t.Errorf("the set has %q", name)
		}
	}
	if err := New(nil).Check("a.yaml"); err == nil ||
		err.Error() != "template a.yaml: there is no template of this path; the package has no templates" {
		t.Errorf("no templates: %v", err)
	}
	if diff := cmp.Diff([]string{"a.yaml", "sub/b.yaml"}, set.Names()); diff != "" || !set.Has("a.yaml") {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func second[T any](_ T, err error) error { return err }
