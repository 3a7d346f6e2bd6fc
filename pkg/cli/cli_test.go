package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
)

// TestWaitTimeout checks that each command that waits has the flag --wait-time, and accepts --wait-timeout as its other name (D11).
func TestWaitTimeout(t *testing.T) {
	var waits []string
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		given, other := cmd.Flags().Lookup("wait-time"), cmd.Flags().Lookup("wait-timeout")
		if given != other {
			t.Errorf("%s: --wait-time is %v, --wait-timeout %v", cmd.CommandPath(), given, other)
		}
		if given != nil {
			waits = append(waits, cmd.CommandPath())
			if err := cmd.ParseFlags([]string{"--wait-timeout=7"}); err != nil || given.Value.String() != "7s" {
				t.Errorf("%s: it waits %s (%v)", cmd.CommandPath(), given.Value, err)
			}
		} else if cmd.Flags().Lookup("wait") != nil {
			t.Errorf("%s has --wait, and nothing that says how long", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(NewRoot(command.NewEnv(strings.NewReader(""), io.Discard, io.Discard)))
	if len(waits) < 10 {
		t.Errorf("only these wait: %v", waits)
	}
}

// TestMainCodes checks the exit codes of command lines that need no cluster.
func TestMainCodes(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("HOME", t.TempDir())
	for line, want := range map[string]int{"version": 0, "image push --help": 0, "image verify /none": 1, "image verify": 2, "image none": 2} {
		var out, errs bytes.Buffer
		if code := Main(strings.Fields(line), strings.NewReader(""), &out, &errs); code != want || (code != 0) != strings.HasPrefix(errs.String(), "Error: ") {
			t.Errorf("%s: exit code %d, want %d\n%s", line, code, want, errs.String())
		}
	}
}

// TestInterrupt checks that an interrupt ends a command that waits for an API server.
func TestInterrupt(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("HOME", t.TempDir())
	go func() {
		<-asked
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}()
	var out, errs bytes.Buffer
	if code := Main([]string{"get", "instances", "--server", server.URL}, strings.NewReader(""), &out, &errs); code != 1 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// TestPageOnlyShows is U5 and U7: without a flag, kubectl kudo ui changes nothing, and no flag lets other machines see the page.
func TestPageOnlyShows(t *testing.T) {
	cmd, _, err := NewRoot(command.NewEnv(strings.NewReader(""), io.Discard, io.Discard)).Find([]string{"ui"})
	if err != nil || cmd.Name() != "ui" {
		t.Fatalf("there is no command ui: %v", err)
	}
	if acts := cmd.Flags().Lookup("allow-actions"); acts == nil || acts.DefValue != "false" {
		t.Errorf("--allow-actions is %+v", acts)
	}
	for _, name := range []string{"address", "bind"} {
		if cmd.Flags().Lookup(name) != nil {
			t.Errorf("ui has the flag --%s", name)
		}
	}
}
