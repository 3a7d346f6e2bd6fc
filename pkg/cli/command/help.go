package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// SetupHelp makes the help of each command show the command's own flags only, and adds the command options, which shows those of all
// commands. kubectl does the same.
func SetupHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error { return printUsage(cmd.OutOrStdout(), cmd) })
	root.AddCommand(&cobra.Command{
		Use: "options", Short: "Show the flags that all commands take", DisableFlagsInUseLine: true, Args: ExactArgs(0, "no arguments"),
		Long: "Show the flags that all commands take, such as those that choose a cluster and a namespace.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "All commands take these flags:\n\n%s", root.PersistentFlags().FlagUsages())
			return err
		},
	})
}

// printUsage prints how a command is called, the commands below it, and its own flags.
func printUsage(out io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "Usage:\n  %s COMMAND [flags]\n\nCommands:\n", cmd.CommandPath())
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	} else {
		fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
	}
	if own := ownFlags(cmd); own.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsages())
	}
	b.WriteString("\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "%s COMMAND --help shows the flags of a command.\n", cmd.CommandPath())
	}
	fmt.Fprintf(&b, "%s options shows the flags that all commands take.\n", cmd.Root().CommandPath())
	_, err := io.WriteString(out, b.String())
	return err
}

// ownFlags returns the flags of a command, and of the commands above it, without those of all commands.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	add := func(f *pflag.Flag) {
		if f.Name != "help" && cmd.Root().PersistentFlags().Lookup(f.Name) != f {
			own.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return own
}
