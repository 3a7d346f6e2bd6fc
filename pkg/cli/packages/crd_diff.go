package packages

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/crdcompat"
	"kudo.dev/kudo/pkg/crdtarball"
)

type crdDiffOptions struct {
	env *command.Env

	output string
	live   bool
}

func newCRDDiff(env *command.Env) *cobra.Command {
	o := &crdDiffOptions{env: env}
	cmd := &cobra.Command{
		Use:   "crd-diff OLD NEW",
		Short: "Check that CustomResourceDefinitions can be replaced safely",
		Long: `Check that the CustomResourceDefinitions of NEW can replace those of OLD without breaking objects and clients. Both
are files, folders or .tgz archives; definitions are matched by name. With --live, the objects on the cluster are checked
against NEW, too.

The exit code is 3 if a change is not safe.`,
		Args: command.ExactArgs(2, "two files, folders or archives of CustomResourceDefinitions: OLD and NEW"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "yaml or json")
	cmd.Flags().BoolVar(&o.live, "live", false, "also check the objects on the cluster")
	return cmd
}

func (o *crdDiffOptions) run(ctx context.Context, oldPath, newPath string) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	old, err := readCRDs(oldPath)
	if err != nil {
		return err
	}
	new, err := readCRDs(newPath)
	if err != nil {
		return err
	}
	diffs := crdcompat.CompareAll(old, new)
	if o.live {
		if err := checkLive(ctx, o.env, new, diffs); err != nil {
			return err
		}
	}
	if o.output != "" {
		err = o.env.PrintValue(o.output, diffs)
	} else {
		err = printCRDDiffs(o.env, diffs)
	}
	if err != nil {
		return err
	}
	unsafe := 0
	for _, d := range diffs {
		if !d.Safe() {
			unsafe++
		}
	}
	if unsafe > 0 {
		return command.WithCode(command.ExitFailed, fmt.Errorf("%d of %d CustomResourceDefinitions cannot be replaced safely", unsafe,
			len(diffs)))
	}
	return nil
}

func printCRDDiffs(env *command.Env, diffs []crdcompat.Comparison) error {
	for i := range diffs {
		if i > 0 {
			env.Printf("")
		}
		if err := printCRDDiff(env, &diffs[i]); err != nil {
			return err
		}
	}
	return nil
}

// printCRDDiff prints how a definition changes: a line, tables of the breaking and of the safe changes, and the findings about the
// objects on the cluster, if those were checked.
func printCRDDiff(env *command.Env, d *crdcompat.Comparison) error {
	switch {
	case d.Change != crdcompat.Kept:
		env.Printf("%s: %s", d.Name, d.Change)
	case d.BreakingChanges.Safe() && len(d.SafeChanges) == 0:
		env.Printf("%s: no change that counts", d.Name)
	default:
		env.Printf("%s: %d breaking changes, %d safe changes", d.Name, len(d.BreakingChanges), len(d.SafeChanges))
	}
	if !d.BreakingChanges.Safe() {
		if err := env.PrintTable(d.BreakingChanges.Rows()); err != nil {
			return err
		}
	}
	if len(d.SafeChanges) > 0 {
		rows := [][]string{{"VERSION", "PATH", "SAFE CHANGE"}}
		for _, c := range d.SafeChanges {
			rows = append(rows, []string{orDash(c.Version), orDash(c.Path), c.Message})
		}
		if err := env.PrintTable(rows); err != nil {
			return err
		}
	}
	if d.Objects != nil {
		env.Printf("%s", strings.TrimRight(d.Objects.String(), "\n"))
	}
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// readCRDs reads the definitions of a file, a folder or an archive, by name. Fields that the API does not know are
// refused, since they could not be compared.
func readCRDs(path string) (crdcompat.Definitions, error) {
	tree, err := crdTree(path)
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinitions of %s: %w", path, err)
	}
	objects, err := crdtarball.Documents(tree, crdtarball.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinitions of %s: %w", path, err)
	}
	found := crdcompat.Definitions{}
	for _, object := range objects {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, crd, true); err != nil {
			return nil, fmt.Errorf("the CustomResourceDefinition %s of %s cannot be compared: %w", object.GetName(), path, err)
		}
		found[crd.Name] = crd
	}
	return found, nil
}

// crdTree is what a path names, as a tree of files.
func crdTree(path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return os.DirFS(path), nil
	}
	if strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz") {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		return archive.Read(file, archive.Limits{})
	}
	return singleFileFS{os.DirFS(filepath.Dir(path)), filepath.Base(path)}, nil
}

// singleFileFS is the folder of a file; its root lists only this file.
type singleFileFS struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (o singleFileFS) ReadDir(string) ([]fs.DirEntry, error) {
	info, err := fs.Stat(o.FS, o.name)
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}

// checkLive checks the objects on the cluster of all definitions that are there.
func checkLive(ctx context.Context, env *command.Env, new crdcompat.Definitions, comparisons []crdcompat.Comparison) error {
	c, _, _, err := env.Connect()
	if err != nil {
		return err
	}
	for i := range comparisons {
		definition := new[comparisons[i].Name]
		if definition == nil {
			continue
		}
		if comparisons[i].Objects, err = crdcompat.ValidateLive(ctx, c, definition); err != nil {
			return err
		}
	}
	return nil
}
