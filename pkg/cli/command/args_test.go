package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runArgs runs a command with a subcommand, and returns its output and its exit code.
func runArgs(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := NewEnv(strings.NewReader(""), &out, &errs)
	group := &cobra.Command{Use: "plan", Short: "Look at plans", SilenceUsage: true, SilenceErrors: true}
	SetupGroup(group)
	env.AddFlags(group)
	group.AddCommand(&cobra.Command{Use: "status NAME", Args: ExactArgs(1, "one name"), RunE: func(*cobra.Command, []string) error {
		env.Printf("ran")
		return nil
	}})
	group.SetArgs(args)
	code = env.ReportError(group.ExecuteContext(t.Context()))
	return out.String() + errs.String(), code
}

// TestGroup checks what a command says that has only subcommands.
func TestGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Help":      {"without arguments, it is its help", nil, 0, "Look at plans"},
		"Command":   {"with a subcommand, it runs it", []string{"status", "x"}, 0, "ran\n"},
		"Prefix":    {"the begin of a name is no name", []string{"stat"}, ExitUsage, `plan has no command "stat", did you mean status? (see plan --help)`},
		"Typo":      {"two letters may be wrong", []string{"statsu"}, ExitUsage, `plan has no command "statsu", did you mean status?`},
		"Other":     {"another word is no typo", []string{"get"}, ExitUsage, `plan has no command "get" (see plan --help)`},
		"None":      {"a subcommand has its arguments", []string{"status"}, ExitUsage, "plan status takes one name, and got 0 arguments: "},
		"Two":       {"and no more", []string{"status", "a", "b"}, ExitUsage, "plan status takes one name, and got 2 arguments: a b"},
		"Flag":      {"a flag that does not exist", []string{"status", "--nope"}, ExitUsage, "unknown flag: --nope (see plan status --help)"},
		"FlagValue": {"a flag without its value", []string{"status", "x", "--namespace"}, ExitUsage, "flag needs an argument: --namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := runArgs(t, tc.args...)
			if code != tc.code || !strings.Contains(output, tc.want) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", tc.reason, code, tc.code, tc.want, output)
			}
		})
	}
}
