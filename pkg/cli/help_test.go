package cli

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
)

var update = flag.Bool("update", false, "write the golden files")

// pages returns the commands that have a page of help, and the page of each.
func pages(t *testing.T) (paths []string, text map[string]string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	text = map[string]string{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()))
		var out bytes.Buffer
		if code := Main(append(strings.Fields(path), "--help"), strings.NewReader(""), &out, io.Discard); code != 0 {
			t.Errorf("%s --help: exit code %d", cmd.CommandPath(), code)
		}
		paths = append(paths, path)
		text[path] = strings.ReplaceAll(out.String(), home, "$HOME")
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() && child.Name() != "completion" {
				visit(child)
			}
		}
	}
	visit(NewRoot(command.NewEnv(strings.NewReader(""), io.Discard, io.Discard)))
	return paths, text
}

// TestHelp (P29): a page of help shows the command's own flags only, has an example, and fits on a screen.
func TestHelp(t *testing.T) {
	const most = 40
	// init has a flag for each setting of the manager; test has those of kuttl; install and upgrade have nine for clusters.
	longer := map[string]int{
		// the values of the manager's Deployment have flags of their own
		"init":    64,
		"install": 50,
		"upgrade": 47,
	}
	paths, text := pages(t)
	var all strings.Builder
	for _, path := range paths {
		page := text[path]
		all.WriteString("$ kubectl kudo " + path + " --help\n" + page + "\n")
		limit := most
		if n, found := longer[path]; found {
			limit = n
		}
		if n := strings.Count(page, "\n"); n > limit {
			t.Errorf("the help of %q has %d lines, and %d are allowed", path, n, limit)
		}
		body, usage, _ := strings.Cut(page, "\nUsage:\n")
		if !strings.Contains(usage, "\nCommands:\n") && !strings.Contains(body, "\n  kubectl kudo ") {
			t.Errorf("the help of %q has no example before its flags", path)
		}
		for _, common := range []string{"--kubeconfig", "--as-group", "--validate-install"} {
			if strings.Contains(usage, common+" ") {
				t.Errorf("the help of %q shows %s, which all commands have", path, common)
			}
		}
	}
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("the help has changed (go test ./pkg/cli -update writes it): -want +got\n%s", diff)
	}
}

// TestExamples checks that each example is of a command, and that its flags are flags of that command.
func TestExamples(t *testing.T) {
	for path, lines := range examples {
		for _, line := range lines {
			root := NewRoot(command.NewEnv(strings.NewReader(""), io.Discard, io.Discard))
			cmd, rest, err := root.Find(strings.Fields(path))
			if err != nil || len(rest) > 0 {
				t.Errorf("examples are for %q, which is no command", path)
				continue
			}
			words, _, _ := strings.Cut(line, " > ")
			arguments := strings.Fields(strings.TrimPrefix(words, path))
			if err := cmd.ParseFlags(arguments); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// TestOptions (P29): the flags of all commands have a page of their own.
func TestOptions(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"options"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, flag := range []string{"--kubeconfig", "--namespace", "--as", "--home", "--validate-install", "--request-timeout"} {
		if !strings.Contains(out.String(), flag+" ") {
			t.Errorf("options does not show %s:\n%s", flag, out.String())
		}
	}
}
