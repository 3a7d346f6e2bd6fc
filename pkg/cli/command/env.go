// Package command holds what the commands of kubectl-kudo share: streams, flags, clients, exit codes, tables, waiting, and
// finding packages. Tables and objects go to stdout, progress and warnings to stderr.
package command

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/offline"
)

// Env holds the streams and the flags that all commands share.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	// Flags select the cluster, the user and the namespace, as in kubectl.
	Flags *genericclioptions.ConfigFlags
	// Now returns the time that ages, durations and signatures are judged by.
	Now func() time.Time
	// home is the folder of repositories and their cache; empty is the default.
	home     string
	progress progressFlag
	globals  globalFlags
	// offline is set if no cluster is asked.
	offline bool
	// writing is held while a line is written: several clusters may have warnings at the same time.
	writing sync.Mutex
}

// NewEnv returns an Env with these streams, and flags that are not set.
func NewEnv(in io.Reader, out, errs io.Writer) *Env {
	return &Env{In: in, Out: out, Err: errs, Now: time.Now, Flags: genericclioptions.NewConfigFlags(true)}
}

// AddFlags gives the root command the flags of all commands.
func (env *Env) AddFlags(root *cobra.Command) {
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return UsageError("%w (see %s --help)", err, cmd.CommandPath())
	})
	env.Flags.AddFlags(root.PersistentFlags())
	env.globals.add(root)
	env.addProgress(root.PersistentFlags())
	root.PersistentFlags().StringVar(&env.home, "home", "", "folder of repositories and their cache (default $KUDO_HOME, or ~/.kudo)")
}

// NewScheme returns a scheme of all kinds that commands use.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, v1beta1.AddToScheme(s)
}

// GoOffline lets Connect return clients of a cluster without objects, inside the process.
func (env *Env) GoOffline() {
	env.offline = true
	env.Flags.WrapConfigFn = func(*rest.Config) *rest.Config { return offline.Config() }
}

// Connect returns a client of the cluster, its configuration, and the namespace that the user works in.
func (env *Env) Connect() (client.WithWatch, *rest.Config, string, error) {
	config, err := env.Flags.ToRESTConfig()
	if raw, e := env.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil && e == nil && len(raw.Clusters) == 0 &&
		*env.Flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" && !env.offline {
		err = errNoCluster
	}
	if err != nil {
		return nil, nil, "", err
	}
	config.QPS = -1 // the apiserver's priority and fairness decides, not the client
	namespace, _, err := env.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, "", err
	}
	c, err := env.newClient(config)
	if err != nil {
		return nil, nil, "", err
	}
	return c, config, namespace, nil
}

// newClient returns a client of a cluster, which must have kudo's kinds if the running command needs them.
func (env *Env) newClient(config *rest.Config) (client.WithWatch, error) {
	own, err := env.globals.checkInstalled(config)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(env.messages(), rest.WarningWriterOptions{Deduplicate: true})
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, err
	}
	if own != nil {
		mapper = lazyMapper{mapper, []meta.RESTMapper{own, builtin()}}
	}
	s, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s, HTTPClient: transport, Mapper: mapper})
	return nameClient(c, env.globals.command), err
}

// lazyMapper discovers a kind only when a command needs it and no other mapper has it. meta.FirstHitRESTMapper would join the errors of all
// mappers, so that a failure of discovery looked like a kind that the cluster does not serve.
type lazyMapper struct {
	meta.RESTMapper

	known []meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (m lazyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	for _, known := range m.known {
		if mapping, err := known.RESTMapping(kind, versions...); err == nil {
			return mapping, nil
		}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// builtin maps the kinds that commands use and every Kubernetes serves, so that these need not be discovered.
func builtin() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "Event", "PersistentVolumeClaim"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return mapper
}
