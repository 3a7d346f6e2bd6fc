// Package cli is the command line of kudo, as a kubectl plugin: one file a command. Tables and objects go to stdout,
// progress to stderr.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository"
)

// Exit codes.
const (
	ExitError   = 1 // something went wrong
	ExitUsage   = 2 // the command was called in a wrong way
	ExitFailed  = 3 // a plan that was waited for failed
	ExitTimeout = 4 // the wait took too long
)

// codeError carries an exit code.
type codeError struct {
	code int
	error
}

// Unwrap returns the cause.
func (e *codeError) Unwrap() error { return e.error }

func usage(format string, args ...any) error {
	return &codeError{ExitUsage, fmt.Errorf(format, args...)}
}

// tool is what all commands share.
type tool struct {
	in       io.Reader
	out, err io.Writer
	flags    *genericclioptions.ConfigFlags
	// home is the folder of repositories and their cache; empty is the default.
	home    string
	globals globals
}

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(&tool{in: in, out: out, err: errs, flags: genericclioptions.NewConfigFlags(true)})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(errs, "Error: "+explain(err))
	var coded *codeError
	if errors.As(err, &coded) {
		return coded.code
	}
	return ExitError
}

func newRoot(t *tool) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-kudo",
		Short: "Install and run operators whose day-two work is written as plans",
		Long: `kudo installs operator packages and drives their plans: deploy, update, upgrade, backup and whatever a package has.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the plan that was waited for failed, 4 the wait took too long.`,
		SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kudo"},
	}
	group(root)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w (see %s --help)", err, cmd.CommandPath())
	})
	t.flags.AddFlags(root.PersistentFlags())
	t.globals.add(root)
	root.PersistentFlags().StringVar(&t.home, "home", "", "folder of repositories and their cache (default $KUDO_HOME, or ~/.kudo)")
	root.AddCommand(t.packageCommand(), t.repoCommand(), t.searchCommand(), t.cacheCommand(), t.exploreCommand())
	root.AddCommand(t.initCommand(), t.tokenCommand(), t.installCommand(), t.updateCommand(), t.upgradeCommand(), t.rollbackCommand(), t.uninstallCommand(), t.uninstallVersionCommand(),
		t.getCommand(), t.planCommand(), t.accountCommand(), t.diagnosticsCommand(), t.testCommand(), t.versionCommand())
	return root
}

// group makes a command of one that only has others below it: called with anything else, it says what is wrong.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage("%s has no command %q%s (see %s --help)", cmd.CommandPath(), args[0], hint, cmd.CommandPath())
	}
}

// exactly wants a number of arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s, and got %d arguments: %s", cmd.CommandPath(), what, len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// scheme knows all kinds that commands use.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, v1beta1.AddToScheme(s)
}

// connect returns a client of the cluster, and the namespace that the user works in.
func (t *tool) connect() (client.WithWatch, *rest.Config, string, error) {
	config, err := t.flags.ToRESTConfig()
	if raw, e := t.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && e == nil && len(raw.Clusters) == 0 && *t.flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		err = errNoCluster
	}
	if err != nil {
		return nil, nil, "", err
	}
	config.QPS = -1 // the apiserver's priority and fairness decides, not the client
	namespace, _, err := t.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, "", err
	}
	own, err := t.globals.check(config)
	if err != nil {
		return nil, nil, "", err
	}
	config.WarningHandler = rest.NewWarningWriter(t.err, rest.WarningWriterOptions{Deduplicate: true})
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, "", err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, nil, "", err
	}
	if own != nil { // the rest is discovered when it is asked for
		mapper = meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{own, builtin(), mapper}}
	}
	s, err := scheme()
	if err != nil {
		return nil, nil, "", err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s, HTTPClient: transport, Mapper: mapper})
	return c, config, namespace, err
}

// builtin are kinds that every Kubernetes serves and that commands use, so that they need not be discovered.
func builtin() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "Event"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return mapper
}

// errNoCluster says that neither a flag, nor a kubeconfig, nor the surroundings name a cluster.
var errNoCluster = clientcmd.ErrEmptyConfig

// explain adds the remedy to errors whose cause is the surroundings.
func explain(err error) string {
	text := err.Error()
	var fetch *repository.FetchError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &fetch):
		return text // from a repository, whose server may be away, too
	case meta.IsNoMatchError(err) && strings.Contains(text, v1beta1.GroupVersion.Group):
		return "kudo is not installed on this cluster (its CustomResourceDefinitions are missing): run kubectl kudo init. (" + text + ")"
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err):
		return "the cluster cannot be reached: " + text + ". Is it running? kubectl cluster-info tells which one is configured"
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: set --kubeconfig or KUBECONFIG; a local one is started by kudo-local up"
	}
	return text
}
