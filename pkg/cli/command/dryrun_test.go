package command

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestDryRun checks the values of --dry-run (P14).
func TestDryRun(t *testing.T) {
	for _, tc := range []struct {
		reason, argument, shown string
		set, local, fails       bool
	}{
		{"no flag", "", "none", false, false, false},
		{"a flag alone", "--dry-run", "server", true, false, false},
		{"by dry runs", "--dry-run=server", "server", true, false, false},
		{"by reads", "--dry-run=client", "client", true, true, false},
		{"none", "--dry-run=none", "none", false, false, false},
		{"a flag that is on", "--dry-run=true", "server", true, false, false},
		{"a flag that is off", "--dry-run=false", "none", false, false, false},
		{"another value", "--dry-run=maybe", "none", false, false, true},
	} {
		var d DryRun
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		d.Add(flags, "")
		var args []string
		if tc.argument != "" {
			args = append(args, tc.argument)
		}
		err := flags.Parse(args)
		if d.String() != tc.shown || d.IsSet() != tc.set || d.IsLocal() != tc.local || (err != nil) != tc.fails {
			t.Errorf("%s: %s, set %t, local %t, %v", tc.reason, d.String(), d.IsSet(), d.IsLocal(), err)
		}
	}
}
