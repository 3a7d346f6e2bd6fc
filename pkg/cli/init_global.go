package cli

import (
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
	"k8s.io/klog/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// globals are flags of all commands, as KUDO has them.
type globals struct {
	validate bool
	// needs is set if the command that runs works with kudo's kinds.
	needs bool
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

// withKudo are the commands that work with kudo's kinds on a cluster.
var withKudo = []string{"install", "update", "upgrade", "rollback", "uninstall", "uninstall-version", "get", "plan", "diagnostics", "account"}

// add gives a command, and all below it, the flags.
func (g *globals) add(root *cobra.Command) {
	levels := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(levels)
	f := root.PersistentFlags()
	f.VarP(&verbosity{levels}, "v", "v", "level of the log of requests, on stderr: 6 shows them, 8 shows their contents")
	f.BoolVar(&g.validate, "validate-install", true, "see that kudo is installed on the cluster, before a command works with it")
	root.Version = Version
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		for c := cmd; c.HasParent(); c = c.Parent() {
			g.needs = g.needs || c.Parent() == root && slices.Contains(withKudo, c.Name())
		}
		if err := cmd.ValidateFlagGroups(); err != nil { // cobra's own look at them comes later, and is no wrong usage
			return usage("%w (see %s --help)", err, cmd.CommandPath())
		}
		return nil
	}
}

// check wants the cluster to serve kudo's kinds, which it does once their CRDs are established. It returns how they are
// served, so that nobody need ask again; nil if the command that runs does not work with them.
func (g *globals) check(config *rest.Config) (meta.RESTMapper, error) {
	if !g.needs || !g.validate {
		return nil, nil
	}
	d, err := discovery.NewDiscoveryClientForConfig(config) // gives up after a while
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
			return nil, fmt.Errorf("kudo is not installed on this cluster (its CustomResourceDefinition %s.%s is missing or not established): run kubectl kudo init; kubectl kudo init --verify says more, --validate-install=false goes without this check", kind, v1beta1.GroupVersion.Group)
		}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1beta1.GroupVersion.String(), Version: v1beta1.GroupVersion.Version}
	return restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
		Group:              metav1.APIGroup{Name: v1beta1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
		VersionedResources: map[string][]metav1.APIResource{version.Version: served.APIResources},
	}}), nil
}
