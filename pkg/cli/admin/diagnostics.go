package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/explore/live"
	"kudo.dev/kudo/pkg/runner"
)

type diagnosticsOptions struct {
	env *command.Env

	instance, file, dir string
	since               command.Seconds
}

// NewDiagnostics returns the command diagnostics.
func NewDiagnostics(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "diagnostics", Short: "Collect diagnostics of an Instance"}
	command.SetupGroup(cmd)
	o := &diagnosticsOptions{env: env}
	collect := &cobra.Command{
		Use:   "collect NAME",
		Short: "Collect all about an Instance and its children into an archive, without what is secret",
		Long: `Collect an Instance, its children, what they run, their history, objects, events, pods and logs, and the manager's, into
a .tar.gz. The data of Secrets, sensitive parameters, and what looks like a credential are left out. What could not be
collected is listed in the archive, in errors.yaml.

  kubectl kudo diagnostics collect db
  kubectl kudo diagnostics collect db -O diag --log-since 2h`,
		Args: command.ArgumentsForFlags("instance"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	command.AddInstanceFlag(collect, &o.instance)
	f := collect.Flags()
	f.StringVarP(&o.file, "output", "o", "", "archive to write (default diag-NAMESPACE-NAME.tar.gz)")
	f.StringVarP(&o.dir, "output-directory", "O", "", "folder to write to, instead of an archive")
	f.StringVar(&o.dir, "dir", "", "the same as --output-directory")
	f.Var(&o.since, "log-since", "take lines of logs that are not older than this only: seconds, or a duration such as 2h")
	collect.MarkFlagsMutuallyExclusive("output", "output-directory", "dir")
	cmd.AddCommand(collect)
	return cmd
}

func (o *diagnosticsOptions) run(ctx context.Context) (err error) {
	if o.instance == "" {
		return command.ErrNoInstance
	}
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	target := o.dir
	if target == "" {
		target = o.file
	}
	if target == "" {
		target = fmt.Sprintf("diag-%s-%s.tar.gz", namespace, o.instance)
	}
	target = filepath.Clean(target) // the parent of new/ is not new itself
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s exists already: remove it, or choose another name with --output or --output-directory", target)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// Beside the target, so that it can be renamed, and so that no reader finds half of it.
	dir, err := os.MkdirTemp(filepath.Dir(target), ".kudo-diag-")
	if err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	limits := diagnostics.DefaultLimits()
	collector := &diagnostics.Collector{
		Client: c, Set: set, Version: command.Version, Since: time.Duration(o.since), Limits: limits,
		Dependencies: func(ctx context.Context, instance *v1beta1.Instance, version *v1beta1.OperatorVersion, plan string) (any, error) {
			return missingDependencies(ctx, c, instance, version, plan)
		},
		Progress: func(what string) { o.env.Progressf("collecting: %s", what) },
	}
	failed, err := collector.Collect(ctx, types.NamespacedName{Namespace: namespace, Name: o.instance},
		diagnostics.NewFolder(dir, limits.Total))
	if err != nil {
		return err
	}
	if o.dir != "" {
		err = atomicfile.MoveFolder(filepath.Join(dir, "diag"), target)
	} else {
		err = atomicfile.WriteFunc(target, 0o600, func(w io.Writer) error {
			_, err := archive.Write(w, os.DirFS(dir))
			return err
		})
	}
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		o.env.Warnf("%d things could not be collected, or not in full: errors.yaml lists them. The first is %s: %s", len(failed), failed[0].What,
			failed[0].Error)
	}
	o.env.Printf("diagnostics of instance %s/%s written to %s", namespace, o.instance, target)
	return nil
}

// missingDependencies returns what the objects of a plan depend on and is missing, by the rules of the cluster and with the rights of the
// user.
func missingDependencies(ctx context.Context, c client.Client, instance *v1beta1.Instance, version *v1beta1.OperatorVersion,
	plan string) (any, error) {
	layers, unreached, unknown, err := live.Layers(ctx, c)
	if err != nil {
		return nil, err
	}
	needs, err := runner.FindNeeds(ctx, c, instance, version, plan, layers)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", plan, err)
	}
	if unknown || len(unreached) > 0 {
		err = errors.New("not all explore rules and webhooks of the cluster could be asked from here: there may be more")
	}
	return append([]runner.ObjectNeeds{}, needs...), err
}
