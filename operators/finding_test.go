package operators

import (
	"errors"
	"testing"
)

// TestFindingText checks that the text of a finding leaves out what is not known.
func TestFindingText(t *testing.T) {
	for want, f := range map[string]Finding{
		"a.yaml:3: x[0].y: wrong": {"a.yaml", 3, "x[0].y", "wrong"},
		"a.yaml: x: wrong":        {"a.yaml", 0, "x", "wrong"},
		"a.yaml:3: wrong":         {"a.yaml", 3, "", "wrong"},
		"a.yaml: wrong":           {"a.yaml", 0, "", "wrong"},
		"x: wrong":                {"", 0, "x", "wrong"},
		"y: wrong":                {"", 3, "y", "wrong"}, // a line without a file says nothing
		"wrong":                   {"", 0, "", "wrong"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestErrors checks that a list of findings is an error of one line each, and that an empty one is none.
func TestErrors(t *testing.T) {
	if err := (Errors{}).Err(); err != nil {
		t.Errorf("no findings: %v", err)
	}
	if err := (Errors)(nil).Err(); err != nil {
		t.Errorf("no list: %v", err)
	}
	err := Errors{{File: "a", Line: 1, Message: "x"}, {Message: "y"}}.Err()
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 2 || err.Error() != "a:1: x\ny" {
		t.Errorf("got %v", err)
	}
}
