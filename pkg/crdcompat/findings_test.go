package crdcompat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFindingsText checks what a user reads of objects that would break.
func TestFindingsText(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		findings Findings
		want     string
	}{
		{"no object", Findings{}, "0 of 0 objects would break\n"},
		{"objects with and without a namespace", Findings{Checked: 3, Invalid: 2, Objects: []Object{
			{Version: "v1", Namespace: "ns", Name: "a", Problems: []string{"x", "y"}, More: 4}, {Version: "v2", Name: "b", Problems: []string{"z"}},
		}}, "2 of 3 objects would break\n  ns/a (v1): x; y; and 4 more\n  b (v2): z\n"},
		{"objects that are not named", Findings{Checked: 9, Invalid: 8, Objects: []Object{{Version: "v1", Name: "a", Problems: []string{"x"}}}},
			"8 of 9 objects would break\n  a (v1): x\n  and 7 more\n"},
		{"versions that were not checked", Findings{Unchecked: []string{"v2"}},
			"0 of 0 objects would break\n  version v2 could not be checked: its objects cannot be read before the new definition is in force\n"},
	} {
		if diff := cmp.Diff(tc.want, tc.findings.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
	if got := (BreakingChanges{}).String(); got != "" {
		t.Errorf("no breach is no text: %q", got)
	}
	rows := BreakingChanges{{Rule: RuleScope, Message: "m", Remedy: "r"}}.Rows()
	if diff := cmp.Diff([]string{"-", "-", "Scope", "m", "r"}, rows[1]); diff != "" || len(rows) != 2 {
		t.Errorf("an empty cell is a dash: %s", diff)
	}
}
