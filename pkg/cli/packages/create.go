package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
)

type createOptions struct {
	env *command.Env

	destination, output string
	overwrite           bool
}

func newCreate(env *command.Env) *cobra.Command {
	o := &createOptions{env: env}
	cmd := &cobra.Command{
		Use:   "create DIR",
		Short: "Check a package and pack it into an archive",
		Long: `Check a package like package verify, and pack it into an archive. The same files give the same archive, byte by byte.
It is named <name>-<appVersion>_<operatorVersion>.tgz, or <name>-<operatorVersion>.tgz.`,
		Args: command.ExactArgs(1, "one folder that holds operator.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.destination, "destination", "d", ".", "folder to write the archive to")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "replace an archive of the same name")
	f.StringVarP(&o.output, "output", "o", "", "yaml or json")
	return cmd
}

func (o *createOptions) run(ctx context.Context, dir string) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder: package create packs the folder that holds operator.yaml", dir)
	}
	found, err := checkPackage(ctx, o.env, dir)
	if err != nil {
		return err
	}
	pkg := found.Package
	if _, err := artifact.TagOf(pkg); err != nil {
		return fmt.Errorf("package %s: %w", dir, err)
	}
	name := archive.FileName(pkg.Operator.Name, pkg.Operator.AppVersion, pkg.Operator.OperatorVersion)
	target := filepath.Join(o.destination, name)
	if _, err := os.Stat(target); err == nil && !o.overwrite {
		return fmt.Errorf("%s exists already: use --overwrite, or raise operatorVersion", target)
	}
	packed, digest, err := pack(dir, pkg)
	if err != nil {
		return err
	}
	if err := writeArchive(target, packed); err != nil {
		return err
	}
	if o.output != "" {
		return o.env.PrintValue(o.output, map[string]string{
			"name": pkg.Operator.Name, "appVersion": pkg.Operator.AppVersion, "operatorVersion": pkg.Operator.OperatorVersion,
			"path": target, "digest": digest,
		})
	}
	o.env.Printf("package created: %s", target)
	o.env.Printf("sha256: %s", digest)
	return nil
}

// writeArchive writes an archive, and makes its folder if there is none.
func writeArchive(target string, packed []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make the folder of the archive: %w", err)
	}
	return atomicfile.Write(target, packed, 0o644)
}

// pack makes the archive of a folder, and makes sure that it holds the package that was read and checked before.
func pack(dir string, pkg *operators.Package) (packed []byte, digest string, err error) {
	var buffer bytes.Buffer
	digest, err = archive.Write(&buffer, packageFS{os.DirFS(dir), pkg.Operator.Name})
	if err != nil {
		return nil, "", fmt.Errorf("package %s: %w", dir, err)
	}
	content, err := archive.Read(bytes.NewReader(buffer.Bytes()), archive.DefaultLimits())
	if err != nil {
		return nil, "", fmt.Errorf("package %s: the archive could not be read again: %w", dir, err)
	}
	again, err := operators.Read(content)
	if err != nil || !maps.Equal(again.Templates, pkg.Templates) || !reflect.DeepEqual(again.Operator, pkg.Operator) ||
		!reflect.DeepEqual(again.Params, pkg.Params) || !reflect.DeepEqual(again.Lock, pkg.Lock) {
		return nil, "", errors.Join(fmt.Errorf("package %s: the archive would hold another package than was checked: replace links by files, "+
			"and change nothing meanwhile", dir), err)
	}
	return buffer.Bytes(), digest, nil
}

// packageFS is a folder without what is no part of a package: archives of it that stand at its root, and .git.
type packageFS struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (p packageFS) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(p.FS, dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == ".git" || dir == "." && strings.HasPrefix(e.Name(), p.name+"-") && strings.HasSuffix(e.Name(), ".tgz")
	}), err
}
