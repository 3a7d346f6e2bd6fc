package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// SetupGroup gives a command that only has subcommands its help, and an error with a suggestion for an unknown subcommand.
func SetupGroup(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2 // cobra sets its default where it makes the suggestion itself
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return UsageError("%s has no command %q%s (see %s --help)", cmd.CommandPath(), args[0], hint, cmd.CommandPath())
	}
}

// ExactArgs returns an error if a command is called with another number of arguments.
func ExactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return UsageError("%s takes %s, and got %d arguments: %s", cmd.CommandPath(), what, len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// ArgumentsForFlags lets arguments stand for flags that are not given, in their order: "uninstall db" is "uninstall --instance db".
func ArgumentsForFlags(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for _, name := range names {
			if len(args) == 0 || cmd.Flags().Changed(name) {
				continue
			}
			if err := cmd.Flags().Set(name, args[0]); err != nil {
				return UsageError("--%s: %w", name, err)
			}
			args = args[1:]
		}
		if len(args) > 0 {
			return UsageError("%s takes --%s once, as a flag or as an argument: %s is one argument too many (see %s --help)",
				cmd.CommandPath(), strings.Join(names, " and --"), strings.Join(args, " "), cmd.CommandPath())
		}
		return nil
	}
}

// AnyPackage checks the argument of commands that read a package from any source.
func AnyPackage() cobra.PositionalArgs {
	return ExactArgs(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, or a name in a repository")
}
