package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/edit"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
)

// addOptions are the flags that all commands of package add have.
type addOptions struct {
	env *command.Env

	dir         string
	interactive bool
}

func newAdd(env *command.Env) *cobra.Command {
	o := &addOptions{env: env}
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a maintainer, a parameter, a task or a plan to a package",
		Long: `Add a maintainer, a parameter, a task or a plan to the package in this folder, or in the one folder below that holds
operator.yaml. Comments and the order of the files are kept. Nothing is written if the package would have errors that it
does not have now.

Without arguments, and on a terminal, questions are asked.

  kubectl kudo package add parameter REPLICAS --type integer --default 3 --description "How many servers run."
  kubectl kudo package add task server --kind Apply --resource server.yaml
  kubectl kudo package add plan backup --step dump/job=dump,clean`,
	}
	command.SetupGroup(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&o.dir, "package", "", "folder of the package (default this one, or the one below that holds operator.yaml)")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "ask questions on stdin even if that is no terminal")
	cmd.AddCommand(newAddMaintainer(o), newAddParameter(o), newAddTask(o), newAddPlan(o))
	return cmd
}

// maxArgs wants at most n arguments.
func maxArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return command.UsageError("%s takes %s, and got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// openPrompter returns a prompter, or nil if all must be said by arguments and flags. Where neither is possible, it
// is the error.
func (o *addOptions) openPrompter(args []string, what string) (*command.Prompter, error) {
	file, ok := o.env.In.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	switch {
	case o.interactive || len(args) == 0 && terminal:
		return command.NewPrompter(o.env.In, o.env.Err), nil
	case len(args) == 0:
		return nil, command.UsageError("name %s: questions are asked on a terminal only, or with --interactive", what)
	}
	return nil, nil
}

// packageFolder is where the package is that something is added to.
func packageFolder(dir string) (string, error) {
	if dir != "" {
		if _, err := os.Stat(filepath.Join(dir, operators.OperatorFileName)); err != nil {
			return "", fmt.Errorf("--package: %w", err)
		}
		return dir, nil
	}
	if _, err := os.Stat(operators.OperatorFileName); err == nil {
		return ".", nil
	}
	below, err := filepath.Glob(filepath.Join("*", operators.OperatorFileName))
	if err != nil {
		return "", err
	}
	switch len(below) {
	case 0:
		return "", errors.New("neither this folder nor one below holds operator.yaml: go to the package, or name it by --package")
	case 1:
		return filepath.Dir(below[0]), nil
	}
	return "", fmt.Errorf("several folders below hold operator.yaml (%s and %s): go to one, or name it by --package", below[0], below[1])
}

// open reads the package that something is added to.
func (o *addOptions) open() (dir string, pkg *operators.Package, err error) {
	if dir, err = packageFolder(o.dir); err != nil {
		return "", nil, err
	}
	pkg, err = operators.Read(os.DirFS(dir), operators.WithPath(dir))
	if err != nil {
		return "", nil, fmt.Errorf("package %s cannot be read; correct it first:\n%w", dir, err)
	}
	return dir, pkg, nil
}

// insertEntry writes an entry into a file of a package, unless the package would have errors with it that it does not have without.
// Messages call it what.
func insertEntry(env *command.Env, dir string, before *operators.Package, file, what string, entry edit.Entry) error {
	target := filepath.Join(dir, file)
	info, err := os.Lstat(target)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a link: change the file that it leads to", target)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	changed, err := edit.Insert(text, entry)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	tree, ok := os.DirFS(dir).(fs.ReadLinkFS)
	if !ok {
		return fmt.Errorf("%s cannot be read as a folder", dir)
	}
	after, err := operators.Read(edit.Overlay(tree, file, changed), operators.WithPath(dir))
	if err != nil {
		return fmt.Errorf("package %s could not be read with this %s:\n%w", dir, what, err)
	}
	if fresh := edit.NewFindings(lint.Lint(before).Errors, lint.Lint(after).Errors); len(fresh) > 0 {
		return fmt.Errorf("package %s would not be valid with this %s:\n%w", dir, what, operators.Errors(fresh))
	}
	if err := atomicfile.Write(target, changed, 0o644); err != nil {
		return err
	}
	env.Printf("%s added to %s", what, target)
	return nil
}
