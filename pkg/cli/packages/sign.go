package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

type signOptions struct {
	env *command.Env

	command.RegistryFlags
	keys command.KeyFlags
}

func newSign(env *command.Env) *cobra.Command {
	o := &signOptions{env: env}
	cmd := &cobra.Command{
		Use:   "sign REFERENCE|ARCHIVE|OPERATORVERSION",
		Short: "Sign a package",
		Long: `Sign a package with a private key, or with a command that has one. The signature says that the key vouches for the name, the
versions and the content of the package, and for the very file that it is in. It is added to those that the package has:

  kubectl kudo package sign oci://registry.example.com/kudo/postgres:17.6.0_1.0.0 --key release.pem
  kubectl kudo package sign ./postgres-17.6.0_1.0.0.tgz --signer 'pkcs11-sign --slot 0' --signer-key release.pub

In a registry it refers to the package, and package copy and package pull take it along. Beside an archive it stands in
<archive>.sigstore.json. An OperatorVersion that is installed is signed as it is in the cluster, where the signature stands in its spec:

  kubectl kudo package sign postgres-17.6.0-1.0.0 -n databases --key release.pem

A package that names dependencies by ranges or paths, or a tarball of CRDs without a digest, is refused: what was signed could become
something else. Signatures say nothing of the images that the package names, and of the packages that it depends on, which have signatures
of their own.`,
		Args: command.ExactArgs(1, "one package: oci://HOST/PATH/NAME:TAG, an archive (.tgz), or the name of an OperatorVersion in the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.keys.Add(env, cmd.Flags(), "key")
	o.Add(cmd.Flags())
	return cmd
}

func (o *signOptions) run(ctx context.Context, name string) error {
	signer, err := o.keys.Read()
	if err != nil {
		return err
	}
	switch {
	case repository.IsReference(name):
		return o.signReference(ctx, name, signer)
	case strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.gz"):
		return o.signArchive(ctx, name, signer)
	case strings.ContainsAny(name, `/\`):
		return command.UsageError("%s is neither a reference nor an archive: pack a folder by package create, and sign the archive", name)
	}
	return o.signVersion(ctx, name, signer)
}

// signReference signs a package in a registry or in a folder in OCI layout.
func (o *signOptions) signReference(ctx context.Context, name string, signer *trust.Signer) (err error) {
	r, err := repository.ParseReference(name)
	if err != nil {
		return command.UsageError("%w", err)
	}
	if r.Tag == "" && r.Digest == "" {
		return command.UsageError("%s names no version: add its tag or digest, so that no other package is signed", name)
	}
	source, err := o.env.RemoteWith(&o.RegistryFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	pulled, err := source.Pull(ctx, r, repository.Versions{})
	if err != nil {
		return err
	}
	wanted, err := signableArtifact(pulled.Artifact)
	if err != nil {
		return fmt.Errorf("sign %s: %w", pulled.Reference, err)
	}
	found, err := source.Signatures(ctx, pulled)
	warnOfSignatures(o.env, pulled.Reference.String(), found)
	if err != nil {
		return err
	}
	return o.sign(ctx, pulled.Reference.String(), signed{pkg: wanted, bundles: found.Bundles}, signer, func(bundle []byte) error {
		return source.Attach(ctx, pulled.Reference, pulled.Descriptor(), [][]byte{bundle}, trust.PredicateType)
	})
}

// signArchive signs an archive on this disk, and adds the signature to those in the file beside it.
func (o *signOptions) signArchive(ctx context.Context, name string, signer *trust.Signer) error {
	found, err := checkPackage(ctx, o.env, name)
	if err != nil {
		return err
	}
	wanted, err := signableArchive(found)
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	bundles, err := repository.ReadSignatures(name)
	if err != nil {
		return err
	}
	return o.sign(ctx, name, signed{pkg: wanted, bundles: bundles}, signer, func(bundle []byte) error {
		return writeSignatures(name, append(bundles, bundle))
	})
}

// writeSignatures writes the signatures of an archive into the file beside it.
func writeSignatures(archive string, bundles [][]byte) error {
	data, err := repository.FormatSignatures(bundles)
	if err != nil {
		return fmt.Errorf("write the signatures of %s: %w", archive, err)
	}
	return atomicfile.Write(archive+repository.SignaturesSuffix, data, 0o644)
}

// sign signs a package, unless the key has signed it already, and adds the signature to those that it has.
func (o *signOptions) sign(ctx context.Context, name string, is signed, signer *trust.Signer, add func(bundle []byte) error) error {
	if isSigned(is.bundles, is.pkg, signer.Public) {
		o.env.Notef("Unchanged: %s is signed by key %s already.", name, signer.Public.Hint())
		return nil
	}
	bundle, err := trust.Sign(ctx, is.pkg, signer)
	if err == nil {
		err = add(bundle)
	}
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	o.env.Printf("%s signed by key %s", name, signer.Public.Hint())
	return nil
}

// signVersion signs an OperatorVersion as the cluster has it, and adds the signature to its spec.
func (o *signOptions) signVersion(ctx context.Context, name string, signer *trust.Signer) error {
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, ov); err != nil {
		return fmt.Errorf("read OperatorVersion %s/%s: %w", namespace, name, err)
	}
	name = fmt.Sprintf("operatorversion %s/%s", namespace, name)
	if err := checkTarball(ov.Spec.CRDTarball); err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	is := signed{bundles: signaturesOf(ov)}
	if is.pkg, err = trust.PackageOf(ov); err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	return o.sign(ctx, name, is, signer, func(bundle []byte) error { return addSignature(ctx, c, ov, bundle) })
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
