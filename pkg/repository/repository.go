// Package repository finds operator packages: in a folder, or in an archive.
package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
)

// Found is a package, and where it was found.
type Found struct {
	Package *operators.Package
	// Origin is the absolute path of the folder or archive.
	Origin string
}

// NotFoundError says that there is no such package.
type NotFoundError struct{ Name, Reason string }

// Error implements error.
func (e *NotFoundError) Error() string { return fmt.Sprintf("package %q: %s", e.Name, e.Reason) }

// Resolve finds a package by a path, which is relative to base: a folder, or an archive (.tgz).
func Resolve(_ context.Context, name, base string) (*Found, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, &NotFoundError{name, "no such folder or archive: name the folder that holds operator.yaml, such as ./" + filepath.Base(name) + ", or a .tgz"}
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		pkg, err := operators.Read(os.DirFS(path), operators.WithPath(name))
		return &Found{pkg, path}, wrap(name, err)
	}
	if !strings.HasSuffix(path, ".tgz") && !strings.HasSuffix(path, ".tar.gz") {
		return nil, &NotFoundError{name, "is neither a folder nor an archive (.tgz)"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := archive.Read(file, archive.DefaultLimits())
	if err != nil {
		return nil, wrap(name, err)
	}
	pkg, err := operators.Read(content, operators.WithPath(name))
	return &Found{pkg, path}, wrap(name, err)
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("package %s:\n%w", name, err)
}

// Base is what the dependencies of a package are relative to.
func (f *Found) Base() string { return f.Origin }

// WithDependencies resolves the dependencies of a package, and theirs. The last of the result is the package itself;
// each comes after what it depends on.
func WithDependencies(ctx context.Context, root *Found) ([]*operators.Package, error) {
	w := &walk{state: map[string]int{}}
	if _, err := w.visit(ctx, root, nil); err != nil {
		return nil, err
	}
	return w.ordered, nil
}

type walk struct {
	// state of an origin: 1 while it is visited, 2 once it is done.
	state   map[string]int
	ordered []*operators.Package
}

func (w *walk) visit(ctx context.Context, f *Found, trail []string) (*operators.Package, error) {
	trail = append(trail, f.Package.Operator.Name)
	if w.state[f.Origin] == 1 {
		return nil, fmt.Errorf("cyclic package dependency found: %s", strings.Join(trail, " -> "))
	}
	if w.state[f.Origin] == 2 {
		return f.Package, nil
	}
	w.state[f.Origin] = 1
	references := map[int]operators.Reference{}
	for _, d := range f.Package.Dependencies() {
		child, err := Resolve(ctx, d.Package, f.Base())
		if err != nil {
			return nil, fmt.Errorf("dependency of task %q of package %s: %w", d.Task, f.Package.Operator.Name, err)
		}
		pkg, err := w.visit(ctx, child, trail)
		if err != nil {
			return nil, err
		}
		references[d.Index] = operators.Reference{
			Operator: pkg.Operator.Name, AppVersion: pkg.Operator.AppVersion, OperatorVersion: pkg.Operator.OperatorVersion,
		}
	}
	pkg, err := f.Package.WithDependencies(references)
	if err != nil {
		return nil, err
	}
	w.state[f.Origin] = 2
	w.ordered = append(w.ordered, pkg)
	return pkg, nil
}
