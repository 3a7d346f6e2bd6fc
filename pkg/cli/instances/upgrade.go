package instances

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/preview"
)

type upgradeOptions struct {
	env *command.Env

	command.WaitFlags
	command.ParameterFlags
	command.VersionFlags
	account        accountFlags
	preview        previewFlags
	instance       string
	allowDowngrade bool
}

// NewUpgrade returns the command upgrade.
func NewUpgrade(env *command.Env) *cobra.Command {
	o := &upgradeOptions{env: env}
	cmd := &cobra.Command{
		Use:   "upgrade PACKAGE --instance NAME",
		Short: "Move an Instance to another version of its operator",
		Long: `Install another version of the Instance's operator, and move the Instance to it. The first of the plans upgrade,
update and deploy that the new version has is run.

  kubectl kudo upgrade ./mysql-0.4.0 --instance db --wait
  kubectl kudo upgrade mysql --operator-version '^0.4' --instance db --wait
  kubectl kudo upgrade oci://registry.example.com/kudo/mysql:8.4_0.4.1 --instance db --wait`,
		Args:    command.ExactArgs(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, oci://…, or a name in a repository"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check(env) },
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	cmd.Flags().BoolVar(&o.allowDowngrade, "allow-downgrade", false, "allow a lower version than the Instance has")
	o.preview.add(cmd.Flags())
	o.account.add(cmd.Flags(), " as the new version has them, after showing what changes")
	o.VersionFlags.Add(cmd.Flags())
	o.ParameterFlags.Add(cmd.Flags())
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
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	instance, err := act.FindInstance(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := client.IgnoreNotFound(c.Get(ctx, instance.OperatorVersionKey(), ov)); err != nil {
		return err
	}
	merged := instance.DeepCopy()
	act.SetParameters(merged, given)
	u := &upgrade{before: instance, merged: merged, old: ov, packages: packages, given: given}
	if err := o.check(ctx, config, u); err != nil {
		return err
	}
	coming, err := pkginstall.Versions(packages, namespace, nil)
	if err != nil {
		return err
	}
	known := command.SpecsOf(coming)
	if done, err := o.preview.compute(o.env, c, func(p *act.Previewer) (*preview.Preview, error) {
		e := upgradeEdit(instance, merged, ov, coming)
		e.GivesRights = o.account.create
		return p.Edit(ctx, e)
	}); done || err != nil {
		return err
	}
	account, err := o.account.update(ctx, o.env, c, merged, known[command.VersionName(u.pkg())], known.Find)
	if err != nil {
		return err
	}
	versions, err := installerOf(o.env, c).CreateVersions(ctx, packages, namespace, nil)
	if err != nil {
		return err
	}
	if err := awaitInstalled(ctx, o.env, c, versions, &o.WaitFlags); err != nil {
		return err
	}
	if account != nil {
		ownAccount(ctx, o.env, c, account, instance)
	}
	return changeInstance(ctx, o.env, c, instance, &o.WaitFlags, o.preview.lock("upgraded", func(i *v1beta1.Instance) {
		setAccount(i, account)
		u.apply(i)
	}))
}

// upgrade is the move of an Instance to the version of a package.
type upgrade struct {
	// before is the Instance as it is; merged has the given parameters, too.
	before, merged *v1beta1.Instance
	// old is the version that the Instance has; it need not exist.
	old *v1beta1.OperatorVersion
	// packages are the dependencies, in the order in which they are to be installed, and the package, which is the last.
	packages []*operators.Package
	given    map[string]string
}

// pkg returns the package, without its dependencies.
func (u *upgrade) pkg() *operators.Package { return u.packages[len(u.packages)-1] }

// apply names the version of the package in an Instance, and sets the given parameters.
func (u *upgrade) apply(i *v1beta1.Instance) {
	i.Spec.OperatorVersion.Name, i.Spec.OperatorVersion.Namespace = command.VersionName(u.pkg()), ""
	act.SetParameters(i, u.given)
}

// check refuses a package that the Instance cannot be moved to, parameters that the package does not accept, and a cluster that is too old
// for one of the packages.
func (o *upgradeOptions) check(ctx context.Context, config *rest.Config, u *upgrade) error {
	pkg := u.pkg()
	if err := checkUpgrade(u.before, u.old, pkg, o.allowDowngrade); err != nil {
		return err
	}
	if err := act.CheckValues(pkg.Definitions(), u.given, u.before.Spec.Parameters, u.before.Spec.ParametersFrom,
		command.DescribePackage(pkg)); err != nil {
		return err
	}
	if err := checkKubernetes(config, u.packages); err != nil {
		return err
	}
	return command.CheckPackage(ctx, pkg, u.merged, nil)
}

// upgradeEdit returns the edit that moves an Instance to the last of the versions, which come with the edit. ov is the OperatorVersion that
// the Instance names before; it need not exist in the cluster.
func upgradeEdit(before, merged *v1beta1.Instance, ov *v1beta1.OperatorVersion, versions []*v1beta1.OperatorVersion) preview.Edit {
	version := versions[len(versions)-1]
	after := merged.DeepCopy()
	after.Spec.OperatorVersion.Name, after.Spec.OperatorVersion.Namespace = version.Name, ""
	e := preview.Edit{Verb: "upgrade", Before: before, After: after, Version: version, Versions: versions, KeepsVersions: true}
	if ov != nil && ov.UID != "" {
		e.Old = ov
	}
	return e
}

// checkUpgrade refuses another operator, the same version, and a lower one.
func checkUpgrade(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, pkg *operators.Package, allowDowngrade bool) error {
	operator := ov.Spec.Operator.Name
	if operator == "" {
		operator = instance.Labels[v1beta1.OperatorLabel]
	}
	if operator != "" && operator != pkg.Operator.Name {
		return fmt.Errorf("instance %s runs operator %s: it cannot be upgraded to operator %s", instance.Name, operator, pkg.Operator.Name)
	}
	if instance.Spec.OperatorVersion.Name == command.VersionName(pkg) && ov.UID == "" {
		return act.MissingVersion(instance)
	}
	if instance.Spec.OperatorVersion.Name == command.VersionName(pkg) {
		return fmt.Errorf("instance %s runs %s already: to run its plan again, use kubectl kudo plan trigger or retry", instance.Name,
			command.VersionName(pkg))
	}
	from, err1 := semver.NewVersion(ov.Spec.Version)
	to, err2 := semver.NewVersion(pkg.Operator.OperatorVersion)
	if err1 == nil && err2 == nil && to.LessThan(from) && !allowDowngrade {
		return fmt.Errorf("operator version %s is lower than %s, which instance %s runs: use --allow-downgrade if that is meant", to, from,
			instance.Name)
	}
	return nil
}
