package operators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// VersionName is the name of the OperatorVersion of a version of an operator: `<operator>-<appVersion>-<operatorVersion>`,
// or `<operator>-<operatorVersion>` if the package has no appVersion.
func VersionName(operator, appVersion, operatorVersion string) string {
	if appVersion == "" {
		return operator + "-" + operatorVersion
	}
	return operator + "-" + appVersion + "-" + operatorVersion
}

// DefaultInstanceName is the name of an Instance whose user gives none.
func DefaultInstanceName(operator string) string { return operator + "-instance" }

// CheckInstanceName refuses what cannot name an Instance: it names an object, and is a label of all that the Instance has.
func CheckInstanceName(name string) error {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("%q cannot name an Instance: use lower case letters, digits, dots and dashes", text.Truncate(name, 64))
	case len(name) > validation.LabelValueMaxLength:
		return fmt.Errorf("%q is longer than %d characters, so it cannot name an Instance, whose name is the label %s: shorten it",
			text.Truncate(name, 64), validation.LabelValueMaxLength, v1beta1.InstanceLabel)
	}
	return nil
}

// ChildInstanceName is the name of the Instance of a dependency whose task gives none.
func ChildInstanceName(parent, operator string) string { return parent + "-" + operator }

// ChildSecretName is the name of the Secret that gives a dependency's Instance its sensitive parameters.
func ChildSecretName(child string) string { return child + "-parameters" }
