package command

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// helpOf returns what a command line prints, below a root with a flag of all commands, a group with a flag of the commands below it, and a
// command with a flag of its own.
func helpOf(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "kubectl-kudo", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kudo"}}
	SetupGroup(root)
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.PersistentFlags().String("context", "", "name of the context")
	group := &cobra.Command{Use: "cache", Short: "Work with a cache"}
	SetupGroup(group)
	group.PersistentFlags().String("dir", "", "folder of the cache")
	list := &cobra.Command{Use: "list", Short: "List what is in the cache", RunE: func(*cobra.Command, []string) error { return nil }}
	list.Flags().Bool("long", false, "with digests")
	list.Flags().Bool("old", false, "no effect")
	if err := list.Flags().MarkHidden("old"); err != nil {
		t.Fatal(err)
	}
	hidden := &cobra.Command{Use: "hidden", Short: "Do what users do not ask for", Hidden: true, RunE: list.RunE}
	group.AddCommand(list, hidden)
	root.AddCommand(group)
	SetupHelp(root)
	root.SetArgs(strings.Fields(line))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String()
}

// TestHelpPages (P29): a page has the flags of its command and of the group above it, and names the page of those of all commands.
func TestHelpPages(t *testing.T) {
	for _, tc := range []struct {
		reason, line string
		has, lacks   []string
	}{
		{"a command", "cache list --help",
			[]string{"List what is in the cache\n\nUsage:\n  kubectl kudo cache list [flags]\n", "--long", "--dir", "kubectl kudo options shows"},
			[]string{"--context", "--help", "--old", "Commands:"}},
		{"a group", "cache --help",
			[]string{"Usage:\n  kubectl kudo cache COMMAND [flags]\n\nCommands:\n  list", "--dir", "kubectl kudo cache COMMAND --help shows the flags of a command."},
			[]string{"--context", "--long", "hidden"}},
		{"a group without a command", "cache", []string{"Commands:\n  list"}, nil},
		{"the root", "--help", []string{"kubectl kudo COMMAND [flags]", "  cache", "  options"}, []string{"--context", "--dir", "Flags:"}},
		{"the flags of all commands", "options", []string{"All commands take these flags:\n\n      --context string"}, []string{"--dir", "--long"}},
		{"the help of options", "options --help", []string{"Usage:\n  kubectl kudo options\n"}, []string{"--context"}},
	} {
		page := helpOf(t, tc.line)
		for _, text := range tc.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in\n%s", tc.reason, text, page)
			}
		}
		for _, text := range tc.lacks {
			if strings.Contains(page, text) {
				t.Errorf("%s: %q in\n%s", tc.reason, text, page)
			}
		}
	}
}
