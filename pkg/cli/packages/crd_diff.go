package packages

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// crdDiff is the comparison of one definition, as -o prints it.
type crdDiff struct {
	Name string `json:"name"`
	// Change is one of added, removed and kept.
	Change   string                    `json:"change"`
	Breaches crdcompat.BreakingChanges `json:"breakingChanges"`
	Safe     []crdcompat.Change        `json:"safeChanges"`
	Objects  *crdcompat.Findings       `json:"objects,omitempty"`
}

func (d crdDiff) unsafe() bool {
	return !d.Breaches.Safe() || d.Objects != nil && !d.Objects.Safe()
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
	diffs := diffCRDs(old, new)
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
		if d.unsafe() {
			unsafe++
		}
	}
	if unsafe > 0 {
		return command.WithCode(command.ExitFailed, fmt.Errorf("%d of %d CustomResourceDefinitions cannot be replaced safely", unsafe, len(diffs)))
	}
	return nil
}

// diffCRDs compares definitions of one name, in the order of names.
func diffCRDs(old, new map[string]*apiextensionsv1.CustomResourceDefinition) []crdDiff {
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range new {
		names[name] = true
	}
	diffs := []crdDiff{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := crdDiff{Name: name, Change: "kept", Breaches: crdcompat.BreakingChanges{}, Safe: []crdcompat.Change{}}
		switch {
		case old[name] == nil:
			d.Change = "added"
		case new[name] == nil:
			d.Change = "removed" // kudo deletes no definition because a package names it no more
		default:
			breaches, safe := crdcompat.Diff(old[name], new[name])
			d.Breaches, d.Safe = append(d.Breaches, breaches...), append(d.Safe, safe...)
		}
		diffs = append(diffs, d)
	}
	return diffs
}

func printCRDDiffs(env *command.Env, diffs []crdDiff) error {
	for i, d := range diffs {
		if i > 0 {
			env.Printf("")
		}
		switch {
		case d.Change != "kept":
			env.Printf("%s: %s", d.Name, d.Change)
		case d.Breaches.Safe() && len(d.Safe) == 0:
			env.Printf("%s: no change that counts", d.Name)
		default:
			env.Printf("%s: %d breaking changes, %d safe changes", d.Name, len(d.Breaches), len(d.Safe))
		}
		if !d.Breaches.Safe() {
			if err := env.PrintTable(d.Breaches.Rows()); err != nil {
				return err
			}
		}
		if len(d.Safe) > 0 {
			rows := [][]string{{"VERSION", "PATH", "SAFE CHANGE"}}
			for _, c := range d.Safe {
				rows = append(rows, []string{orDash(c.Version), orDash(c.Path), c.Message})
			}
			if err := env.PrintTable(rows); err != nil {
				return err
			}
		}
		if d.Objects != nil {
			env.Printf("%s", strings.TrimRight(d.Objects.String(), "\n"))
		}
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
func readCRDs(path string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	tree, err := crdTree(path)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions of %s: %w", path, err)
	}
	objects, err := crdtarball.Documents(tree, crdtarball.Limits{})
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions of %s: %w", path, err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
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
func checkLive(ctx context.Context, env *command.Env, new map[string]*apiextensionsv1.CustomResourceDefinition, diffs []crdDiff) error {
	c, _, _, err := env.Connect()
	if err != nil {
		return err
	}
	for i, d := range diffs {
		if new[d.Name] == nil {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := c.Get(ctx, client.ObjectKey{Name: d.Name}, object); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, live); err != nil {
			return fmt.Errorf("the CustomResourceDefinition %s of the cluster cannot be read: %w", d.Name, err)
		}
		found, err := crdcompat.Validate(ctx, live, new[d.Name], objectLister{c})
		if err != nil {
			return err
		}
		diffs[i].Objects = &found
	}
	return nil
}

// objectLister reads custom resources from the cluster.
type objectLister struct{ client client.Reader }

// List implements crdcompat.Lister.
func (l objectLister) List(ctx context.Context, kind schema.GroupVersionKind, limit int64, token string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list, l.client.List(ctx, list, client.Limit(limit), client.Continue(token))
}
