package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestPackageAdd: by flags and by questions, the package stays valid.
func TestPackageAdd(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Expect(t, New, command.ExitError, "", "package", "add", "maintainer", "A", "a@x")
	commandtest.Expect(t, New, 0, "", "package", "new", "web")
	t.Chdir("web")
	before, _ := os.ReadFile(filepath.Join("operator", "operator.yaml"))
	for _, tc := range []struct {
		reason, in string
		code       int
		args       []string
	}{
		{"a maintainer", "", 0, []string{"maintainer", "Ann", "ann@example.com"}},
		{"once", "", command.ExitError, []string{"maintainer", "Ann", "ann@example.com"}},
		{"a parameter", "", 0, []string{"parameter", "LIMIT", "--type", "integer", "--default", "3", "--description", "How many."}},
		{"names are kept apart", "", command.ExitError, []string{"parameter", "LIMIT"}},
		{"a list", "", 0, []string{"parameter", "HOSTS", "--type", "array", "--default", "[a, b]"}},
		{"a default of its type", "", command.ExitError, []string{"parameter", "WRONG", "--type", "integer", "--default", "x"}},
		{"templates are there", "", command.ExitError, []string{"task", "t", "--kind", "Apply", "--resource", "none.yaml"}},
		{"a task", "", 0, []string{"task", "again", "--kind", "Delete", "--resource", "config.yaml"}},
		{"flags fit the kind", "", command.ExitUsage, []string{"task", "x", "--kind", "Apply", "--pod", "p"}},
		{"a dependency", "", 0, []string{"task", "queue", "--kind", "KudoOperator", "--operator", "zookeeper"}},
		{"a plan", "", 0, []string{"plan", "clean", "--step", "one/a=again", "--step", "one/b=queue"}},
		{"tasks are there", "", command.ExitError, []string{"plan", "other", "--step", "one/a=none"}},
		{"steps have tasks", "", command.ExitUsage, []string{"plan", "other", "--step", "one"}},
		{"nothing is asked without a terminal", "", command.ExitUsage, []string{"task"}},
		{"unless that is asked for", "asked\nDummy\n\n", 0, []string{"task", "-i"}},
		{"wrong answers are asked again", "P\n\n\n\nint\ninteger\n7\nfalse\n\n", 0, []string{"parameter", "-i"}},
		{"a plan by questions", "idle\nparallel\none\na\nasked\n\n", 0, []string{"plan", "-i"}},
		{"an end is an end", "half\n", command.ExitError, []string{"plan", "-i"}},
	} {
		out, errs, code := commandtest.Run(t, New, tc.in, append([]string{"package", "add"}, tc.args...)...)
		if code != tc.code {
			t.Errorf("%s: %v: exit code %d, want %d\n%s%s", tc.reason, tc.args, code, tc.code, out, errs)
		}
	}
	commandtest.Expect(t, New, 0, "", "package", "verify", "operator")
	after, _ := os.ReadFile(filepath.Join("operator", "operator.yaml"))
	at := 0
	lines := strings.Split(string(after), "\n")
	for line := range strings.Lines(string(before)) {
		for at < len(lines) && lines[at] != strings.TrimSuffix(line, "\n") {
			at++
		}
	}
	if at >= len(lines) {
		t.Errorf("all lines stay, in their order:\n%s", after)
	}
}
