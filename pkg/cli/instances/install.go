// Package instances has the commands that install operators, and that list, change and delete Instances and their plans.
package instances

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/text"
)

type installOptions struct {
	env *command.Env

	command.WaitFlags
	command.ParameterFlags
	sources      command.SourceFlags
	schedules    command.ScheduleFlags
	scheduled    []v1beta1.Schedule
	instance     string
	skipInstance bool
	namespace    bool
	adopt        bool
	inCluster    bool
	installing   command.InstallParameterFlags
	account      accountFlags
	preview      previewFlags
	placement    placementFlags
	placed       *v1beta1.Placement
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
		Long: `Install an operator package from a folder, an archive, a URL of one, a registry, or a repository: its Operator and OperatorVersion,
those of its dependencies, and an Instance, whose deploy plan runs.

  kubectl kudo install ./operators/catalog/hello/operator --create-service-account --wait
  kubectl kudo install oci://registry.example.com/kudo/postgres --operator-version '^1.0' --instance db -p PASSWORD=secret
  kubectl kudo install mysql --clusters m1,m2 --divide REPLICAS --weights m1=2 --wave m1 --wave m2`,
		Args: command.ExactArgs(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, oci://…, or a name in a repository"),
		PreRunE: func(*cobra.Command, []string) (err error) {
			if o.scheduled, err = o.schedules.Apply(nil); err != nil {
				return err
			}
			if o.placed, err = o.placement.apply(nil); err != nil {
				return err
			}
			return o.preview.check(env)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.instance, "instance", "", "name of the Instance (default <operator>-instance)")
	f.BoolVar(&o.skipInstance, "skip-instance", false, "install the OperatorVersion only")
	f.BoolVar(&o.namespace, "create-namespace", false, "create the namespace")
	f.BoolVar(&o.adopt, "adopt", false, "let the plans take over existing objects that no controller owns")
	f.BoolVar(&o.inCluster, "in-cluster", false, "take an OperatorVersion that is installed in the namespace; PACKAGE is the name of the "+
		"operator, or operatorversion/NAME")
	f.BoolVar(&o.IgnoreLock, "ignore-lock", false, "find the dependencies of PACKAGE anew, whatever its operator.lock says")
	o.installing.Add(f)
	f.StringVar(&o.accountName, "service-account", "", "ServiceAccount of the namespace with whose rights the plans write")
	o.account.add(f, ", after showing them")
	o.VersionFlags.Add(f)
	o.ParameterFlags.Add(f)
	o.sources.Add(f)
	o.schedules.Add(f)
	o.placement.add(f)
	o.preview.add(f)
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
		return o.installFromCluster(ctx, name, given, from)
	}
	r := &installRequest{name: name, given: given, from: from}
	if err := o.resolve(ctx, r); err != nil {
		return err
	}
	return o.installOnCluster(ctx, r)
}

// installRequest is what a user asks to install: a package, its dependencies, and values for it.
type installRequest struct {
	// name is what the user calls the package.
	name string
	// packages are the dependencies, in the order in which they are to be installed, and the package, which is the last.
	packages []*operators.Package
	// given and from are the values of the Instance and their sources; installing are the values of the install plan.
	given      map[string]string
	from       []v1beta1.ParametersSource
	installing map[string]string
}

// pkg returns the package, without its dependencies.
func (r *installRequest) pkg() *operators.Package { return r.packages[len(r.packages)-1] }

// resolve finds the packages of a request, and checks the values for them as far as that can be done without a cluster.
func (o *installOptions) resolve(ctx context.Context, r *installRequest) (err error) {
	if r.packages, err = o.env.ResolvePackages(ctx, r.name, o.VersionFlags); err != nil {
		return err
	}
	if o.instance == "" {
		o.instance = operators.DefaultInstanceName(r.pkg().Operator.Name)
	}
	if !o.skipInstance {
		if err := operators.CheckInstanceName(o.instance); err != nil {
			return command.UsageError("--instance: %w", err)
		}
		if err := act.CheckValues(r.pkg().Definitions(), r.given, nil, r.from, command.DescribePackage(r.pkg())); err != nil {
			return err
		}
	}
	r.installing, err = o.installing.Read(r.pkg())
	return err
}

