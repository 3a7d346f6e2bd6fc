package act

import (
	"context"
	"fmt"
	"maps"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/repository/incluster"
)

// Upgrade moves an Instance to another OperatorVersion of its operator.
type Upgrade struct {
	Instance *v1beta1.Instance
	// Old is the OperatorVersion that the Instance names; nil if it does not exist.
	Old *v1beta1.OperatorVersion
	// Version is the OperatorVersion that the Instance is moved to.
	Version *v1beta1.OperatorVersion
	// Installed are the OperatorVersions of the namespace of Version, which is one of them; nil if Version is created with the upgrade.
	Installed *incluster.Versions
	// Versions are those that are created with the upgrade, each after those that it depends on, and Version is the last.
	Versions []*v1beta1.OperatorVersion
	// Set are the parameters that get a value.
	Set map[string]string
	// Placement is the one that the Instance is to have; nil leaves it as it is.
	Placement *v1beta1.Placement
	// AllowDowngrade is set if Version may be lower than Old.
	AllowDowngrade bool
	// GivesRights is set if the account of the Instance is given what the plans of Version need.
	GivesRights bool
}

// Check returns an error for another operator, for the OperatorVersion that the Instance has, and for a lower one.
func (u Upgrade) Check() error {
	name, operator := u.Instance.Name, OperatorOf(u.Instance, u.Old)
	same := u.Instance.OperatorVersionKey() == client.ObjectKeyFromObject(u.Version)
	switch {
	case operator != "" && operator != u.Version.Spec.Operator.Name:
		return fmt.Errorf("instance %s runs operator %s: it cannot be upgraded to operator %s", name, operator, u.Version.Spec.Operator.Name)
	case same && u.Old == nil:
		return MissingVersion(u.Instance)
	case same:
		return fmt.Errorf("instance %s runs %s already: to run its plan again, use kubectl kudo plan trigger or retry", name, u.Version.Name)
	case !u.AllowDowngrade && IsLower(u.Version, u.Old):
		return fmt.Errorf("operator version %s is lower than %s, which instance %s runs: use --allow-downgrade if that is meant",
			u.Version.Spec.Version, u.Old.Spec.Version, name)
	}
	return nil
}

// Hide returns parameter definitions of Version as those of sensitive parameters where Old calls them so: an error would show the value.
func (u Upgrade) Hide(defs []v1beta1.Parameter) []v1beta1.Parameter {
	if u.Old == nil {
		return defs
	}
	var names []string
	for _, def := range u.Old.Spec.Parameters {
		if def.Sensitive {
			names = append(names, def.Name)
		}
	}
	return params.Sensitive(defs, names)
}

// OperatorOf returns the name of the operator of an Instance: that of its OperatorVersion, which is nil if it does not exist, or else that
// of its label. It is empty if neither is known.
func OperatorOf(i *v1beta1.Instance, version *v1beta1.OperatorVersion) string {
	if version != nil && version.Spec.Operator.Name != "" {
		return version.Spec.Operator.Name
	}
	return i.Labels[v1beta1.OperatorLabel]
}

// IsLower reports whether the version of an operator is lower than that of another one, which may be nil. Versions that are no semantic
// versions are not compared.
func IsLower(version, than *v1beta1.OperatorVersion) bool {
	if than == nil {
		return false
	}
	from, err1 := semver.NewVersion(than.Spec.Version)
	to, err2 := semver.NewVersion(version.Spec.Version)
	return err1 == nil && err2 == nil && to.LessThan(from)
}

// Change implements Edit. It is an error if Version does not accept the parameters of the Instance, and if what it depends on is not
// installed.
func (u Upgrade) Change(ctx context.Context, _ client.Client) (Change, error) {
	if err := u.Check(); err != nil {
		return Change{}, err
	}
	if err := CheckValues(u.Hide(u.Version.Spec.Parameters), u.Set, u.Instance.Spec.Parameters, u.Instance.Spec.ParametersFrom,
		"operatorversion "+u.Version.Name); err != nil {
		return Change{}, err
	}
	if _, err := u.Dependencies(); err != nil {
		return Change{}, err
	}
	return Change{Verb: "upgraded", Apply: u.Apply}, CheckStructure(ctx, &u.Version.Spec, u.Instance, u.Set)
}

// Dependencies returns Version with the OperatorVersions of Installed that it depends on.
func (u Upgrade) Dependencies() (*incluster.Resolution, error) {
	return Dependencies(u.Installed, u.Version, u.Changed().Spec.Parameters, u.Instance.Spec.ParametersFrom)
}

// Dependencies returns an OperatorVersion with those that it depends on, for an Instance with these parameters. The error names those that
// are not installed, and the remedy.
func Dependencies(installed *incluster.Versions, version *v1beta1.OperatorVersion, given map[string]string,
	from []v1beta1.ParametersSource) (*incluster.Resolution, error) {
	values, err := params.Resolve(version.Spec.Parameters, given)
	if err != nil {
		return nil, err
	}
	if len(from) > 0 { // these may have the values of all that is not given
		maps.DeleteFunc(values, func(name string, _ any) bool { _, set := given[name]; return !set })
	}
	return installed.Resolve(version, values)
}

// Apply names the OperatorVersion in an Instance, and sets the parameters.
func (u Upgrade) Apply(i *v1beta1.Instance) {
	i.Spec.OperatorVersion.Name, i.Spec.OperatorVersion.Namespace = u.Version.Name, ""
	if u.Version.Namespace != i.Namespace {
		i.Spec.OperatorVersion.Namespace = u.Version.Namespace
	}
	SetParameters(i, u.Set)
	setPlacement(i, u.Placement)
}

// Changed returns the Instance as the upgrade leaves it.
func (u Upgrade) Changed() *v1beta1.Instance {
	out := u.Instance.DeepCopy()
	u.Apply(out)
	return out
}

// Preview implements Edit.
func (u Upgrade) Preview(ctx context.Context, p *Previewer, _ Change) (*preview.Preview, error) {
	return p.Edit(ctx, u.edit())
}

// edit returns what a preview is asked about. An OperatorVersion that the cluster never had, as one of a file, is no version to come from.
func (u Upgrade) edit() preview.Edit {
	out := preview.Edit{Verb: "upgrade", Before: u.Instance, After: u.Changed(), Version: u.Version, Versions: u.Versions,
		KeepsVersions: true, GivesRights: u.GivesRights}
	if u.Old != nil && u.Old.UID != "" {
		out.Old = u.Old
	}
	return out
}

// PackageUpgradeCommand returns the command line that shows what a move of an Instance to a package would do.
func PackageUpgradeCommand(i *v1beta1.Instance) string {
	return commandOf("upgrade", i, "PACKAGE", "--dry-run")
}

// Command implements Action. It names the OperatorVersion, since several may have the same version, and an operator the same name.
func (u Upgrade) Command() string {
	args := []string{incluster.VersionPrefix + u.Version.Name, "--in-cluster"}
	if IsLower(u.Version, u.Old) {
		args = append(args, "--allow-downgrade")
	}
	return commandOf("upgrade", u.Instance, append(args, valueArgs(u.Version, u.Set)...)...)
}
