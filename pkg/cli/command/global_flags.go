package command

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
)

// Version is the version of kudo, which the linker sets.
var Version = "dev"

// errInterrupt is the error of a request that an interrupt of the command has ended.
var errInterrupt = errors.New("interrupted")

// globalFlags are flags of all commands, as KUDO has them.
type globalFlags struct {
	validate bool
	// usesKudo reports whether the running command needs kudo's kinds on the cluster.
	usesKudo bool
	// command is the path of the running command, such as "kubectl kudo plan retry".
	command string
	// interrupt wraps the transport of discovery, which has no context: an interrupt ends its requests.
	interrupt transport.WrapperFunc
}

// verbosity is the level of client-go's log, which goes to stderr: 6 shows requests, 8 shows their bodies too.
type verbosity struct{ flags *flag.FlagSet }

// Set implements pflag.Value.
func (v *verbosity) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 31); err != nil {
		return fmt.Errorf("%q is no level: use a number from 0 to 10", text)
	}
	return v.flags.Set("v", text)
}

// String implements pflag.Value.
func (v *verbosity) String() string {
	if v.flags == nil {
		return "0"
	}
	return v.flags.Lookup("v").Value.String()
}

// Type implements pflag.Value.
func (*verbosity) Type() string { return "level" }

// kudoCommands are the commands that need kudo's kinds on the cluster.
var kudoCommands = []string{"install", "update", "upgrade", "rollback", "uninstall", "uninstall-version", "get", "diff", "plan",
	"diagnostics", "account"}

// add adds the flags to the root command.
func (g *globalFlags) add(root *cobra.Command) {
	levels := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(levels)
	f := root.PersistentFlags()
	f.VarP(&verbosity{levels}, "v", "v", "level of the log of requests, on stderr: 6 shows them, 8 shows their contents")
	f.BoolVar(&g.validate, "validate-install", true, "see that kudo is installed on the cluster, before a command works with it")
	root.Version = Version
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		g.command = cmd.CommandPath()
		g.interrupt = act.LimitTransport(cmd.Context(), errInterrupt)
		for c := cmd; c.HasParent(); c = c.Parent() {
			g.usesKudo = g.usesKudo || c.Parent() == root && slices.Contains(kudoCommands, c.Name())
		}
		if err := cmd.ValidateFlagGroups(); err != nil { // cobra checks them later, and returns no usage error
			return UsageError("%w (see %s --help)", err, cmd.CommandPath())
		}
		return nil
	}
}

// checkInstalled returns an error if the cluster does not serve kudo's kinds, that is, if their CRDs are not established. It
// returns a mapper of these kinds, which saves a second request, or nil if the running command does not need them.
func (g *globalFlags) checkInstalled(config *rest.Config) (meta.RESTMapper, error) {
	if !g.usesKudo || !g.validate {
		return nil, nil
	}
	config = rest.CopyConfig(config)
	config.Wrap(g.interrupt)
	d, err := discovery.NewDiscoveryClientForConfig(config) // it has a timeout
	if err != nil {
		return nil, err
	}
	served, err := d.ServerResourcesForGroupVersion(v1beta1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		served = &metav1.APIResourceList{}
	} else if err != nil {
		return nil, err
	}
	for _, kind := range []string{"operators", "operatorversions", "instances"} {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind }) {
			return nil, fmt.Errorf("kudo is not installed on this cluster (its CustomResourceDefinition %s.%s is missing or not established): run "+
				"kubectl kudo init; kubectl kudo init --verify says more, --validate-install=false leaves this check out", kind,
				v1beta1.GroupVersion.Group)
		}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1beta1.GroupVersion.String(), Version: v1beta1.GroupVersion.Version}
	return restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{Name: v1beta1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version},
			PreferredVersion: version},
		VersionedResources: map[string][]metav1.APIResource{version.Version: served.APIResources},
	}}), nil
}
