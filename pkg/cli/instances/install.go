// Package instances has the commands that install operators, and that list, change and delete Instances and their plans.
package instances

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/cli/command"
)

type installOptions struct {
	env *command.Env

	command.WaitFlags
	command.ParameterFlags
	sources      command.SourceFlags
	instance     string
	skipInstance bool
	namespace    bool
	adopt        bool
	inCluster    bool
	installing   []string
	account      accountFlags
	// accountName is the ServiceAccount that the Instance names.
	accountName string
	command.VersionFlags
}

// NewInstall returns the command install.
func NewInstall(env *command.Env) *cobra.Command {
	o := &installOptions{env: env}
	cmd := &cobra.Command{
		Use:   "install PACKAGE",
		Short: "Install an operator package, and make an Instance of it",
		Long: `Install an operator package from a folder, an archive, a URL of one, or a repository: its Operator and OperatorVersion,
those of its dependencies, and an Instance, whose deploy plan runs.

  kubectl kudo install ./operators/catalog/hello/operator --create-service-account --wait
  kubectl kudo install ./mysql-5.7_0.3.0.tgz --instance db -p PASSWORD=secret
  kubectl kudo install mysql --operator-version '^0.3' --repo community`,
		Args: command.ExactArgs(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, or a name in a repository"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.instance, "instance", "", "name of the Instance (default <operator>-instance)")
	f.BoolVar(&o.skipInstance, "skip-instance", false, "install the OperatorVersion only")
	f.BoolVar(&o.namespace, "create-namespace", false, "create the namespace")
	f.BoolVar(&o.adopt, "adopt", false, "let the plans take over existing objects that no controller owns")
	f.BoolVar(&o.inCluster, "in-cluster", false, "take an OperatorVersion that is installed in the namespace; PACKAGE is the operator's name")
	f.StringArrayVar(&o.installing, "install-parameter", nil, "parameter of the install plan, as NAME=VALUE; may be given more than once")
	f.StringVar(&o.accountName, "service-account", "", "ServiceAccount of the namespace with whose rights the plans write")
	o.account.add(f, ", after showing them")
	o.VersionFlags.Add(f)
	o.ParameterFlags.Add(f)
	o.sources.Add(f)
	o.WaitFlags.Add(f, "the install plan and the deploy plan have ended")
	return cmd
}

func (o *installOptions) run(ctx context.Context, name string) error {
	given, err := o.Read()
	if err != nil {
		return err
	}
	from, err := o.sources.Read()
	if err != nil {
		return err
	}
	if err := o.fitAccount(); err != nil {
		return err
	}
	if o.inCluster {
		if o.Repo != "" {
			return command.UsageError("--repo goes without --in-cluster, which looks for what is installed in the namespace")
		}
		return o.installFromCluster(ctx, name, given, from)
	}
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	if o.instance == "" {
		o.instance = operators.DefaultInstanceName(pkg.Operator.Name)
	}
	if !o.skipInstance {
		if err := operators.CheckInstanceName(o.instance); err != nil {
			return command.UsageError("--instance: %w", err)
		}
		if err := command.CheckValues(pkg.Definitions(), given, nil, from, command.DescribePackage(pkg)); err != nil {
			return err
		}
	}
	installing, err := o.installParameters(pkg)
	if err != nil {
		return err
	}
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	if err := checkKubernetes(config, packages); err != nil {
		return err
	}
	instance := newInstance(namespace, o, pkg.Operator.Name, command.VersionName(pkg), given, from)
	known, err := command.SpecsOf(packages, namespace)
	if err != nil {
		return err
	}
	n := &newcomer{Instance: instance, pkg: name, spec: known[command.VersionName(pkg)], versions: known.Find, flags: &o.account, houses: o.namespace}
	if !o.skipInstance {
		if err := checkNotExists(ctx, c, instance); err != nil {
			return err
		}
		if err := checkAccount(ctx, o.env, c, n); err != nil {
			return err
		}
	}
	if err := command.CheckPackage(ctx, pkg, instance, installing); err != nil {
		return err
	}
	if o.account.create && o.namespace { // before the namespace is made
		if err := canConfirm(o.env, o.account.yes); err != nil {
			return err
		}
	}
	if err := o.makeNamespace(ctx, c, pkg, namespace, given); err != nil {
		return err
	}
	if err := makeAccount(ctx, o.env, c, n); err != nil {
		return explainMissingNamespace(ctx, c, namespace, err)
	}
	return o.installResolved(ctx, c, n, packages, installing)
}

// installResolved creates the OperatorVersions of the packages, dependencies first, and the Instance of the last package.
func (o *installOptions) installResolved(ctx context.Context, c client.WithWatch, n *newcomer, packages []*operators.Package, installing map[string]string) error {
	namespace, pkg := n.Namespace, packages[len(packages)-1]
	var versions []*v1beta1.OperatorVersion
	for _, p := range packages {
		parameters := map[string]string{}
		if p == pkg {
			parameters = installing
		}
		version, err := installVersion(ctx, o.env, c, p, namespace, parameters)
		if err != nil {
			return n.halfway(explainMissingNamespace(ctx, c, namespace, err))
		}
		versions = append(versions, version)
	}
	if o.skipInstance {
		return awaitInstalled(ctx, o.env, c, versions, &o.WaitFlags)
	}
	return makeInstance(ctx, o.env, c, n, versions, &o.WaitFlags)
}

// installParameters reads the parameters of the install plan.
func (o *installOptions) installParameters(pkg *operators.Package) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range o.installing {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, command.UsageError("--install-parameter %q: must be NAME=VALUE", text)
		}
		out[name] = value
	}
	if len(out) == 0 {
		return nil, nil
	}
	if pkg.Operator.InstallPlan == "" {
		return nil, command.UsageError("--install-parameter: operator %s has no install plan", pkg.Operator.Name)
	}
	return out, command.CheckValues(pkg.Definitions(), out, nil, nil, command.DescribePackage(pkg))
}

