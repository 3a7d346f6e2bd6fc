// Package cli is the command line of kudo, as a kubectl plugin.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kudo.dev/kudo/pkg/cli/admin"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/crdcache"
	"kudo.dev/kudo/pkg/cli/crds"
	"kudo.dev/kudo/pkg/cli/explore"
	"kudo.dev/kudo/pkg/cli/image"
	"kudo.dev/kudo/pkg/cli/instances"
	"kudo.dev/kudo/pkg/cli/packages"
	"kudo.dev/kudo/pkg/cli/placement"
	"kudo.dev/kudo/pkg/cli/repos"
	"kudo.dev/kudo/pkg/cli/suites"
	"kudo.dev/kudo/pkg/cli/ui"
)

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrllog.SetLogger(logr.Discard()) // controller-runtime warns after 30 s of a logger that is not set
	env := command.NewEnv(in, out, errs)
	root := NewRoot(env)
	root.SetArgs(args)
	return env.ReportError(root.ExecuteContext(ctx))
}

// NewRoot returns the command that has all others.
func NewRoot(env *command.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-kudo",
		Short: "Install and run operators whose day-two work is written as plans",
		Long: `kudo installs operator packages and drives their plans: deploy, update, upgrade, backup and whatever a package has.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the plan that was waited for failed, 4 the wait took too long.`,
		SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kudo"},
	}
	command.SetupGroup(root)
	env.AddFlags(root)
	root.AddCommand(packages.New(env), repos.New(env), repos.NewSearch(env), crdcache.New(env), crds.New(env), explore.New(env))
	root.AddCommand(admin.NewInit(env), admin.NewToken(env), image.New(env))
	root.AddCommand(instances.NewInstall(env), instances.NewUpdate(env), instances.NewUpgrade(env), instances.NewRollback(env),
		instances.NewUninstall(env), instances.NewUninstallVersion(env),
		instances.NewGet(env), instances.NewDiff(env), instances.NewPlan(env), placement.New(env), instances.NewAccount(env),
		admin.NewDiagnostics(env),
		suites.New(env), ui.New(env), admin.NewVersion(env))
	command.SetupHelp(root)
	addExamples(root)
	root.SetGlobalNormalizationFunc(command.NormalizeFlag)
	return root
}
