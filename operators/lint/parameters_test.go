package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
)

// TestParameterFindings checks each linter of parameters alone, with the line of the field.
func TestParameterFindings(t *testing.T) {
	params := func(text string) files { return files{"params.yaml": text} }
	only(t, duplicateParameters, map[string]lintCase{
		"Thrice": {"each later one is reported", params("parameters:\n- {name: a}\n- {name: A}\n- {name: b}\n- {name: a}\n"),
			[]string{`E params.yaml:3: parameter "A" has a duplicate`, `E params.yaml:5: parameter "a" has a duplicate`}},
		"Unicode": {"letters of all scripts have a case", params("parameters:\n- {name: É}\n- {name: é}\n"),
			[]string{`E params.yaml:3: parameter "é" has a duplicate`}},
		"Alike": {"names that only begin alike differ", params("parameters: [{name: a}, {name: a_}, {name: ab}]"), nil},
	})
	only(t, invalidCharacters, map[string]lintCase{
		"NoName": {"a name is needed", params("parameters:\n- {default: 1}\n- {name: ''}\n"),
			[]string{"E params.yaml:2: a parameter has no name", "E params.yaml:3: a parameter has no name"}},
		"Comma": {"a comma", params("parameters: [{name: 'a,b'}]"),
			[]string{`E params.yaml:1: parameter "a,b" contains invalid character ','`}},
		"Semicolon": {"a semicolon, once for each name", params("parameters: [{name: 'a;;b'}]"),
			[]string{`E params.yaml:1: parameter "a;;b" contains invalid character ';'`}},
		"Dot": {"other characters", params("parameters: [{name: 'a.b-c_d e'}]"), nil},
	})
	only(t, checkImmutables, map[string]lintCase{
		"Optional": {"it could never get a value", params("parameters:\n- name: A\n  required: false\n  immutable: true\n"),
			[]string{`E params.yaml:4: parameter "A" is immutable but is not marked as required or has a default value`}},
		"Default": {"a default is enough", params("parameters: [{name: A, required: false, immutable: true, default: ''}]"), nil},
		"Mutable": {"one that may change", params("parameters: [{name: A, required: false}]"), nil},
	})
	only(t, types, map[string]lintCase{
		"Near": {"a type that was meant", params("parameters:\n- name: A\n  type: strin\n"),
			[]string{`W params.yaml:3: parameter "A" has the unknown type "strin", which counts as string: use string, integer, number, ` +
				`boolean, array, map, did you mean string?`}},
		"Upper": {"types are written exactly", params("parameters: [{name: A, type: Map}]"),
			[]string{`W params.yaml:1: parameter "A" has the unknown type "Map", which counts as string: use string, integer, number, ` +
				`boolean, array, map, did you mean map?`}},
		"All": {"all types",
			params("parameters: [{name: A}, {name: B, type: string}, {name: C, type: integer}, {name: D, type: number}, {name: E, type: " +
				"boolean}, {name: F, type: array}, {name: G, type: map}]"), nil},
	})
	only(t, groups, map[string]lintCase{
		"NoName": {"a group has a name", params("groups:\n- {displayName: x}\n"), []string{"E params.yaml:2: a parameter group has no name"}},
		"Case":   {"groups differ in letter case", params("groups: [{name: a}, {name: A}]\nparameters: [{name: P, group: A}]"), nil},
		"Slash": {"a slash is reported once", params("groups: [{name: a/b}, {name: a/b}]"),
			[]string{"E params.yaml:1: parameter group \"a/b\" contains invalid character '/'"}},
		"None": {"no group is declared", params("parameters:\n- name: P\n  group: a\n"),
			[]string{`E params.yaml:3: parameter group "a" of parameter "P" is not declared`}},
		"Without": {"a parameter needs no group", params("groups: [{name: a}]\nparameters: [{name: P}]"), nil},
	})
	only(t, checkSensitives, map[string]lintCase{
		"Default": {"a default is in the package", params("parameters:\n- name: P\n  sensitive: true\n  default: x\n"),
			[]string{`W params.yaml:4: parameter "P" is sensitive, and has a default, which is no secret: remove it`}},
		"Empty":    {"an empty one is no secret", params("parameters: [{name: P, sensitive: true, default: ''}]"), nil},
		"None":     {"no default", params("parameters: [{name: P, sensitive: true}]"), nil},
		"NoSecret": {"a parameter that is no secret", params("parameters: [{name: P, default: x}]"), nil},
	})
	only(t, advanced, map[string]lintCase{
		"Required": {"users would have to set it", params("parameters:\n- name: P\n  advanced: true\n"),
			[]string{`E params.yaml:3: parameter "P" is advanced and required, but has no default: users would have to set it`}},
		"Optional": {"one that is not required", params("parameters: [{name: P, advanced: true, required: false}]"), nil},
		"Default":  {"one with a default", params("parameters: [{name: P, advanced: true, default: ''}]"), nil},
	})
	only(t, triggers, map[string]lintCase{
		"Other": {"a plan that exists", params("parameters: [{name: P, trigger: deploy}]"), nil},
		"Missing": {"one that does not", params("parameters:\n- name: P\n  trigger: backup\n"),
			[]string{`E params.yaml:3: plan "backup" used in parameter "P" is not defined`}},
	})
	only(t, bounds, map[string]lintCase{
		"Both": {"each wrong value is reported at its place",
			params("parameters:\n- name: P\n  type: integer\n  default: c\n  enum:\n  - a\n  - 1\n  - b\n"),
			[]string{`E params.yaml:6: parameter "P" has the value "a", which is not of type integer: correct the enum in params.yaml`,
				`E params.yaml:8: parameter "P" has the value "b", which is not of type integer: correct the enum in params.yaml`,
				`E params.yaml:4: parameter "P" has the value "c", which is not of type integer: correct the default in params.yaml`}},
		"Pattern": {"a pattern that cannot be used hides what would follow from it",
			params("parameters:\n- {name: P, pattern: '(', enum: []}\n- {name: Q, type: boolean, default: maybe}\n"),
			[]string{"E params.yaml:2: parameter \"P\" has a pattern that cannot be used: error parsing regexp: missing closing ): `(`: " +
				"write a regular expression of RE2, see https://github.com/google/re2/wiki/Syntax", `E params.yaml:3: parameter "Q" has the ` +
				`value "maybe", which is not of type boolean: correct the default in params.yaml`}},
	})
}

