// Package pkginstall creates the objects of packages in a cluster: namespace, Operators, OperatorVersions and an Instance.
package pkginstall

import (
	"context"
	"fmt"
	"maps"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/content"
)

// Installer creates the objects of packages. It keeps what exists.
type Installer struct {
	Client client.Client
	// Progressf is called for each object that was created or found, with a text for people.
	Progressf func(format string, args ...any)
	// Warnf is called if an object that exists has another content than the package.
	Warnf func(format string, args ...any)
}

// InstanceOptions describe a new Instance.
type InstanceOptions struct {
	Namespace, Name string
	// Operator is the name of the operator, OperatorVersion the name of the object.
	Operator, OperatorVersion string
	Parameters                map[string]string
	ParametersFrom            []v1beta1.ParametersSource
	Schedules                 []v1beta1.Schedule
	// ServiceAccountName is the account with whose rights the plans write; empty is the default of the cluster.
	ServiceAccountName string
	// Adopt lets the plans take over existing objects that no controller owns.
	Adopt bool
}

// NewInstance returns the Instance to create.
func NewInstance(o InstanceOptions) *v1beta1.Instance {
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, Labels: map[string]string{v1beta1.OperatorLabel: o.Operator},
	}}
	if o.Adopt {
		instance.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true"}
	}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Kind: "OperatorVersion", Name: o.OperatorVersion}
	instance.Spec.Parameters, instance.Spec.ParametersFrom, instance.Spec.Schedules = o.Parameters, o.ParametersFrom, o.Schedules
	instance.Spec.ServiceAccountName = o.ServiceAccountName
	return instance
}

// CheckAbsent returns an error if the Instance exists.
func CheckAbsent(ctx context.Context, c client.Reader, instance *v1beta1.Instance) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(instance), &v1beta1.Instance{})
	if err == nil {
		return fmt.Errorf("instance %s/%s exists already: use kubectl kudo update or upgrade, or another --instance",
			instance.Namespace, instance.Name)
	}
	return client.IgnoreNotFound(err)
}

// CheckKubernetes returns an error if a package needs a higher version of Kubernetes than the server has.
func CheckKubernetes(d discovery.ServerVersionInterface, packages []*operators.Package) error {
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
			return fmt.Errorf("operator %s needs Kubernetes %s or later, and this cluster is %s",
				p.Operator.Name, p.Operator.KubernetesVersion, info.GitVersion)
		}
	}
	return nil
}

// CreateVersions creates the Operators and OperatorVersions of packages, in their order. The parameters are for the install plan of
// the last package, which depends on the others. It returns the OperatorVersions as they are in the cluster.
func (i Installer) CreateVersions(
	ctx context.Context, packages []*operators.Package, namespace string, parameters map[string]string,
) ([]*v1beta1.OperatorVersion, error) {
	versions := make([]*v1beta1.OperatorVersion, len(packages))
	for n, pkg := range packages {
		version, err := i.createVersion(ctx, pkg, namespace, parametersOf(packages, n, parameters))
		if err != nil {
			return nil, err
		}
		versions[n] = version
	}
	return versions, nil
}

// Versions returns the OperatorVersions that packages become in a namespace, in their order. The parameters are those of the install plan
// of the last one.
func Versions(packages []*operators.Package, namespace string, parameters map[string]string) ([]*v1beta1.OperatorVersion, error) {
	versions := make([]*v1beta1.OperatorVersion, len(packages))
	for n, pkg := range packages {
		var err error
		if _, versions[n], err = convert(pkg, namespace, parametersOf(packages, n, parameters)); err != nil {
			return nil, err
		}
	}
	return versions, nil
}

// Specs are the specs of OperatorVersions by name.
type Specs map[string]*v1beta1.OperatorVersionSpec

// Find returns a spec, or nil if there is none of this name.
func (s Specs) Find(name string) *v1beta1.OperatorVersionSpec { return s[name] }

// SpecsOf returns the specs of OperatorVersions.
func SpecsOf(versions []*v1beta1.OperatorVersion) Specs {
	out := Specs{}
	for _, version := range versions {
		out[version.Name] = &version.Spec
	}
	return out
}

// parametersOf returns the parameters of the install plan of a package: they are given for the last one.
func parametersOf(packages []*operators.Package, n int, given map[string]string) map[string]string {
	if n < len(packages)-1 {
		return nil
	}
	return given
}

// convert makes the Operator and the OperatorVersion of a package, with the parameters of its install plan.
func convert(pkg *operators.Package, namespace string, parameters map[string]string) (*v1beta1.Operator, *v1beta1.OperatorVersion, error) {
	operator, version, err := operators.Convert(pkg, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	version.Spec.InstallParameters = parameters
	return operator, version, nil
}

// createVersion creates the Operator and the OperatorVersion of a package, unless they exist, and returns the OperatorVersion as it
// is in the cluster.
func (i Installer) createVersion(
	ctx context.Context, pkg *operators.Package, namespace string, parameters map[string]string,
) (*v1beta1.OperatorVersion, error) {
	c := i.Client
	operator, version, err := convert(pkg, namespace, parameters)
	if err != nil {
		return nil, err
	}
	if pkg.Operator.InstallPlan != "" || pkg.Operator.CRDTarball != nil { // a user who may not install leaves nothing behind
		if err := c.Create(ctx, version.DeepCopy(), client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
		}
	}
	switch err := c.Create(ctx, operator); {
	case err == nil:
		i.Progressf("operator %s/%s created", namespace, operator.Name)
	case !apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("operator %s/%s: %w", namespace, operator.Name, err)
	}
	wanted := version.DeepCopy()
	err = c.Create(ctx, version)
	if err == nil {
		i.Progressf("operatorversion %s/%s created", namespace, version.Name)
		return version, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
	}
	live := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(version), live); err != nil {
		return nil, err
	}
	i.Progressf("operatorversion %s/%s already installed", namespace, version.Name)
	if len(parameters) > 0 && !maps.Equal(parameters, live.Spec.InstallParameters) {
		patch := client.MergeFrom(live.DeepCopy())
		live.Spec.InstallParameters = parameters
		if err := c.Patch(ctx, live, patch); err != nil {
			return nil, fmt.Errorf("operatorversion %s/%s: %w", namespace, version.Name, err)
		}
		i.Progressf("operatorversion %s/%s install parameters changed", namespace, version.Name)
	}
	same, err := content.Same(live, wanted)
	if err != nil {
		return nil, err
	}
	if !same {
		i.Warnf("operatorversion %s/%s has other content than the package: it is used as it is. "+
			"Give the package a new operatorVersion, or delete the OperatorVersion first", namespace, version.Name)
	}
	return live, nil
}

// CreateInstance creates an Instance, which then is as the API server has it.
func (i Installer) CreateInstance(ctx context.Context, instance *v1beta1.Instance) error {
	if err := i.Client.Create(ctx, instance); err != nil {
		return fmt.Errorf("instance %s/%s: %w", instance.Namespace, instance.Name, err)
	}
	i.Progressf("instance %s/%s created", instance.Namespace, instance.Name)
	return nil
}
