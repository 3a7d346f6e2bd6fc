package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/pkg/trust"
)

// signable is a package to which a signature can be added.
type signable struct {
	signed

	// add adds a signature to those that the package has.
	add func(bundle []byte) error
}

// withSignable finds a package by a reference, the file of an archive, or the name of an OperatorVersion, and calls do while the place of
// the package is open. A package that could become another one than what is signed is refused.
func withSignable(ctx context.Context, env *command.Env, registry *command.RegistryFlags, name string, do func(*signable) error) error {
	switch {
	case repository.IsReference(name):
		return withSignableReference(ctx, env, registry, name, do)
	case strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.gz"):
		return withSignableArchive(ctx, env, name, do)
	case strings.ContainsAny(name, `/\`):
		return command.UsageError("%s is neither a reference nor an archive: pack a folder by package create, and sign the archive", name)
	}
	return withSignableVersion(ctx, env, name, do)
}

// withSignableReference is withSignable for a package in a registry or in a folder in OCI layout.
func withSignableReference(ctx context.Context, env *command.Env, registry *command.RegistryFlags, name string,
	do func(*signable) error) (err error) {
	r, err := repository.ParseReference(name)
	if err != nil {
		return command.UsageError("%w", err)
	}
	if r.Tag == "" && r.Digest == "" {
		return command.UsageError("%s names no version: add its tag or digest, so that no other package is signed", name)
	}
	source, err := env.RemoteWith(registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	source.Direct = true // a mirror must not choose what is signed
	pulled, err := source.Pull(ctx, r, repository.Versions{})
	if err != nil {
		return err
	}
	s := &signable{signed: signed{name: pulled.Reference.String()}}
	if s.pkg, err = signableArtifact(env, pulled.Artifact); err != nil {
		return fmt.Errorf("%s cannot be signed: %w", s.name, err)
	}
	found, err := source.Signatures(ctx, pulled)
	warnOfSignatures(env, s.name, found)
	if err != nil {
		return err
	}
	s.bundles = found.Bundles
	s.add = func(bundle []byte) error {
		return source.Attach(ctx, pulled.Reference, pulled.Descriptor(), [][]byte{bundle}, trust.PredicateType)
	}
	return do(s)
}

// withSignableArchive is withSignable for an archive on this disk, whose signatures are in the file beside it.
func withSignableArchive(ctx context.Context, env *command.Env, name string, do func(*signable) error) error {
	found, err := checkPackage(ctx, env, name)
	if err != nil {
		return err
	}
	s := &signable{signed: signed{name: name}}
	if s.pkg, err = signablePackage(env, found.Package, trust.SubjectArchive, digest.FromBytes(found.Archive)); err != nil {
		return fmt.Errorf("%s cannot be signed: %w", name, err)
	}
	if s.bundles, err = repository.ReadSignatures(name); err != nil {
		return err
	}
	s.add = func(bundle []byte) error { return writeSignatures(name, append(s.bundles, bundle)) }
	return do(s)
}

// writeSignatures writes the signatures of an archive into the file beside it.
func writeSignatures(archive string, bundles [][]byte) error {
	data, err := repository.FormatSignatures(bundles)
	if err != nil {
		return fmt.Errorf("write the signatures of %s: %w", archive, err)
	}
	return atomicfile.Write(archive+repository.SignaturesSuffix, data, 0o644)
}

// withSignableVersion is withSignable for an OperatorVersion as the cluster has it.
func withSignableVersion(ctx context.Context, env *command.Env, name string, do func(*signable) error) error {
	c, _, namespace, err := env.Connect()
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, ov); err != nil {
		return fmt.Errorf("read OperatorVersion %s/%s: %w", namespace, name, err)
	}
	s := &signable{signed: signed{name: fmt.Sprintf("operatorversion %s/%s", namespace, name), bundles: signaturesOf(ov)}}
	if err := checkTarball(ov.Spec.CRDTarball); err != nil {
		return fmt.Errorf("%s cannot be signed: %w", s.name, err)
	}
	if s.pkg, err = trust.PackageOf(ov); err != nil {
		return fmt.Errorf("%s cannot be signed: %w", s.name, err)
	}
	warnOfImages(env, ov)
	s.add = func(bundle []byte) error { return addSignature(ctx, c, ov, bundle) }
	return do(s)
}

// addSignature adds a signature to an OperatorVersion, if that is still the one that was signed.
func addSignature(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion, bundle []byte) error {
	patch := client.MergeFromWithOptions(ov.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if ov.Spec.Provenance == nil {
		ov.Spec.Provenance = &v1beta1.Provenance{}
	}
	if len(ov.Spec.Provenance.Signatures) >= v1beta1.MaxSignatures {
		return fmt.Errorf("spec.provenance.signatures has %d entries, and no more are allowed: delete those that no longer count",
			v1beta1.MaxSignatures)
	}
	ov.Spec.Provenance.Signatures = append(ov.Spec.Provenance.Signatures, string(bundle))
	return c.Patch(ctx, ov, patch)
}

// signableArtifact returns what a signature of the artifact of a package vouches for, and warns of what it does not cover.
func signableArtifact(env *command.Env, a *artifact.Artifact) (trust.Package, error) {
	return signablePackage(env, a.Package, trust.SubjectManifest, a.Descriptor().Digest)
}

// signablePackage returns what a signature of a package in a file vouches for, and warns of what it does not cover.
func signablePackage(env *command.Env, pkg *operators.Package, subject string, file digest.Digest) (trust.Package, error) {
	if err := checkSignable(pkg); err != nil {
		return trust.Package{}, err
	}
	wanted, version, err := packageOf(pkg)
	if err != nil {
		return trust.Package{}, err
	}
	warnOfImages(env, version)
	wanted.Digests = map[string]string{subject: file.String()}
	return wanted, nil
}

// packageOf returns what a signature of a package vouches for, without its files, and the OperatorVersion that the package becomes.
func packageOf(pkg *operators.Package) (trust.Package, *v1beta1.OperatorVersion, error) {
	_, version, err := operators.Convert(pkg, "")
	if err != nil {
		return trust.Package{}, nil, err
	}
	wanted, err := trust.PackageOf(version)
	return wanted, version, err
}

// warnOfImages warns of images that an OperatorVersion names without a digest, with its default parameters: what a tag stands for can
// change, and no signature covers it.
func warnOfImages(env *command.Env, version *v1beta1.OperatorVersion) {
	needed, err := rights.Of(rights.Subject{Namespace: metav1.NamespaceDefault,
		Name: operators.DefaultInstanceName(version.Spec.Operator.Name), Version: &version.Spec}, rights.Known{})
	if err != nil {
		env.Warnf("which images the package names is not known: its templates need values: %s", text.OneLine(err.Error()))
		return
	}
	tagged := slices.DeleteFunc(needed.Images, func(image string) bool { return strings.Contains(image, "@sha256:") })
	if len(tagged) > 0 {
		env.Warnf("the signature does not cover what tags of images stand for: name these by digest: %s", text.List(tagged, maxImages))
	}
}

// maxImages bounds how many images a warning names.
const maxImages = 10

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
		inTask := artifact.IsVersion(d.OperatorVersion) && (d.AppVersion == "" || artifact.IsVersion(d.AppVersion)) &&
			len(validation.IsDNS1123Subdomain(d.Package)) == 0
		if d.Content == "" || pkg.Lock.Entry(d.Task) == nil && !inTask {
			return fmt.Errorf("task %s depends on %q %q, which is looked for when the package is installed: write what it is into %s by "+
				"kubectl kudo package lock", d.Task, d.Package, d.OperatorVersion, operators.LockFileName)
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
