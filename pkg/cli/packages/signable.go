package packages

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

// signableArtifact returns what a signature of the artifact of a package vouches for.
func signableArtifact(a *artifact.Artifact) (trust.Package, error) {
	if err := checkSignable(a.Package); err != nil {
		return trust.Package{}, err
	}
	wanted, err := packageOf(a.Package)
	wanted.Digests = map[string]string{trust.SubjectManifest: a.Descriptor().Digest.String()}
	return wanted, err
}

// signableArchive returns what a signature of an archive vouches for.
func signableArchive(found *repository.Found) (trust.Package, error) {
	if err := checkSignable(found.Package); err != nil {
		return trust.Package{}, err
	}
	wanted, err := packageOf(found.Package)
	wanted.Digests = map[string]string{trust.SubjectArchive: digest.FromBytes(found.Archive).String()}
	return wanted, err
}

// packageOf returns what a signature of a package vouches for, without its files.
func packageOf(pkg *operators.Package) (trust.Package, error) {
	_, version, err := operators.Convert(pkg, "")
	if err != nil {
		return trust.Package{}, err
	}
	return trust.PackageOf(version)
}

// archiveDigests are the digests that signatures of an archive may name: its own, and that of the manifest that push makes of it.
func archiveDigests(packed []byte) map[string]string {
	out := map[string]string{trust.SubjectArchive: digest.FromBytes(packed).String()}
	if a, err := artifact.New(packed, time.Time{}); err == nil { // else it cannot have been in a registry
		out[trust.SubjectManifest] = a.Descriptor().Digest.String()
	}
	return out
}

// checkSignable refuses packages that become something else than what is signed: those whose dependencies are looked for when they are
// installed, since their tasks name then what was found, and those with a tarball of CRDs that may change.
func checkSignable(pkg *operators.Package) error {
	for _, d := range pkg.Dependencies() {
		isRange := !artifact.IsVersion(d.OperatorVersion) || d.AppVersion != "" && !artifact.IsVersion(d.AppVersion)
		if len(validation.IsDNS1123Subdomain(d.Package)) > 0 || isRange {
			return fmt.Errorf("task %s depends on %q %q, which is looked for when the package is installed: name the package and its "+
				"appVersion and operatorVersion exactly, without range or path", d.Task, d.Package, d.OperatorVersion)
		}
	}
	return checkTarball(pkg.Operator.CRDTarball)
}

// checkTarball refuses a tarball of CRDs without a digest.
func checkTarball(tarball *v1beta1.CRDTarball) error {
	if field := tarball.MissingDigest(); field != "" {
		return fmt.Errorf("crdTarball.%s is missing: a signature would say nothing of the CustomResourceDefinitions", field)
	}
	return nil
}
