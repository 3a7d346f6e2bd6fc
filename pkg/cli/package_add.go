package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
)

// addOptions are the flags that all commands of package add have.
type addOptions struct {
	dir         string
	interactive bool
}

func (t *tool) packageAddCommand() *cobra.Command {
	o := &addOptions{}
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
	group(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&o.dir, "package", "", "folder of the package (default this one, or the one below that holds operator.yaml)")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "ask questions on stdin even if that is no terminal")
	cmd.AddCommand(t.addMaintainerCommand(o), t.addParameterCommand(o), t.addTaskCommand(o), t.addPlanCommand(o))
	return cmd
}

// upTo wants at most n arguments.
func upTo(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes %s, and got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// asking returns who asks questions, or nil if all must be said by arguments and flags. Where neither is possible, it
// is the error.
func (t *tool) asking(o *addOptions, args []string, what string) (*asker, error) {
	file, ok := t.in.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	switch {
	case o.interactive || len(args) == 0 && terminal:
		return newAsker(t.in, t.err), nil
	case len(args) == 0:
		return nil, usage("name %s: questions are asked on a terminal only, or with --interactive", what)
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

// addition is what is added to a file of a package.
type addition struct {
	file, list string
	// name is the key of the entry if the list is a map.
	name  string
	value any
	// what it is, for messages.
	what string
}

// open reads the package that something is added to.
func (o *addOptions) open() (dir string, pkg *operators.Package, err error) {
	if dir, err = packageFolder(o.dir); err != nil {
		return "", nil, err
	}
	pkg, err = operators.Read(os.DirFS(dir), operators.WithPath(dir))
	if err != nil {
		return "", nil, fmt.Errorf("package %s cannot be read; mend it first:\n%w", dir, err)
	}
	return dir, pkg, nil
}

// add writes an addition, unless the package would then have errors that it does not have.
func (t *tool) add(dir string, before *operators.Package, a addition) error {
	target := filepath.Join(dir, a.file)
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
	changed, err := insert(text, a.list, a.name, a.value)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	tree, ok := os.DirFS(dir).(fs.ReadLinkFS)
	if !ok {
		return fmt.Errorf("%s cannot be read as a folder", dir)
	}
	after, err := operators.Read(edited{tree, a.file, changed}, operators.WithPath(dir))
	if err != nil {
		return fmt.Errorf("package %s could not be read with this %s:\n%w", dir, a.what, err)
	}
	if fresh := newErrors(lint.Lint(before).Errors, lint.Lint(after).Errors); len(fresh) > 0 {
		return fmt.Errorf("package %s would not be valid with this %s:\n%w", dir, a.what, operators.Errors(fresh))
	}
	if err := writeWhole(target, changed); err != nil {
		return err
	}
	t.say("%s added to %s", a.what, target)
	return nil
}

// newErrors are those that were not there before, wherever they stand now.
func newErrors(before, after []operators.Finding) []operators.Finding {
	return slices.DeleteFunc(slices.Clone(after), func(f operators.Finding) bool {
		return slices.ContainsFunc(before, func(b operators.Finding) bool { return b.File == f.File && b.Message == f.Message })
	})
}

// edited is a folder in which one file has another text.
type edited struct {
	fs.ReadLinkFS
	name string
	text []byte
}

// Open implements fs.FS.
func (e edited) Open(name string) (fs.File, error) {
	file, err := e.ReadLinkFS.Open(name)
	if err != nil || name != e.name {
		return file, err
	}
	return editedFile{file, bytes.NewReader(e.text)}, nil
}

type editedFile struct {
	fs.File
	text io.Reader
}

// Read implements fs.File.
func (f editedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
