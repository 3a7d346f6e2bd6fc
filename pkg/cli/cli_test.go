package cli

import (
	"io"
	"strings"
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
