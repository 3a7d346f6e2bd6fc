package trust

import (
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
)

// PackageOf returns what a signature of an OperatorVersion vouches for: its content, and no file that it came in.
func PackageOf(version *v1beta1.OperatorVersion) (Package, error) {
	digest, err := content.Digest(version)
	return Package{Name: version.Spec.Operator.Name, AppVersion: version.Spec.AppVersion, OperatorVersion: version.Spec.Version,
		Content: digest}, err
}