// installOnCluster makes the checks that need the cluster, and then shows a preview, or creates what the request describes.
func (o *installOptions) installOnCluster(ctx context.Context, r *installRequest) error {
	c, namespace, err := o.connect(r.packages)
	if err != nil {
		return err
	}
	n, err := o.newcomerOf(r, namespace)
	if err != nil {
		return err
	}
	if !o.skipInstance {
		if err := pkginstall.CheckAbsent(ctx, c, n.Instance); err != nil {
			return err
		}
		if err := checkAccount(ctx, o.env, c, n); err != nil {
			return err
		}
	}
	if err := command.CheckPackage(ctx, r.pkg(), n.Instance, r.installing); err != nil {
		return err
	}
	if err := checkPlacement(n.Instance, n.spec); err != nil {
		return err
	}
	if done, err := o.preview.compute(o.env, c, func(p *act.Previewer) (*preview.Preview, error) {
		if o.skipInstance {
			return p.Versions(ctx, "install", n.made, true)
		}
		return p.Edit(ctx, n.edit())
	}); done || err != nil {
		return err
	}
	if o.namespace { // without the flag, ExplainMissingNamespace names one that does not exist
		if err := o.createNamespace(ctx, c, r, namespace); err != nil {
			return err
		}
	}
	if err := makeAccount(ctx, o.env, c, n); err != nil {
		return pkginstall.ExplainMissingNamespace(ctx, c, namespace, err)
	}
	return o.installResolved(ctx, c, n, r)
}

// newcomerOf returns the Instance of a request as it is going to be made in a namespace, with the OperatorVersions that come with it.
func (o *installOptions) newcomerOf(r *installRequest, namespace string) (*newcomer, error) {
	version := command.VersionName(r.pkg())
	versions, err := pkginstall.Versions(r.packages, namespace, r.installing)
	if err != nil {
		return nil, err
	}
	known := pkginstall.SpecsOf(versions)
	includeVersions(o.placed, versions[:len(versions)-1])
	return &newcomer{Instance: o.newInstance(namespace, r.pkg().Operator.Name, version, r.given, r.from), pkg: r.name,
		spec: known[version], versions: known.Find, made: versions, flags: &o.account, houses: o.namespace}, nil
}

// createNamespace creates the namespace. Where the user is going to be asked for rights, it first checks that a question can be asked:
// the namespace would stay behind if not.
func (o *installOptions) createNamespace(ctx context.Context, c client.Client, r *installRequest, namespace string) error {
	if o.account.create {
		if err := o.env.CanAsk(rightsQuestion(o.account.yes)); err != nil {
			return err
		}
	}
	return installerOf(o.env, c).CreateNamespace(ctx, r.pkg(), namespace, o.instance, r.given)
}

// installResolved creates the OperatorVersions of the packages, dependencies first, and the Instance of the last package.
func (o *installOptions) installResolved(ctx context.Context, c client.WithWatch, n *newcomer, r *installRequest) error {
	versions, err := installerOf(o.env, c).CreateVersions(ctx, r.packages, n.Namespace, r.installing)
	if err != nil {
		return n.halfway(pkginstall.ExplainMissingNamespace(ctx, c, n.Namespace, err))
	}
	if o.skipInstance {
		return awaitInstalled(ctx, o.env, c, versions, &o.WaitFlags)
	}
	return makeInstance(ctx, o.env, c, n, versions, &o.WaitFlags)
}

// awaitInstalled waits for the install plans, if that was asked for.
func awaitInstalled(ctx context.Context, env *command.Env, c client.WithWatch, versions []*v1beta1.OperatorVersion,
	w *command.WaitFlags) error {
	for _, ov := range versions {
		if !w.Wait || ov.Spec.InstallPlan == "" {
			continue
		}
		if err := env.WaitForVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(w.Time),
			command.UntilInstalled(ov.UID)); err != nil {
			return err
		}
		env.Printf("operatorversion %s/%s installed", ov.Namespace, ov.Name)
	}
	return nil
}