// awaitInstalled waits for the install plans, if that was asked for.
func awaitInstalled(ctx context.Context, env *command.Env, c client.WithWatch, versions []*v1beta1.OperatorVersion, w *command.WaitFlags) error {
	for _, ov := range versions {
		if !w.Wait || ov.Spec.InstallPlan == "" {
			continue
		}
		if err := env.WaitForVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.Time), command.UntilInstalled(ov.UID, "")); err != nil {
			return err
		}
		env.Printf("operatorversion %s/%s installed", ov.Namespace, ov.Name)
	}
	return nil
}

// checkNotExists refuses an Instance that exists already.
func checkNotExists(ctx context.Context, c client.Client, instance *v1beta1.Instance) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(instance), &v1beta1.Instance{})
	if err == nil {
		return fmt.Errorf("instance %s/%s exists already: use kubectl kudo update or upgrade, or another --instance", instance.Namespace, instance.Name)
	}
	return client.IgnoreNotFound(err)
}

// makeInstance creates an Instance, and waits for the install plans and its deploy plan if that was asked for.
func makeInstance(ctx context.Context, env *command.Env, c client.WithWatch, n *newcomer, versions []*v1beta1.OperatorVersion, w *command.WaitFlags) error {
	instance := n.Instance
	if err := c.Create(ctx, instance); err != nil {
		return n.halfway(fmt.Errorf("instance %s/%s: %w", instance.Namespace, instance.Name, err))
	}
	env.Printf("instance %s/%s created", instance.Namespace, instance.Name)
	if n.change != nil {
		ownAccount(ctx, env, c, n.change, instance)
	}
	if !w.Wait {
		return nil
	}
	if err := awaitInstalled(ctx, env, c, versions, w); err != nil {
		return err
	}
	if slices.ContainsFunc(versions, func(ov *v1beta1.OperatorVersion) bool { return ov.Spec.InstallPlan != "" }) {
		instance.ResourceVersion = "" // what became of it while it waited for them does not count
	}
	if err := env.WaitForInstance(ctx, c, instance, time.Duration(w.Time), command.UntilArrived(instance.Generation, instance.UID)); err != nil {
		return err
	}
	env.Printf("instance %s/%s ready", instance.Namespace, instance.Name)
	return nil
}

func newInstance(namespace string, o *installOptions, operator, version string, given map[string]string, from []v1beta1.ParametersSource) *v1beta1.Instance {
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: o.instance, Labels: map[string]string{v1beta1.OperatorLabel: operator},
	}}
	if o.adopt {
		instance.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true"}
	}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Kind: "OperatorVersion", Name: version}
	instance.Spec.Parameters, instance.Spec.ParametersFrom = given, from
	instance.Spec.ServiceAccountName = o.accountName
	return instance
}

// checkKubernetes compares the packages' lowest version of Kubernetes with the cluster's.
func checkKubernetes(config *rest.Config, packages []*operators.Package) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	info, err := d.ServerVersion()
	if err != nil {
		return err
	}
	server, err := semver.NewVersion(info.GitVersion)
	if err != nil {
		return nil // an unusual version says nothing
	}
	for _, p := range packages {
		wanted, err := semver.NewVersion(p.Operator.KubernetesVersion)
		if err != nil {
			continue
		}
		if server.Major() < wanted.Major() || server.Major() == wanted.Major() && server.Minor() < wanted.Minor() {
			return fmt.Errorf("operator %s needs Kubernetes %s or later, and this cluster is %s", p.Operator.Name, p.Operator.KubernetesVersion, info.GitVersion)
		}
	}
	return nil
}

// installVersion creates the Operator and the OperatorVersion of a package, if they are not there, and returns the latter.
func installVersion(ctx context.Context, env *command.Env, c client.Client, pkg *operators.Package, namespace string, parameters map[string]string) (*v1beta1.OperatorVersion, error) {
	operator, version, err := operators.Convert(pkg, namespace)
	if err != nil {
		return nil, fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	version.Spec.InstallParameters = parameters
	if pkg.Operator.InstallPlan != "" || pkg.Operator.CRDTarball != nil { // who may not install leaves nothing behind
		if err := c.Create(ctx, version.DeepCopy(), client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
		}
	}
	switch err := c.Create(ctx, operator); {
	case err == nil:
		env.Printf("operator %s/%s created", namespace, operator.Name)
	case !apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("operator %s/%s: %w", namespace, operator.Name, err)
	}
	wanted := version.Spec.DeepCopy()
	err = c.Create(ctx, version)
	if err == nil {
		env.Printf("operatorversion %s/%s created", namespace, version.Name)
		return version, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
	}
	live := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(version), live); err != nil {
		return nil, err
	}
	env.Printf("operatorversion %s/%s already installed", namespace, version.Name)
	if len(parameters) > 0 && !maps.Equal(parameters, live.Spec.InstallParameters) {
		patch := client.MergeFrom(live.DeepCopy())
		live.Spec.InstallParameters = parameters
		if err := c.Patch(ctx, live, patch); err != nil {
			return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
		}
		env.Printf("operatorversion %s/%s install parameters changed", namespace, version.Name)
	}
	wanted.InstallParameters = live.Spec.InstallParameters
	if !equality.Semantic.DeepEqual(live.Spec, *wanted) {
		env.Warnf("operatorversion %s/%s has other content than the package: it is used as it is. Give the package a new operatorVersion, or delete the OperatorVersion first", namespace, version.Name)
	}
	return live, nil
}
