package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

type lockOptions struct {
	env *command.Env

	command.RegistryFlags
	repo    string
	upgrade []string
	check   bool
}

func newLock(env *command.Env) *cobra.Command {
	o := &lockOptions{env: env}
	cmd := &cobra.Command{
		Use:   "lock DIR",
		Short: "Write which dependencies a package has",
		Long: `Find the packages that the KudoOperator tasks of a package name, and write into operator.lock which versions they are, where they
were found, and the digests of their contents. The file is a part of the package: whoever installs the package gets the same
dependencies, or an error. A package that depends on others is signed with this file only.

What the file has already is kept, unless a task asks for something else by now, or --upgrade names the task:

  kubectl kudo package lock ./guestbook/operator
  kubectl kudo package lock ./guestbook/operator --upgrade store
  kubectl kudo package lock ./guestbook/operator --check`,
		Args: command.ExactArgs(1, "one folder that holds operator.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.upgrade, "upgrade", nil, "task whose dependency is found anew; may be repeated")
	f.BoolVar(&o.check, "check", false, "write nothing, and fail if the file does not fit the package or what it names")
	f.StringVar(&o.repo, "repo", "", "name of the repository that the dependencies are in (default the one in use)")
	o.Add(f)
	return cmd
}

func (o *lockOptions) run(ctx context.Context, dir string) (err error) {
	if o.check && len(o.upgrade) > 0 {
		return command.UsageError("--upgrade cannot be used with --check, which writes nothing")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder: package lock writes into the folder that holds operator.yaml", dir)
	}
	source, err := o.env.RemoteWith(&o.RegistryFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	chain := repository.Chain{repository.Local{Base: "."}, source}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	found, err := chain.Resolve(ctx, repository.Request{Name: absolute, Repository: o.repo})
	if err != nil {
		return err
	}
	if o.check {
		return o.checkLock(ctx, chain, found, dir)
	}
	source.Direct = true // a mirror must not choose what is locked
	return o.writeLock(ctx, chain, found, dir)
}

// checkLock returns an error if the lock of a package does not fit the package, or is not what is found.
func (o *lockOptions) checkLock(ctx context.Context, chain repository.Chain, found *repository.Found, dir string) error {
	pkg := found.Package
	if pkg.Lock == nil && len(pkg.Dependencies()) > 0 {
		return fmt.Errorf("package %s depends on others and has no %s: kubectl kudo package lock %s writes it", dir, operators.LockFileName, dir)
	}
	if _, err := chain.WithDependencies(ctx, found); err != nil {
		return err
	}
	if pkg.Lock == nil {
		noteNoDependencies(o.env, dir)
		return nil
	}
	o.env.Printf("%s fits", filepath.Join(dir, operators.LockFileName))
	return nil
}

// writeLock writes the lock of a package, and prints what is in it.
func (o *lockOptions) writeLock(ctx context.Context, chain repository.Chain, found *repository.Found, dir string) error {
	pkg := found.Package
	asked := operators.DependenciesOf(pkg.Operator.Tasks, pkg.Operator.Plans)
	for _, task := range o.upgrade {
		if !slices.ContainsFunc(asked, func(d operators.Dependency) bool { return d.Task == task }) {
			return command.UsageError("--upgrade %s: no plan of the package uses a KudoOperator task of this name", task)
		}
	}
	target := filepath.Join(dir, operators.LockFileName)
	if len(asked) == 0 {
		noteNoDependencies(o.env, dir)
		return removeLock(o.env, target, pkg)
	}
	next, rows := &operators.Lock{}, [][]string{{"TASK", "PACKAGE", "CONTENT", ""}}
	for _, d := range asked {
		entry, change, err := o.lockDependency(ctx, chain, found, d)
		if err != nil {
			return fmt.Errorf("dependency of task %q of package %s: %w", d.Task, pkg.Operator.Name, err)
		}
		next.Dependencies = append(next.Dependencies, entry)
		rows = append(rows, []string{d.Task, lockedName(entry.Found), entry.Found.Content, change})
	}
	text, err := next.Format()
	if err != nil {
		return err
	}
	if err := o.env.PrintTable(rows); err != nil {
		return err
	}
	if before, err := os.ReadFile(target); err == nil && bytes.Equal(before, text) {
		o.env.Notef("Unchanged: %s", target)
		return nil
	}
	if err := atomicfile.Write(target, text, 0o644); err != nil {
		return fmt.Errorf("write the lock of package %s: %w", dir, err)
	}
	o.env.Printf("%s written", target)
	return nil
}

// lockDependency returns the entry of a task, and what is new about it.
func (o *lockOptions) lockDependency(ctx context.Context, chain repository.Chain, found *repository.Found,
	d operators.Dependency) (operators.LockedDependency, string, error) {
	before := found.Package.Lock.Entry(d.Task)
	if before != nil && before.Wanted == d.Wanted() && !slices.Contains(o.upgrade, d.Task) {
		return *before, "kept", nil
	}
	is, err := chain.Lock(ctx, found, d)
	if err != nil {
		return operators.LockedDependency{}, "", err
	}
	change := "found"
	switch {
	case before != nil && before.Found.Content == is.Content:
		change = "the same"
	case before != nil:
		change = "was " + lockedName(before.Found)
	}
	return operators.LockedDependency{Task: d.Task, Wanted: d.Wanted(), Found: is}, change, nil
}

// lockedName returns the name and the versions of what was found, as people write them.
func lockedName(f operators.LockFound) string {
	return f.Name + " " + artifact.Tag(f.AppVersion, f.OperatorVersion)
}

// noteNoDependencies says that a package needs no lock.
func noteNoDependencies(env *command.Env, dir string) {
	env.Notef("Package %s depends on no other package, and needs no %s.", dir, operators.LockFileName)
}

// removeLock removes the lock of a package that depends on no other package.
func removeLock(env *command.Env, target string, pkg *operators.Package) error {
	if pkg.Lock == nil {
		return nil
	}
	if err := os.Remove(target); err != nil {
		return fmt.Errorf("remove the lock, which the package does not need: %w", err)
	}
	env.Printf("%s removed", target)
	return nil
}
