package packages

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

type pushOptions struct {
	env *command.Env

	registry  command.RegistryFlags
	keys      command.KeyFlags
	overwrite bool
}

func newPush(env *command.Env) *cobra.Command {
	o := &pushOptions{env: env}
	cmd := &cobra.Command{
		Use:   "push ARCHIVE|DIR oci://HOST/PATH",
		Short: "Check a package and push it to a registry",
		Long: `Check a package like package verify, and push it to a registry of OCI artifacts, or into a folder that stands for one. The name of
the package is added to the path, and its version is the tag: oci://HOST/PATH/<name>:<appVersion>_<operatorVersion>. A tag that has another
content is not moved, unless --overwrite is given, and one that has the same content is left as it is. The reference with its digest is
printed.

  kubectl kudo package push ./postgres-17.6.0_1.0.0.tgz oci://registry.example.com/kudo
  kubectl kudo package push ./postgres layout:offline

The signatures in <archive>.sigstore.json go along with an archive. With --sign-key or --signer the package is signed, too.

Credentials are those of docker login. They are sent to the registry only, and to hosts of --token-host, and never without TLS.`,
		Args: command.ExactArgs(2, "a package and a place: push ARCHIVE|DIR oci://HOST/PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	o.registry.Add(cmd.Flags())
	o.keys.Add(env, cmd.Flags(), "sign-key")
	cmd.Flags().BoolVarP(&o.overwrite, "overwrite", "w", false, "move a tag that has another content")
	return cmd
}

func (o *pushOptions) run(ctx context.Context, name, base string) (err error) {
	created, err := command.SourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	packed, bundles, err := checkAndPack(ctx, o.env, name)
	if err != nil {
		return err
	}
	a, err := artifact.New(packed, created)
	if err != nil {
		return fmt.Errorf("package %s: %w", name, err)
	}
	if o.keys.IsSet() { // before anything is pushed
		bundle, err := o.sign(ctx, a)
		if err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
		bundles = append(bundles, bundle)
	}
	source, err := o.env.RemoteWith(&o.registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, written, err := source.Push(ctx, a, base, o.overwrite)
	if err != nil {
		return fmt.Errorf("push %s: %w", name, err)
	}
	printPushed(o.env, r, written)
	if err := source.Attach(ctx, r, a.Descriptor(), bundles, trust.PredicateType); err != nil {
		return fmt.Errorf("the package was pushed, and not its signatures: %w", err)
	}
	return nil
}

// sign returns a signature of the artifact by the key of the flags.
func (o *pushOptions) sign(ctx context.Context, a *artifact.Artifact) ([]byte, error) {
	signer, err := o.keys.Read()
	if err != nil {
		return nil, err
	}
	wanted, err := signableArtifact(o.env, a)
	if err != nil {
		return nil, err
	}
	return trust.Sign(ctx, wanted, signer)
}

// printPushed prints the reference of an artifact, and says so if the artifact was there before.
func printPushed(env *command.Env, r repository.Reference, written bool) {
	env.Printf("%s", r)
	if !written {
		env.Notef("Unchanged: %s has this content already.", r)
	}
}

// checkAndPack checks a package, prints warnings, and returns the archive of what was checked: the file itself, with the signatures beside
// it, or that of a folder.
func checkAndPack(ctx context.Context, env *command.Env, name string) (packed []byte, bundles [][]byte, err error) {
	found, err := checkPackage(ctx, env, name)
	if err != nil {
		return nil, nil, err
	}
	if found.Archive != nil {
		signatures, err := found.Signatures(ctx)
		warnOfSignatures(env, name, signatures)
		return found.Archive, signatures.Bundles, err
	}
	packed, _, err = pack(name, found.Package)
	return packed, nil, err
}

// checkPackage checks a package like package verify, and prints warnings.
func checkPackage(ctx context.Context, env *command.Env, name string) (*repository.Found, error) {
	found, findings, err := readAndLint(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, w := range findings.Warnings {
		env.Warnf("%s", w)
	}
	if err := verdictOf(findings, false); err != nil {
		return nil, fmt.Errorf("%w in %s:\n%w", err, name, operators.Errors(findings.Errors))
	}
	return found, nil
}
