package cli

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

type upgradeOptions struct {
	waiting
	parameters
	choice
	account        accountFlags
	instance       string
	allowDowngrade bool
	dryRun         bool
}

func (t *tool) upgradeCommand() *cobra.Command {
	o := &upgradeOptions{}
	cmd := &cobra.Command{
		Use:   "upgrade PACKAGE --instance NAME",
		Short: "Move an Instance to another version of its operator",
		Long: `Install another version of the Instance's operator, and move the Instance to it. The first of the plans upgrade,
update and deploy that the new version has is run.

  kubectl kudo upgrade ./mysql-0.4.0 --instance db --wait
  kubectl kudo upgrade mysql --operator-version '^0.4' --instance db --wait`,
		Args: exactly(1, "one package: a folder that holds operator.yaml, a .tgz, a URL, or a name in a repository"),
		RunE: func(cmd *cobra.Command, args []string) error { return t.upgrade(cmd.Context(), args[0], o) },
	}
	instanceFlag(cmd, &o.instance)
	cmd.Flags().BoolVar(&o.allowDowngrade, "allow-downgrade", false, "allow a lower version than the Instance has")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say which plan would run and which objects would be deleted after it, and change nothing")
	o.account.add(cmd.Flags(), " as the new version has them, after showing what changes")
	o.choice.add(cmd.Flags())
	o.parameters.add(cmd.Flags())
	o.waiting.add(cmd.Flags(), "the upgrade has ended")
	return cmd
}

func (t *tool) upgrade(ctx context.Context, name string, o *upgradeOptions) error {
	given, err := o.read()
	if err != nil {
		return err
	}
	packages, err := t.resolve(ctx, name, o.choice)
	if err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	c, config, namespace, err := t.connect()
	if err != nil {
		return err
	}
	instance, err := t.find(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := client.IgnoreNotFound(c.Get(ctx, instance.OperatorVersionKey(), ov)); err != nil {
		return err
	}
	if err := checkUpgrade(instance, ov, pkg, o.allowDowngrade); err != nil {
		return err
	}
	merged := instance.DeepCopy()
	setParameters(merged, given)
	if err := checkValues(pkg.Definitions(), given, instance.Spec.Parameters, instance.Spec.ParametersFrom, described(pkg)); err != nil {
		return err
	}
	if err := checkKubernetes(config, packages); err != nil {
		return err
	}
	if err := checkPackage(ctx, pkg, merged, nil); err != nil {
		return err
	}
	if o.dryRun {
		return t.previewUpgrade(ctx, c, merged, pkg)
	}
	known, err := specsOf(packages, namespace)
	if err != nil {
		return err
	}
	account, err := t.changedAccount(ctx, c, merged, known[versionName(pkg)], known.find, &o.account)
	if err != nil {
		return err
	}
	var versions []*v1beta1.OperatorVersion
	for _, p := range packages {
		version, err := t.installVersion(ctx, c, p, namespace, nil)
		if err != nil {
			return err
		}
		versions = append(versions, version)
	}
	if err := t.awaitInstalled(ctx, c, versions, &o.waiting); err != nil {
		return err
	}
	if account != nil {
		t.ownAccount(ctx, c, account, instance)
	}
	return t.change(ctx, c, instance, "upgraded", &o.waiting, func(i *v1beta1.Instance) {
		account.named(i)
		i.Spec.OperatorVersion.Name, i.Spec.OperatorVersion.Namespace = versionName(pkg), ""
		setParameters(i, given)
	})
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
	if instance.Spec.OperatorVersion.Name == versionName(pkg) {
		return fmt.Errorf("instance %s runs %s already: to run its plan again, use kubectl kudo plan trigger or retry", instance.Name, versionName(pkg))
	}
	from, err1 := semver.NewVersion(ov.Spec.Version)
	to, err2 := semver.NewVersion(pkg.Operator.OperatorVersion)
	if err1 == nil && err2 == nil && to.LessThan(from) && !allowDowngrade {
		return fmt.Errorf("operator version %s is lower than %s, which instance %s runs: use --allow-downgrade if that is meant", to, from, instance.Name)
	}
	return nil
}
