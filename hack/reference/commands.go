package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kudo.dev/kudo/pkg/cli"
	"kudo.dev/kudo/pkg/cli/command"
)

// exitCodes is the file that declares the exit codes.
const exitCodes = "pkg/cli/command/errors.go"

// writeCommands writes the page of commands, their flags and exit codes, and of the flags of the manager.
func writeCommands(root string) (string, error) {
	codes, err := readExitCodes(filepath.Join(root, exitCodes))
	if err != nil {
		return "", err
	}
	manager, err := readManagerFlags(root)
	if err != nil {
		return "", err
	}
	kudo := cli.NewRoot(command.NewEnv(strings.NewReader(""), io.Discard, io.Discard))
	var out strings.Builder
	fmt.Fprintf(&out, header, "Commands, flags, exit codes", "It has each command and flag of `kubectl kudo`, from the command itself, and "+
		"each flag of the manager. [The command line](../cli.md) explains the commands with examples.")
	out.WriteString("## Exit codes\n\n| exit code | meaning |\n|---|---|\n| 0 | success |\n" + codes)
	fmt.Fprintf(&out, "\n## Flags of all commands\n\n%s", flagTable(kudo.PersistentFlags()))
	var errs []error
	listCommands(kudo, func(cmd *cobra.Command) {
		if cmd.Short == "" {
			errs = append(errs, fmt.Errorf("command %s has no short text", cmd.CommandPath()))
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s.\n\n`%s`\n", cmd.CommandPath(), cell(cmd.Short), cmd.UseLine())
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				errs = append(errs, fmt.Errorf("flag --%s of %s has no description", f.Name, cmd.CommandPath()))
			}
		})
		if cmd.HasAvailableLocalFlags() {
			out.WriteString("\n" + flagTable(cmd.LocalFlags()))
		}
	})
	out.WriteString("\n## The manager\n\n`kubectl kudo init` sets these flags of the program `manager`.\n\n" + manager)
	return out.String(), errors.Join(errs...)
}

// listCommands calls a function for all commands below one that can be run.
func listCommands(parent *cobra.Command, call func(*cobra.Command)) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
			call(cmd)
		}
		listCommands(cmd, call)
	}
}

// flagTable is a table of flags. Defaults below the user's home folder are shown by its variable: the page is the same on each machine.
func flagTable(flags *pflag.FlagSet) string {
	var out strings.Builder
	out.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	home, _ := os.UserHomeDir()
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		flag := "`--" + f.Name
		if f.Shorthand != "" && f.Shorthand != f.Name {
			flag = "`-" + f.Shorthand + ", --" + f.Name
		}
		if f.Name == f.Shorthand {
			flag = "`-" + f.Name
		}
		if name != "" {
			flag += " " + name
		}
		value := f.DefValue
		if home != "" && strings.HasPrefix(value, home) {
			value = "$HOME" + strings.TrimPrefix(value, home)
		}
		if value == "[]" {
			value = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&out, "| %s` | %s | %s |\n", cell(flag), cell(value), cell(usage))
	})
	return out.String()
}

// readExitCodes reads the constants of exit codes and the comments behind them, as rows of a table.
func readExitCodes(file string) (string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	var errs []error
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Exit") || len(spec.Values) != 1 {
			return true
		}
		code, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || spec.Comment.Text() == "" {
			errs = append(errs, fmt.Errorf("%s: %s has no comment behind it that says what it means", file, spec.Names[0].Name))
			return true
		}
		fmt.Fprintf(&out, "| %s | %s |\n", code.Value, cell(spec.Comment.Text()))
		return true
	})
	if out.Len() == 0 {
		errs = append(errs, fmt.Errorf("%s declares no exit codes", file))
	}
	return out.String(), errors.Join(errs...)
}

// managerFlag is a flag as package flag prints it: its name and type, and below it or behind it what it does.
var managerFlag = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?\n?\s+(.+(?:\n {4}\t.+)*)$`)

// managerDefault is what package flag prints behind a flag that has a default.
var managerDefault = regexp.MustCompile(`(?s)^(.*) \(default "?([^"]*?)"?\)$`)

// readManagerFlags asks the manager for its flags, as a table.
func readManagerFlags(root string) (string, error) {
	var help bytes.Buffer
	cmd := exec.Command("go", "run", "./cmd/manager", "--help")
	cmd.Dir, cmd.Stderr = root, &help
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go run ./cmd/manager --help: %w\n%s", err, help.String())
	}
	found := managerFlag.FindAllStringSubmatch(help.String(), -1)
	if len(found) == 0 {
		return "", fmt.Errorf("the help of the manager has no flags:\n%s", help.String())
	}
	var out strings.Builder
	out.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	for _, m := range found {
		usage, value := cell(m[3]), ""
		if parts := managerDefault.FindStringSubmatch(usage); parts != nil {
			usage, value = parts[1], "`"+parts[2]+"`"
		}
		fmt.Fprintf(&out, "| `--%s` | %s | %s |\n", cell(m[1]+" "+cmp.Or(m[2], "")), value, usage)
	}
	return out.String(), nil
}
