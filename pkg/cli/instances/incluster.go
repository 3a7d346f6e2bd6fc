package instances

import (
	"context"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/repository/incluster"
)

// installFromCluster creates an Instance of an OperatorVersion that is installed in the namespace. The dependencies of this OperatorVersion
// must be installed there, too: they are not searched for elsewhere.
func (o *installOptions) installFromCluster(ctx context.Context, operator string, given map[string]string,
	from []v1beta1.ParametersSource) error {
	if err := o.validateInCluster(operator); err != nil {
		return err
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	installed, err := incluster.List(ctx, c, namespace)
	if err != nil {
		return err
	}
	ov, err := installed.Choose(operator, repository.Versions{App: o.AppVersion, Operator: o.OperatorVersion})
	if err != nil {
		return err
	}
	operator = ov.Spec.Operator.Name
	if o.instance == "" {
		o.instance = operators.DefaultInstanceName(operator)
	}
	install := act.Install{Instance: o.newInstance(namespace, operator, ov.Name, given, from), Version: ov, Installed: installed,
		GivesRights: o.account.create}
	if err := install.Check(ctx, c); err != nil {
		return err
	}
	needed, err := install.Dependencies()
	if err != nil {
		return err
	}
	for _, w := range needed.Warnings {
		o.env.Warnf("%s", w)
	}
	if o.placed != nil {
		includeVersions(o.placed, needed.Ordered[:len(needed.Ordered)-1])
		if err := checkPlacement(install.Instance, &ov.Spec); err != nil {
			return err
		}
	}
	n := &newcomer{Instance: install.Instance, pkg: operator, spec: &ov.Spec, versions: installed.Spec, flags: &o.account}
	if err := checkAccount(ctx, o.env, c, n); err != nil {
		return err
	}
	if done, err := o.preview.compute(o.env, c, func(p *act.Previewer) (*preview.Preview, error) {
		install.Instance = n.edit().After
		return install.Preview(ctx, p)
	}); done || err != nil {
		return err
	}
	if err := makeAccount(ctx, o.env, c, n); err != nil {
		return err
	}
	return makeInstance(ctx, o.env, c, n, needed.Ordered, &o.WaitFlags)
}

// validateInCluster refuses flags and arguments of an installation that contradict --in-cluster.
func (o *installOptions) validateInCluster(operator string) error {
	switch {
	case o.skipInstance, o.namespace:
		return command.UsageError("--in-cluster cannot be used with --skip-instance and --create-namespace: it makes an Instance of what is " +
			"installed")
	case o.installing.IsSet():
		return command.UsageError("--install-parameter cannot be used with --in-cluster: the install plan has already run")
	}
	return checkInCluster(operator, &o.VersionFlags)
}

// checkInCluster refuses what cannot name an OperatorVersion of the cluster.
func checkInCluster(operator string, versions *command.VersionFlags) error {
	switch {
	case versions.Repo != "":
		return command.UsageError("--repo cannot be used with --in-cluster, which looks for what is installed in the namespace")
	case strings.ContainsAny(strings.TrimPrefix(operator, incluster.VersionPrefix), `/\`):
		return command.UsageError("with --in-cluster, PACKAGE is the name of an operator, or %sNAME, and %s is a path or a URL",
			incluster.VersionPrefix, operator)
	}
	return versions.Check()
}
