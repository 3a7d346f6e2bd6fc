package instances

import (
	"context"
	"maps"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/repository/incluster"
)

type upgradeOptions struct {
	env *command.Env

	command.WaitFlags
	command.ParameterFlags
	command.VersionFlags
	installing     command.InstallParameterFlags
	account        accountFlags
	preview        previewFlags
	placement      placementFlags
	instance       string
	allowDowngrade bool
	inCluster      bool
}

// NewUpgrade returns the command upgrade.
func NewUpgrade(env *command.Env) *cobra.Command {
	o := &upgradeOptions{env: env}
	cmd := &cobra.Command{
		Use:   "upgrade PACKAGE --instance NAME",
		Short: "Move an Instance to another version of its operator",
		Long: `Install another version of the Instance's operator, or take one that is installed, and move the Instance to it. The first of the
plans upgrade, update and deploy that the new version has is run.

  kubectl kudo upgrade ./mysql-0.4.0 --instance db --wait
  kubectl kudo upgrade mysql --operator-version '^0.4' --instance db --wait
  kubectl kudo upgrade oci://registry.example.com/kudo/mysql:8.4_0.4.1 --instance db --wait
  kubectl kudo upgrade mysql --in-cluster --operator-version 0.4.1 --instance db --wait

A new OperatorVersion has the parameters of the install plan that the one before it has, unless --install-parameter gives others.`,
		Args:    command.ExactArgs(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, oci://…, or a name in a repository"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check(env) },
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	cmd.Flags().BoolVar(&o.allowDowngrade, "allow-downgrade", false, "allow a lower version than the Instance has")
	cmd.Flags().BoolVar(&o.inCluster, "in-cluster", false, "take an OperatorVersion that is installed in the namespace of the one that the "+
		"Instance has; PACKAGE is the name of the operator, or operatorversion/NAME")
	o.preview.add(cmd.Flags())
	o.account.add(cmd.Flags(), " as the new version has them, after showing what changes")
	o.VersionFlags.Add(cmd.Flags())
	o.ParameterFlags.Add(cmd.Flags())
	o.installing.Add(cmd.Flags())
	o.placement.addEdit(cmd.Flags())
	o.WaitFlags.Add(cmd.Flags(), "the upgrade has ended")
	return cmd
}

func (o *upgradeOptions) run(ctx context.Context, name string) error {
	if o.instance == "" {
		return command.ErrNoInstance
	}
	given, err := o.Read()
	if err != nil {
		return err
	}
	if o.inCluster {
		return o.upgradeInCluster(ctx, name, given)
	}
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	u, err := o.read(ctx, c, namespace, given)
	if err != nil {
		return err
	}
	if u.Versions, err = pkginstall.Versions(packages, namespace, nil); err != nil {
		return err
	}
	u.Version = u.Versions[len(u.Versions)-1]
	includeVersions(u.Placement, u.Versions[:len(u.Versions)-1])
	if err := o.setInstallParameters(ctx, c, packages[len(packages)-1], u); err != nil {
		return err
	}
	if err := checkUpgrade(ctx, config, packages, u); err != nil {
		return err
	}
	return o.move(ctx, c, u, pkginstall.SpecsOf(u.Versions).Find, func() ([]*v1beta1.OperatorVersion, error) {
		return installerOf(o.env, c).CreateVersions(ctx, packages, namespace, u.Version.Spec.InstallParameters)
	})
}

// setInstallParameters gives the new OperatorVersion the parameters of its install plan: those of the flags, and, if it is not installed
// yet, those of the OperatorVersion that the Instance has.
func (o *upgradeOptions) setInstallParameters(ctx context.Context, c client.Client, pkg *operators.Package, u *act.Upgrade) error {
	given, err := o.installing.Read(pkg)
	if err != nil {
		return err
	}
	u.Version.Spec.InstallParameters = given
	if pkg.Operator.InstallPlan == "" || u.Old == nil {
		return nil
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(u.Version), &v1beta1.OperatorVersion{}); !apierrors.IsNotFound(err) {
		return err
	}
	kept := map[string]string{}
	maps.Copy(kept, u.Old.Spec.InstallParameters)
	for _, name := range params.Unknown(u.Version.Spec.Parameters, kept) {
		delete(kept, name)
	}
	maps.Copy(kept, given)
	u.Version.Spec.InstallParameters = kept
	return nil
}

// upgradeInCluster moves the Instance to an OperatorVersion that is installed. The dependencies of this OperatorVersion must be installed,
// too: they are not searched for elsewhere.
func (o *upgradeOptions) upgradeInCluster(ctx context.Context, operator string, given map[string]string) error {
	if o.installing.IsSet() {
		return command.UsageError("--install-parameter cannot be used with --in-cluster: the install plan has already run")
	}
	if err := checkInCluster(operator, &o.VersionFlags); err != nil {
		return err
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	u, err := o.read(ctx, c, namespace, given)
	if err != nil {
		return err
	}
	if u.Installed, err = incluster.List(ctx, c, u.Instance.OperatorVersionKey().Namespace); err != nil {
		return err
	}
	if u.Version, err = u.Installed.Choose(operator, repository.Versions{App: o.AppVersion, Operator: o.OperatorVersion}); err != nil {
		return err
	}
	if _, err := u.Change(ctx, c); err != nil {
		return err
	}
	needed, err := u.Dependencies()
	if err != nil {
		return err
	}
	includeVersions(u.Placement, needed.Ordered[:len(needed.Ordered)-1])
	for _, w := range needed.Warnings {
		o.env.Warnf("%s", w)
	}
	return o.move(ctx, c, u, u.Installed.Spec, func() ([]*v1beta1.OperatorVersion, error) { return needed.Ordered, nil })
}

// read returns the upgrade of the Instance as it is in the cluster, without the OperatorVersion that it is moved to.
func (o *upgradeOptions) read(ctx context.Context, c client.Client, namespace string, given map[string]string) (*act.Upgrade, error) {
	instance, err := act.FindInstance(ctx, c, namespace, o.instance)
	if err != nil {
		return nil, err
	}
	placement, err := o.placement.edit(instance)
	if err != nil {
		return nil, err
	}
	old, err := act.ReadVersion(ctx, c, instance)
	return &act.Upgrade{Instance: instance, Old: old, Set: given, Placement: placement.DeepCopy(),
		AllowDowngrade: o.allowDowngrade, GivesRights: o.account.create}, err
}

// checkUpgrade refuses a package that the Instance cannot be moved to, parameters that the package does not accept, and a cluster that is
// too old for one of the packages.
func checkUpgrade(ctx context.Context, config *rest.Config, packages []*operators.Package, u *act.Upgrade) error {
	if err := u.Check(); err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	if err := act.CheckValues(u.Hide(pkg.Definitions()), u.Set, u.Instance.Spec.Parameters, u.Instance.Spec.ParametersFrom,
		command.DescribePackage(pkg)); err != nil {
		return err
	}
	if err := checkKubernetes(config, packages); err != nil {
		return err
	}
	return command.CheckPackage(ctx, pkg, u.Changed(), u.Version.Spec.InstallParameters)
}

// move shows the preview of an upgrade, or makes its OperatorVersions and moves the Instance. find returns the specs of OperatorVersions.
func (o *upgradeOptions) move(ctx context.Context, c client.WithWatch, u *act.Upgrade, find func(string) *v1beta1.OperatorVersionSpec,
	create func() ([]*v1beta1.OperatorVersion, error)) error {
	isPlaced := u.Changed().IsTemplate()
	if err := checkPlacement(u.Changed(), &u.Version.Spec); err != nil {
		return err
	}
	if isPlaced && o.account.create {
		return errAccountOnHub
	}
	if done, err := o.preview.show(ctx, o.env, c, u, act.Change{}); done || err != nil {
		return err
	}
	if err := askRemoval(o.env, u.Instance, u.Placement, o.account.yes); err != nil {
		return err
	}
	account, err := o.account.update(ctx, o.env, c, u.Changed(), &u.Version.Spec, find)
	if err != nil {
		return err
	}
	versions, err := create()
	if err != nil {
		return err
	}
	if !isPlaced { // install plans run in the clusters, too
		if err := awaitInstalled(ctx, o.env, c, versions, &o.WaitFlags); err != nil {
			return err
		}
	}
	if account != nil {
		ownAccount(ctx, o.env, c, account, u.Instance)
	}
	return changeInstance(ctx, o.env, c, u.Instance, &o.WaitFlags, o.preview.lock("upgraded", func(i *v1beta1.Instance) {
		setAccount(i, account)
		u.Apply(i)
	}))
}
