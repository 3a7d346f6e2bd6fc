package act

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/repository/incluster"
)

// Install makes an Instance of an OperatorVersion that is in the cluster.
type Install struct {
	// Instance is the one to be made, with the parameters and the account that it names.
	Instance *v1beta1.Instance
	// Version is the OperatorVersion that it names.
	Version *v1beta1.OperatorVersion
	// Installed are the OperatorVersions of its namespace.
	Installed *incluster.Versions
	// GivesRights is set if the account of the Instance is made with the rights that the plans need.
	GivesRights bool
}

// Check returns an error if the name cannot be that of an Instance or is taken, if Version does not accept the parameters, and if what it
// depends on is not installed.
func (n Install) Check(ctx context.Context, c client.Client) error {
	if err := operators.CheckInstanceName(n.Instance.Name); err != nil {
		return err
	}
	if err := CheckValues(n.Version.Spec.Parameters, n.Instance.Spec.Parameters, nil, n.Instance.Spec.ParametersFrom,
		"operatorversion "+n.Version.Name); err != nil {
		return err
	}
	if _, err := n.Dependencies(); err != nil {
		return err
	}
	if err := pkginstall.CheckAbsent(ctx, c, n.Instance); err != nil {
		return err
	}
	return CheckStructure(ctx, &n.Version.Spec, n.Instance, nil)
}

// Dependencies returns Version with the OperatorVersions of Installed that it depends on.
func (n Install) Dependencies() (*incluster.Resolution, error) {
	return Dependencies(n.Installed, n.Version, n.Instance.Spec.Parameters, n.Instance.Spec.ParametersFrom)
}

// Preview asks the cluster what the installation would do.
func (n Install) Preview(ctx context.Context, p *Previewer) (*preview.Preview, error) {
	return p.Edit(ctx, preview.Edit{Verb: "install", After: n.Instance.DeepCopy(), Version: n.Version, KeepsVersions: true,
		GivesRights: n.GivesRights})
}

// Create creates the Instance. Nothing is changed if there is one of the name.
func (n Install) Create(ctx context.Context, c client.Client, opts ...client.CreateOption) error {
	return c.Create(ctx, n.Instance.DeepCopy(), opts...)
}

// Command implements Action. It names the OperatorVersion, since several may have the same version, and an operator the same name.
func (n Install) Command() string {
	args := []string{incluster.VersionPrefix + n.Version.Name, "--in-cluster"}
	if account := n.Instance.Spec.ServiceAccountName; account != "" {
		args = append(args, "--service-account", account)
	}
	return commandOf("install", n.Instance, append(args, valueArgs(n.Version, n.Instance.Spec.Parameters)...)...)
}
