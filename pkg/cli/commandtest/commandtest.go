// Package commandtest helps to test commands: it runs them without a cluster, and compares their output with files.
package commandtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
)

var update = flag.Bool("update", false, "write the golden files")

// Updating reports whether the flag -update is set. Tests with files of their own kinds write them then.
func Updating() bool { return *update }

// Golden compares output with a file, which the flag -update writes.
func Golden(t *testing.T, file, got, reason string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test with -update writes the file): -want +got:\n%s", reason, diff)
	}
}

// Constructor makes a command of kubectl-kudo.
type Constructor func(*command.Env) *cobra.Command

// Run runs a command line, whose first argument is the name of the command, on this input. It returns stdout, stderr and
// the exit code.
func Run(t testing.TB, newCommand Constructor, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := command.NewEnv(strings.NewReader(in), &stdout, &stderr)
	root := &cobra.Command{
		Use: "kubectl-kudo", SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kudo"},
	}
	command.SetupGroup(root)
	env.AddFlags(root)
	root.AddCommand(newCommand(env))
	root.SetArgs(args)
	code = env.ReportError(root.ExecuteContext(t.Context()))
	return stdout.String(), stderr.String(), code
}

// Expect runs a command line as Run does, and fails the test if the exit code is another.
func Expect(t *testing.T, newCommand Constructor, code int, in string, args ...string) (out, errs string) {
	t.Helper()
	out, errs, got := Run(t, newCommand, in, args...)
	if got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, out, errs)
	}
	return out, errs
}

// ExpectGolden runs a command line as Run does, and compares the command line and its output with a golden file in testdata, named
// after the command. It fails the test if the exit code is another.
func ExpectGolden(t *testing.T, newCommand Constructor, code int, name, reason string, args ...string) {
	t.Helper()
	out, errs, got := Run(t, newCommand, "", args...)
	if got != code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", reason, got, code, out, errs)
	}
	text := fmt.Sprintf("$ kubectl kudo %s\n%s", strings.Join(args, " "), out)
	if errs != "" {
		text += "stderr:\n" + errs
	}
	Golden(t, filepath.Join("testdata", args[0], name+".golden"), text, reason)
}
