// Package image has the commands that copy the manager's image to a registry and verify it.
package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/ocilayout"
	"kudo.dev/kudo/pkg/registry"
)

// New returns the command image.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Copy the manager's image of a release to a registry, and verify it"}
	command.SetupGroup(cmd)
	cmd.AddCommand(newPush(env), newVerify(env))
	return cmd
}

type pushOptions struct {
	env *command.Env

	registry command.RegistryFlags
}

func newPush(env *command.Env) *cobra.Command {
	o := &pushOptions{env: env}
	cmd := &cobra.Command{
		Use:   "push FILE oci://HOST/REPOSITORY[:TAG]",
		Short: "Copy an image to a registry, for all its platforms",
		Long: `Copy the image in FILE, the OCI layout manager_VERSION.oci.tar of a release, to a repository of a registry. The image keeps
its digest, by which init names it. All digests of the file are compared before anything is copied.

  kubectl kudo image push manager_v0.2.0.oci.tar oci://registry.example.com/kudo/manager

Credentials are those of docker login. They are sent to the registry only, and to hosts of --token-host, and never without TLS.`,
		Args: command.ExactArgs(2, "a file and a reference: push FILE oci://HOST/REPOSITORY[:TAG]"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	o.registry.Add(cmd.Flags())
	return cmd
}

func (o *pushOptions) run(ctx context.Context, file, reference string) error {
	options, err := o.registry.Options()
	if err != nil {
		return err
	}
	repository, err := registry.NewRepository(reference, options)
	if err != nil {
		return err
	}
	if strings.Contains(reference, "@") {
		return command.UsageError("%q has a digest, and the image has its own: name a tag, or none", reference)
	}
	layout, err := ocilayout.Open(ctx, file)
	if err != nil {
		return err
	}
	digest := layout.Root.Digest.String()
	if own := ownDigest(); own != "" && own != digest {
		o.env.Warnf("%s holds the image %s, and this command was released with %s", file, digest, own)
	}
	err = layout.Push(ctx, repository, repository.Reference.Reference, func(blob ocispec.Descriptor, pushed bool) {
		state := "exists"
		if pushed {
			state = "copied"
		}
		o.env.Progressf("%s %s (%d bytes)", state, blob.Digest, blob.Size)
	})
	if err != nil {
		return fmt.Errorf("push %s to %s: %w", file, reference, err)
	}
	o.env.Printf("image %s/%s@%s copied for %s", repository.Reference.Registry, repository.Reference.Repository, digest, platforms(layout))
	return nil
}

func platforms(layout *ocilayout.Layout) string {
	if len(layout.Platforms) == 0 {
		return "one platform"
	}
	return strings.Join(layout.Platforms, ", ")
}

// ownDigest returns the digest of the image that this build knows; empty if it knows none.
func ownDigest() string {
	_, digest, _ := strings.Cut(kudoinit.Image, "@")
	return digest
}

func newVerify(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE",
		Short: "Compare an image in a file with the digest that this command knows",
		Long: `Compare the image in FILE, an OCI layout, with the manager's image of the release of this command: all digests of the file,
and that of the image with the one that is built into this command.`,
		Args: command.ExactArgs(1, "a file: verify FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := ocilayout.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch own, digest := ownDigest(), layout.Root.Digest.String(); own {
			case "":
				return errors.New("this build of kubectl kudo knows no image to compare with, and the image is " + digest +
					": use a released kubectl kudo")
			case digest:
				env.Printf("%s is the image of this release for %s: %s", args[0], platforms(layout), digest)
				return nil
			default:
				return fmt.Errorf("%s holds the image %s, and this command was released with %s: take the file of release %s", args[0], digest,
					own, command.Version)
			}
		},
	}
}
