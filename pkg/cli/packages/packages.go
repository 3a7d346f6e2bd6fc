// Package packages has the commands that write, check, print and pack operator packages.
package packages

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

// New returns the command package.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "package",
		Short: "Manage operator packages",
		Long: `Write, check, print, pack, sign and push operator packages. None of these commands needs a cluster, but for from-helm, and for
those that sign or verify an OperatorVersion.

  kubectl kudo package new web
  kubectl kudo package verify web/operator
  kubectl kudo package render web/operator -p REPLICAS=3
  kubectl kudo package create web/operator
  kubectl kudo package push web/operator oci://registry.example.com/kudo`,
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newCRDDiff(env), newNew(env), newAdd(env), newVerify(env), newSign(env), newAttest(env), newList(env), newRender(env),
		newRights(env), newLock(env), newCreate(env), newPush(env), newPull(env), newCopy(env), newFromHelm(env))
	return cmd
}

// onePackage checks the argument of commands that check a package on this disk.
func onePackage() cobra.PositionalArgs {
	return command.ExactArgs(1, "one package: a folder that holds operator.yaml, or a .tgz")
}

// lintPackage reads and checks a package. If it cannot be read, the package is nil and the findings have the reason.
func lintPackage(ctx context.Context, name string, more ...lint.Linter) (*operators.Package, lint.Findings, error) {
	found, findings, err := readAndLint(ctx, name, more...)
	if found == nil {
		return nil, findings, err
	}
	return found.Package, findings, err
}

// readAndLint is lintPackage with where the package was found.
func readAndLint(ctx context.Context, name string, more ...lint.Linter) (*repository.Found, lint.Findings, error) {
	found, err := repository.Resolve(ctx, name, ".")
	var unreadable operators.Errors
	if errors.As(err, &unreadable) {
		return nil, lint.Findings{Errors: unreadable}, nil
	}
	if err != nil {
		return nil, lint.Findings{}, err
	}
	return found, lint.Lint(found.Package, more...), nil
}
