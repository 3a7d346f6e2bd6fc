package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

type pullOptions struct {
	env *command.Env

	command.RegistryFlags
	destination, appVersion, operatorVersion string
	layout, overwrite                        bool
}

func newPull(env *command.Env) *cobra.Command {
	o := &pullOptions{env: env}
	cmd := &cobra.Command{
		Use:   "pull oci://HOST/PATH/NAME[:TAG][@DIGEST]",
		Short: "Pull a package from a registry",
		Long: `Pull a package from a registry of OCI artifacts, check it, and write its archive, byte for byte as it was pushed. Without tag and
digest the highest version is pulled, or the highest that --app-version and --operator-version match. Signatures are written into
<archive>.sigstore.json. They are not verified: that is for package verify --key.

  kubectl kudo package pull oci://registry.example.com/kudo/postgres:17.6.0_1.0.0
  kubectl kudo package pull oci://registry.example.com/kudo/postgres --operator-version '^1.0' -d offline --layout`,
		Args: command.ExactArgs(1, "one reference: oci://HOST/PATH/NAME[:TAG][@DIGEST]"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.destination, "destination", "d", ".", "folder to write to")
	f.BoolVar(&o.layout, "layout", false, "write the artifact in OCI layout, to folder NAME of the destination, instead of the archive")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "replace another archive of the same name")
	f.StringVar(&o.operatorVersion, "operator-version", "", "version of the operator, or a range such as ^1.2 (default the highest)")
	f.StringVar(&o.appVersion, "app-version", "", "version of the application, or a range (default the highest)")
	o.Add(f)
	return cmd
}

func (o *pullOptions) run(ctx context.Context, reference string) (err error) {
	r, err := repository.ParseReference(reference)
	if err != nil {
		return command.UsageError("%w", err)
	}
	source, err := o.env.RemoteWith(&o.RegistryFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	pulled, err := source.Pull(ctx, r, repository.Versions{App: o.appVersion, Operator: o.operatorVersion})
	if err != nil {
		return err
	}
	if o.layout {
		to, _, err := source.Push(ctx, pulled.Artifact, "layout:"+filepath.ToSlash(o.destination), o.overwrite)
		if err != nil {
			return err
		}
		o.env.Printf("package pulled: %s", to)
		return copySignatures(ctx, o.env, source, pulled, to)
	}
	found, err := source.Signatures(ctx, pulled)
	warnOfSignatures(o.env, pulled.Reference.String(), found)
	if err != nil {
		return err
	}
	operator := pulled.Package.Operator
	target := filepath.Join(o.destination, archive.FileName(operator.Name, operator.AppVersion, operator.OperatorVersion))
	if !o.overwrite {
		if err := checkTarget(target, pulled.Archive); err != nil {
			return err
		}
	}
	bundles, err := addKnownSignatures(target, pulled.Archive, found.Bundles)
	if err != nil {
		return err
	}
	if err := writeArchive(target, pulled.Archive); err != nil {
		return err
	}
	if len(bundles) > 0 {
		if err := writeSignatures(target, bundles); err != nil {
			return err
		}
	}
	o.env.Printf("package pulled: %s", target)
	o.env.Printf("%s", pulled.Reference)
	return nil
}

// addKnownSignatures adds the signatures that the archive has on this disk, if it is there, to those that were pulled.
func addKnownSignatures(target string, packed []byte, pulled [][]byte) ([][]byte, error) {
	if len(pulled) == 0 {
		return nil, nil
	}
	if is, err := os.ReadFile(target); err != nil || !bytes.Equal(is, packed) {
		return pulled, nil // another archive, whose signatures are of no use, is replaced
	}
	known, err := repository.ReadSignatures(target)
	if err != nil {
		return nil, err
	}
	for _, b := range pulled {
		if !slices.ContainsFunc(known, func(is []byte) bool { return bytes.Equal(is, b) }) {
			known = append(known, b)
		}
	}
	return known, nil
}

// checkTarget returns an error if a file is there that has another content, or that cannot be read.
func checkTarget(target string, packed []byte) error {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var is []byte
	if err == nil && info.Mode().IsRegular() {
		is, err = os.ReadFile(target)
	}
	if err != nil {
		return fmt.Errorf("compare %s with the package: %w: use --overwrite, or another --destination", target, err)
	}
	if !bytes.Equal(is, packed) {
		return fmt.Errorf("%s exists already, with another content: use --overwrite, or another --destination", target)
	}
	return nil
}
