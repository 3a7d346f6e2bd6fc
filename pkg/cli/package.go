package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/pkg/repository"
)

func (t *tool) packageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "package",
		Short: "Write, check, look at and pack operator packages",
		Long: `Write, check, look at and pack operator packages. None of these commands needs a cluster.

  kubectl kudo package new web
  kubectl kudo package verify web/operator
  kubectl kudo package render web/operator -p REPLICAS=3
  kubectl kudo package create web/operator`,
	}
	group(cmd)
	cmd.AddCommand(t.packageCRDDiffCommand(), t.packageNewCommand(), t.packageAddCommand(), t.packageVerifyCommand(), t.packageListCommand(), t.packageRenderCommand(), t.packageRightsCommand(), t.packageCreateCommand())
	return cmd
}

// onePackage is the argument of commands that check a package on this disk.
func onePackage() cobra.PositionalArgs {
	return exactly(1, "one package: a folder that holds operator.yaml, or a .tgz")
}

// anyPackage is the argument of commands that look at a package, wherever it is.
func anyPackage() cobra.PositionalArgs {
	return exactly(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, or a name in a repository")
}

// checkFormat refuses formats before anything is done.
func checkFormat(format string) error {
	if format != "" && format != "yaml" && format != "json" {
		return usage("invalid output format %q: only yaml and json are known", format)
	}
	return nil
}

// lintPackage reads and checks a package. What keeps it from being read is among the findings; the package is nil then.
func lintPackage(ctx context.Context, name string, more ...lint.Linter) (*operators.Package, lint.Findings, error) {
	found, err := repository.Resolve(ctx, name, ".")
	var unreadable operators.Errors
	if errors.As(err, &unreadable) {
		return nil, lint.Findings{Errors: unreadable}, nil
	}
	if err != nil {
		return nil, lint.Findings{}, err
	}
	return found.Package, lint.Lint(found.Package, more...), nil
}