// TestToggles checks which toggle tasks the linter reports, and which parameters it counts as used by them.
func TestToggles(t *testing.T) {
	const params = "parameters: [{name: ON, default: 'true'}, {name: OFF, default: 'true'}]"
	only(t, toggleParameters, map[string]lintCase{
		"Toggle": {"a name that was meant",
			files{"params.yaml": params,
				"operator.yaml": operator("{name: b, kind: Toggle, spec: {parameter: OF}}")},
			[]string{`E operator.yaml:6: parameter "OF" in ToggleTask b is not defined, did you mean ON?`}},
		"Operator": {"of a dependency",
			files{"params.yaml": params,
				"operator.yaml": operator("{name: b, kind: KudoOperator, spec: {enablingParameter: OFFF}}")},
			[]string{`E operator.yaml:6: parameter "OFFF" in KudoOperatorTask b is not defined, did you mean OFF?`}},
		"Other": {"fields of other kinds do not matter",
			files{"operator.yaml": operator("{name: b, kind: Apply, spec: {parameter: X, enablingParameter: Y}}")}, nil},
		"Case": {"names are written exactly",
			files{"params.yaml": params,
				"operator.yaml": operator("{name: b, kind: Toggle, spec: {parameter: on}}")},
			[]string{`E operator.yaml:6: parameter "on" in ToggleTask b is not defined, did you mean ON?`}},
	})
	only(t, parametersUsed, map[string]lintCase{
		"Both": {"switches use parameters",
			files{"params.yaml": params,
				"operator.yaml": operator("{name: b, kind: Toggle, spec: {parameter: ON, enablingParameter: OFF}}")}, nil},
		"None": {"nothing uses them", files{"params.yaml": params},
			[]string{`W params.yaml:1: parameter "ON" defined but not used.`, `W params.yaml:1: parameter "OFF" defined but not used.`}},
	})
}

// TestProse checks texts that people read, at the edges of each rule.
func TestProse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		check  func(string) []string
		text   string
		want   []string
	}{
		"DisplayRight": {"a capital letter in front", displayed, "Replicas of the server", nil},
		"DisplayDigit": {"what has no case", displayed, "3 replicas", nil},
		"DisplayOther": {"capital letters of all scripts", displayed, "Übergröße", nil},
		"DisplaySmall": {"small letters of all scripts", displayed, "über",
			[]string{"has a displayName that does not begin with a capital letter"}},
		"DisplayColon":   {"a colon alone", displayed, ":", []string{"has a displayName that ends with ':'"}},
		"DisplayNone":    {"no text", displayed, "", []string{"has no displayName"}},
		"HintRight":      {"a full stop", hinted, "Use 3.", nil},
		"HintSpace":      {"a space behind it", hinted, "Use 3. ", []string{"has a hint that does not end with '.'"}},
		"HintNone":       {"no text", hinted, "", []string{"has no hint"}},
		"DescribedRight": {"each of the ends", described, "Is it (really)", nil},
		"DescribedAsk":   {"a question", described, "Is it?", nil},
		"DescribedCry":   {"an exclamation", described, "Do it!", nil},
		"DescribedSpace": {"white space around does not count", described, "\n  Do it.\n", nil},
		"DescribedBlank": {"white space alone is no text", described, " \n", []string{"has no description"}},
		"DescribedOther": {"another sign at the end", described, "do it…",
			[]string{"has a description that does not end with one of '.!?)'", "has a description that does not begin with a capital letter"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.check(tc.text)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestParamCheckNames checks what can be asked for, in which order it is checked, and the message for what does not exist.
func TestParamCheckNames(t *testing.T) {
	if diff := cmp.Diff([]string{"display", "hint", "desc", "type", "hasgroup", "groups", "all"}, ParamCheckNames()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const want = `there is no parameter check "Display": use display, hint, desc, type, hasgroup, groups, all`
	if chain, err := ParamChecks("hint", "Display"); chain != nil || err == nil || err.Error() != want {
		t.Errorf("got %v, %v", chain, err)
	}
	if chain, err := ParamChecks(); len(chain) != 0 || err != nil {
		t.Errorf("no names: %v, %v", chain, err)
	}
	for _, names := range [][]string{{"hint", "display"}, {"display", "hint", "hint"}} {
		chain, err := ParamChecks(names...)
		if err != nil || len(chain) != 2 {
			t.Fatalf("%v: %d, %v", names, len(chain), err)
		}
		found := chain.Lint(NewSubject(files{"params.yaml": "parameters: [{name: A}]"}.read(t)))
		want := []string{`W params.yaml:1: parameter "A" has no displayName`, `W params.yaml:1: parameter "A" has no hint`}
		if diff := cmp.Diff(want, lines(found)); diff != "" {
			t.Errorf("%v: -want +got:\n%s", names, diff)
		}
	}
	if got := eachParameter("x", func(operators.Parameter) []string { return nil })(NewSubject(files{}.read(t))); lines(got) != nil {
		t.Errorf("no parameters: %v", got)
	}
}
