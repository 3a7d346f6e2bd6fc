package plane

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/version"
)

// emulatedMinors is how many minor versions before its own Kubernetes can emulate.
const emulatedMinors = 3

// CheckEmulatedVersion returns an error for what is not a minor version that the components can emulate. They can emulate their own.
func CheckEmulatedVersion(text string) error {
	own := compatibility.NewEffectiveVersionFromString(version.DefaultKubeBinaryVersion, "", "").BinaryVersion()
	lowest := utilversion.MajorMinor(own.Major(), own.Minor()-emulatedMinors)
	v, err := utilversion.ParseMajorMinor(text)
	if err != nil || v.LessThan(lowest) || v.GreaterThan(own) || v.String() != text {
		return fmt.Errorf("%q is not a version that Kubernetes %s can emulate: name one of %s to %s", text, own, lowest, own)
	}
	return nil
}
