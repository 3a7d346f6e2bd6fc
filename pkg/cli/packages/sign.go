package packages

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/trust"
)

type signOptions struct {
	env *command.Env

	command.RegistryFlags
	keys command.KeyFlags
	crds bool
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

A package that depends on others and has no operator.lock, or a tarball of CRDs without a digest, is refused: what was signed could become
something else. Signatures say nothing of the images that the package names. The packages that it depends on have signatures of their own;
where a PackagePolicy has dependencies Pinned, the signature of this package counts for the contents in its lock, too.`,
		Args: command.ExactArgs(1, "one package: oci://HOST/PATH/NAME:TAG, an archive (.tgz), or the name of an OperatorVersion in the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.keys.Add(env, cmd.Flags(), "key")
	cmd.Flags().BoolVar(&o.crds, "crds", false, "print a signature of a tarball of CustomResourceDefinitions: the argument is the file, or a "+
		"reference with the digest")
	o.Add(cmd.Flags())
	return cmd
}

func (o *signOptions) run(ctx context.Context, name string) error {
	signer, err := o.keys.Read()
	if err != nil {
		return err
	}
	if o.crds {
		return o.signTarball(ctx, name, signer)
	}
	return withSignable(ctx, o.env, &o.RegistryFlags, name, func(s *signable) error { return o.sign(ctx, s, signer) })
}

// signTarball prints a signature of a tarball of CustomResourceDefinitions: a file, or an artifact of a registry, which is not asked.
func (o *signOptions) signTarball(ctx context.Context, name string, signer *trust.Signer) error {
	is, err := tarballDigest(name)
	if err != nil {
		return err
	}
	bundle, err := trust.SignTarball(ctx, is.String(), signer)
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	return o.env.Print(string(bundle) + "\n")
}

// tarballDigest returns the digest of a file, or that in a reference.
func tarballDigest(name string) (digest.Digest, error) {
	if _, encoded, found := strings.Cut(name, "@"); found {
		is := digest.Digest(encoded)
		if is.Validate() != nil || is.Algorithm() != digest.SHA256 {
			return "", command.UsageError("%s: what follows @ must be a digest, sha256:<hex>", name)
		}
		return is, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read a tarball of CustomResourceDefinitions: %w", err)
	}
	defer func() { _ = file.Close() }()
	is, err := digest.FromReader(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return is, nil
}

// sign signs a package, unless the key has signed it already, and adds the signature to those that it has.
func (o *signOptions) sign(ctx context.Context, s *signable, signer *trust.Signer) error {
	if isSigned(s.bundles, s.pkg, signer.Public) {
		o.env.Notef("Unchanged: %s is signed by key %s already.", s.name, signer.Public.Hint())
		return nil
	}
	bundle, err := trust.Sign(ctx, s.pkg, signer)
	if err == nil {
		err = s.add(bundle)
	}
	if err != nil {
		return fmt.Errorf("sign %s: %w", s.name, err)
	}
	o.env.Printf("%s signed by key %s", s.name, signer.Public.Hint())
	return nil
}
