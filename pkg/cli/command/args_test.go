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

// TestArgumentsForFlags (P29): names may stand as arguments.
func TestArgumentsForFlags(t *testing.T) {
	for _, tc := range []struct {
		reason, line string
		want         []string
		wrong        string
	}{
		{"the flags", "--instance db --name backup", []string{"db", "backup"}, ""},
		{"the arguments, in the order of the flags", "db backup", []string{"db", "backup"}, ""},
		{"an argument for the flag that is not given", "backup --instance db", []string{"db", "backup"}, ""},
		{"the first argument only", "db", []string{"db", ""}, ""},
		{"nothing: the command says what it lacks", "", []string{"", ""}, ""},
		{"one argument too many", "db backup more", nil, "more is one argument too many"},
		{"an argument beside both flags", "db --instance db --name backup", nil, "db is one argument too many"},
	} {
		var instance, name string
		cmd := &cobra.Command{Use: "trigger", Args: ArgumentsForFlags("instance", "name"), SilenceUsage: true, SilenceErrors: true,
			RunE: func(*cobra.Command, []string) error { return nil }}
		AddInstanceFlag(cmd, &instance)
		cmd.Flags().StringVar(&name, "name", "", "")
		cmd.SetArgs(strings.Fields(tc.line))
		switch err := cmd.ExecuteContext(t.Context()); {
		case tc.wrong != "":
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.wrong)
			}
		case err != nil || instance != tc.want[0] || name != tc.want[1]:
			t.Errorf("%s: %q and %q (%v), want %q", tc.reason, instance, name, err, tc.want)
		}
	}
}