// makeInstance creates an Instance, and waits for the install plans and its deploy plan if that was asked for.
func makeInstance(ctx context.Context, env *command.Env, c client.WithWatch, n *newcomer, versions []*v1beta1.OperatorVersion,
	w *command.WaitFlags) error {
	instance := n.Instance
	if slices.ContainsFunc(versions, mayUseClaims) {
		warnOfClaims(ctx, env, c, instance)
	}
	if err := installerOf(env, c).CreateInstance(ctx, instance); err != nil {
		return n.halfway(err)
	}
	if n.change != nil {
		ownAccount(ctx, env, c, n.change, instance)
	}
	if !w.Wait {
		return nil
	}
	if instance.IsTemplate() { // install plans run in the clusters, too
		versions = nil
	}
	if err := awaitInstalled(ctx, env, c, versions, w); err != nil {
		return err
	}
	if slices.ContainsFunc(versions, func(ov *v1beta1.OperatorVersion) bool { return ov.Spec.InstallPlan != "" }) {
		instance.ResourceVersion = "" // the Instance may have changed during the wait
	}
	if err := env.WaitForInstance(ctx, c, instance, time.Duration(w.Time), command.UntilEnded(instance)); err != nil {
		return err
	}
	env.Printf("instance %s/%s ready", instance.Namespace, instance.Name)
	return nil
}

// shownClaims is how many claims a warning names.
const shownClaims = 5

// mayUseClaims reports whether a template of a version may create PersistentVolumeClaims: only then are the existing ones listed.
func mayUseClaims(version *v1beta1.OperatorVersion) bool {
	for _, template := range version.Spec.Templates {
		if strings.Contains(template, "PersistentVolumeClaim") || strings.Contains(template, "volumeClaimTemplates") {
			return true
		}
	}
	return false
}

// warnOfClaims warns of PersistentVolumeClaims that an earlier Instance of the name has left: the new one may use their
// data. A user who may not list them gets no warning.
func warnOfClaims(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	ours := client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance.Name}
	if c.List(ctx, list, client.InNamespace(instance.Namespace), ours) != nil {
		return
	}
	var names []string
	for i := range list.Items {
		if claim := &list.Items[i]; claim.DeletionTimestamp == nil && len(claim.OwnerReferences) == 0 {
			names = append(names, claim.Name)
		}
	}
	if len(names) > 0 {
		env.Warnf("an earlier Instance of the name has left PersistentVolumeClaims: %s. Where the package has claims of these names, they are "+
			"used again, with their data", text.List(names, shownClaims))
	}
}

// newInstance returns the Instance that the flags describe.
func (o *installOptions) newInstance(namespace, operator, version string, given map[string]string,
	from []v1beta1.ParametersSource) *v1beta1.Instance {
	instance := pkginstall.NewInstance(pkginstall.InstanceOptions{
		Namespace: namespace, Name: o.instance, Operator: operator, OperatorVersion: version,
		Parameters: given, ParametersFrom: from, ServiceAccountName: o.accountName, Adopt: o.adopt,
		Schedules: o.scheduled,
	})
	instance.Spec.Placement = o.placed
	return instance
}

// installerOf returns an installer that prints what it does.
func installerOf(env *command.Env, c client.Client) pkginstall.Installer {
	return pkginstall.Installer{Client: c, Progressf: env.Printf, Warnf: env.Warnf}
}

// connect returns a client of the cluster, if its version of Kubernetes is high enough for packages, and the namespace. A preview without
// dry runs needs no cluster: it is that of an installation on one without objects.
func (o *installOptions) connect(packages []*operators.Package) (client.WithWatch, string, error) {
	if o.preview.dryRun.IsLocal() {
		o.env.GoOffline()
	}
	c, config, namespace, err := o.env.Connect()
	if err == nil && !o.preview.dryRun.IsLocal() {
		err = checkKubernetes(config, packages)
	}
	return c, namespace, err
}

// checkKubernetes compares the lowest version of Kubernetes of packages with the version of the cluster.
func checkKubernetes(config *rest.Config, packages []*operators.Package) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return pkginstall.CheckKubernetes(d, packages)
}
