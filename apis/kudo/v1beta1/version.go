package v1beta1

import (
	"regexp"
	"sync"
)

// versionText matches the versions that templates may print. It is compiled when it is first used: programs start with this package, and
// few of them print a version.
var versionText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`) })

// NewPackageVersion returns the version of a package.
func NewPackageVersion(spec *OperatorVersionSpec) PackageVersion {
	return PackageVersion{OperatorVersion: spec.Version, AppVersion: spec.AppVersion}
}

// CompletedVersion returns the version of the package that the last complete run of plan deploy, update or upgrade had. It is empty if no
// such run is known, and so is a field that versionText does not match.
func (i *Instance) CompletedVersion() (out PackageVersion) {
	if i.Status.Baseline == nil || i.Status.Baseline.Completed == nil {
		return out
	}
	out = *i.Status.Baseline.Completed
	for _, field := range []*string{&out.OperatorVersion, &out.AppVersion} {
		if !versionText().MatchString(*field) {
			*field = ""
		}
	}
	return out
}
