package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

type copyOptions struct {
	env *command.Env

	command.RegistryFlags
	dependencies, overwrite bool
}

func newCopy(env *command.Env) *cobra.Command {
	o := &copyOptions{env: env}
	cmd := &cobra.Command{
		Use:   "copy SOURCE oci://HOST/PATH",
		Short: "Copy packages between registries and folders",
		Long: `Copy a package from a registry or a folder to another one, byte for byte, so that it keeps its digest. The name of the package is
added to the path, and its version is the tag. Its signatures go along. SOURCE is oci://HOST/PATH/NAME[:TAG][@DIGEST],
layout:DIR/NAME[:TAG][@DIGEST], or layout:DIR for all versions of all packages in the folder. Without tag and digest the highest
version is copied. Packages come after those that they depend on; what a folder has besides is named by a
warning. A tag that has the same content already is left as it is.

To carry packages to a network without access to the registry, copy them to a folder, and from there to a registry of that network:

  kubectl kudo package copy --with-dependencies oci://registry.example.com/kudo/guestbook layout:offline
  kubectl kudo package copy layout:offline oci://registry.internal/kudo`,
		Args: command.ExactArgs(2, "a source and a place: copy SOURCE oci://HOST/PATH, or layout:DIR for one of them"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dependencies, "with-dependencies", false, "copy the packages that the package depends on, too")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "move tags that have another content")
	o.Add(f)
	return cmd
}

func (o *copyOptions) run(ctx context.Context, from, base string) (err error) {
	source, err := o.env.RemoteWith(&o.RegistryFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	references, err := o.resolve(ctx, source, from)
	if err != nil {
		return err
	}
	copied := map[string]repository.Reference{}
	for _, r := range references { // one at a time, since all together may be large
		if err := o.copy(ctx, source, r, base, copied); err != nil {
			return fmt.Errorf("copy %s: %w", r, err)
		}
	}
	return nil
}

// copy copies a package, unless it was copied before: copied has the references of the versions that were, by name and tag.
func (o *copyOptions) copy(ctx context.Context, source *repository.Remote, r repository.Reference, base string,
	copied map[string]repository.Reference) error {
	pulled, err := source.Pull(ctx, r, repository.Versions{})
	if err != nil {
		return err
	}
	version := pulled.Package.Operator.Name + ":" + pulled.Tag()
	if before, is := copied[version]; is {
		if before.Digest == r.Digest {
			return nil
		}
		return fmt.Errorf("%s has the same name and version and another content: copy one of them to another place", before)
	}
	copied[version] = r
	to, written, err := source.Push(ctx, pulled.Artifact, base, o.overwrite)
	if err != nil {
		return err
	}
	printPushed(o.env, to, written)
	if err := copySignatures(ctx, o.env, source, pulled, to); err != nil {
		return fmt.Errorf("%s was copied, and not its signatures: %w", to, err)
	}
	for _, d := range pulled.Package.Dependencies() {
		if repository.IsReference(d.Package) {
			o.env.Warnf("task %s of package %s names %s: that is where install looks for it", d.Task, pulled.Package.Operator.Name, d.Package)
		}
	}
	return nil
}

// copySignatures adds the signatures of a package that was pulled to where it was pushed. They are not verified.
func copySignatures(ctx context.Context, env *command.Env, source *repository.Remote, pulled *repository.Pulled,
	to repository.Reference) error {
	found, err := source.Signatures(ctx, pulled)
	warnOfSignatures(env, pulled.Reference.String(), found)
	if err != nil {
		return err
	}
	return source.Attach(ctx, to, pulled.Descriptor(), found.Bundles, trust.PredicateType)
}

// resolve returns what a source names, with digests: one version, with its dependencies if that is asked for, or all of a folder.
// Dependencies come first, so that what is at the destination is complete at any time.
func (o *copyOptions) resolve(ctx context.Context, source *repository.Remote, from string) ([]repository.Reference, error) {
	all, err := source.FolderContent(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		r, err := repository.ParseReference(from)
		if err != nil {
			return nil, command.UsageError("%w", err)
		}
		all = []repository.Reference{r}
	}
	if !o.dependencies {
		return source.SortByDependencies(ctx, all)
	}
	var out []repository.Reference
	for _, r := range all {
		chain := repository.Chain{repository.Local{Base: "."}, source}
		found, err := chain.Resolve(ctx, repository.Request{Name: r.String()})
		if err != nil {
			return nil, err
		}
		references, err := chain.References(ctx, found)
		if err != nil {
			return nil, err
		}
		for _, r := range references {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
