package operators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Convert makes the Operator and the OperatorVersion of a package, for a namespace. Its tasks name what the lock says. Values that the API
// server would refuse as names are refused here, with the field they come from, and so is a lock that does not fit; the error is of type
// Errors.
func Convert(p *Package, namespace string) (*v1beta1.Operator, *v1beta1.OperatorVersion, error) {
	if err := append(p.ValidateNames(), p.ValidateLock()...).Err(); err != nil {
		return nil, nil, err
	}
	p, err := p.resolved()
	if err != nil {
		return nil, nil, err
	}
	f := p.Operator
	operator := &v1beta1.Operator{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "Operator"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: namespace},
		Spec: v1beta1.OperatorSpec{
			Description: f.Description, KudoVersion: f.KudoVersion, KubernetesVersion: f.KubernetesVersion,
			Maintainers: slices.Clone(f.Maintainers), URL: f.URL, NamespaceManifest: f.NamespaceManifest,
		},
	}
	copied := p.DeepCopy()
	version := &v1beta1.OperatorVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "OperatorVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: VersionName(f.Name, f.AppVersion, f.OperatorVersion), Namespace: namespace},
		Spec: v1beta1.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Kind: "Operator", Name: f.Name},
			Version:  f.OperatorVersion, AppVersion: f.AppVersion,
			Templates: maps.Clone(p.Templates), Tasks: copied.Operator.Tasks, Plans: copied.Operator.Plans,
			Parameters:  p.Definitions(),
			InstallPlan: f.InstallPlan, InstallPolicy: copied.Operator.InstallPolicy, CRDTarball: copied.Operator.CRDTarball,
			Provenance: copied.Provenance,
		},
	}
	return operator, version, nil
}

// ValidateNames finds what would make names that Kubernetes does not take.
func (p *Package) ValidateNames() Errors {
	var errs Errors
	fail := func(field, format string, args ...any) {
		errs = append(errs, Finding{File: OperatorFileName, Line: p.Line(OperatorFileName, field), Field: field,
			Message: fmt.Sprintf(format, args...)})
	}
	f := p.Operator
	if f.Name == "" {
		fail("name", "a name is required, as it names the operator in the cluster")
	} else if problems := validation.IsDNS1123Subdomain(f.Name); len(problems) > 0 {
		fail("name", "%q cannot name an object: use lower case letters, digits, - and .", text.Truncate(f.Name, 64))
	} else if len(f.Name) > validation.LabelValueMaxLength {
		fail("name", "%q is longer than %d characters, so it cannot be the label %s: shorten it", text.Truncate(f.Name, 64),
			validation.LabelValueMaxLength, v1beta1.OperatorLabel)
	}
	if f.OperatorVersion == "" {
		fail("operatorVersion", `a version is required, like "0.1.0"`)
	}
	for _, v := range []struct{ field, value string }{{"operatorVersion", f.OperatorVersion}, {"appVersion", f.AppVersion}} {
		if v.value != "" && len(validation.IsDNS1123Subdomain(v.value)) > 0 {
			fail(v.field, "%q is part of the name of the OperatorVersion: use lower case letters, digits, - and .", text.Truncate(v.value, 64))
		}
	}
	name := VersionName(f.Name, f.AppVersion, f.OperatorVersion)
	if len(errs) == 0 && len(validation.IsDNS1123Subdomain(name)) > 0 {
		fail("name", "%q, made of name, appVersion and operatorVersion, cannot name an object (%s)", text.Truncate(name, 64),
			strings.Join(validation.IsDNS1123Subdomain(name), ", "))
	}
	return errs
}
