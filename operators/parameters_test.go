package operators

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultTexts checks the text that a default of each notation becomes; nil is no default.
func TestDefaultTexts(t *testing.T) {
	text := func(s string) *string { return &s }
	for written, want := range map[string]*string{
		"": nil, "~": nil, "null": nil, "'null'": text("null"), "''": text(""), "0777": text("511"), "'0777'": text("0777"), "0x1F": text("31"),
		"1_000": text("1000"),
		"1.10":  text("1.10"), "1e3": text("1000"), "on": text("true"), "No": text("false"), "'on'": text("on"),
		"2020-01-01": text("2020-01-01"), "1:30": text("1:30"),
		"{}": text("{}\n"), "[]": text("[]\n"), "[~]": text("- null\n"), "[1, '1', yes]": text("- 1\n- \"1\"\n- true\n"), "!!str 1": text("1"),
		"|\n    a\n    b":                text("a\nb\n"),
		"123456789012345678901234567890": text("123456789012345678901234567890"), "{b: {d: 1, c: 2}, a: x}": text("a: x\nb:\n  c: 2\n  d: 1\n"),
	} {
		p, err := Read(pkg("name: x", "parameters:\n- name: A\n  default: "+written+"\n"))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if diff := cmp.Diff(want, p.Params.Parameters[0].Default); diff != "" {
			t.Errorf("default %s: -want +got:\n%s", written, diff)
		}
	}
}

// TestEnumTexts checks that each allowed value becomes text as a default does, and that a null is the empty text.
func TestEnumTexts(t *testing.T) {
	p, err := Read(pkg("name: x", "x: &x 010\nparameters: [{name: A, enum: [1.10, 0x10, on, 'on', ~, '', [a], *x]}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1.10", "16", "true", "on", "", "", "- a\n", "8"}
	if diff := cmp.Diff(want, *p.Params.Parameters[0].Enum); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestParameterFlags checks that what the file says wins over the defaults of the format, in both directions.
func TestParameterFlags(t *testing.T) {
	for written, want := range map[string][2]bool{
		"": {true, false}, ", required: true, immutable: false": {true, false}, ", required: false, immutable: true": {false, true},
		", required: ~, immutable: ~": {true, false},
	} {
		p, err := Read(pkg("name: x", "parameters: [{name: A"+written+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		if a := p.Params.Parameters[0]; a.IsRequired() != want[0] || a.IsImmutable() != want[1] {
			t.Errorf("%q: required %v, immutable %v", written, a.IsRequired(), a.IsImmutable())
		}
	}
	p, err := Read(pkg("name: x", "parameters: [{name: A}, {name: B}]"))
	if err != nil {
		t.Fatal(err)
	}
	*p.Params.Parameters[0].Required = false
	if !p.Params.Parameters[1].IsRequired() {
		t.Error("two parameters share a flag")
	}
}

// TestDefaultErrors checks that the reader reports each default that cannot be text, at the field of the parameter.
func TestDefaultErrors(t *testing.T) {
	deep := strings.Repeat("[", 150) + strings.Repeat("]", 150)
	want := []string{
		"params.yaml:3: parameters[0].default: line 3: nested deeper than 200 levels once aliases are expanded",
		"params.yaml:5: parameters[1].default: line 5: a key must be a single value, not a map or list",
		"params.yaml:6: parameters[2].enum[0]: line 6: << needs a map or a list of maps",
	}
	params := "x: &x " + deep + "\nparameters:\n- {name: A, default: " + strings.Repeat("[", 100) + "*x" + strings.Repeat("]", 100) + "}\n" +
		"- name: B\n  default: {[a]: b}\n- {name: C, enum: [{<<: 1}]}\n"
	got := readErrors(t, "name: x", params)
	if len(got) > 0 {
		got[0] = strings.Replace(got[0], "line 1:", "line 3:", 1) // the line of the anchor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
