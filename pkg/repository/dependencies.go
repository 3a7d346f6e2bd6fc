package repository

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"kudo.dev/kudo/operators"
)

// WithDependencies resolves the dependencies of a package, and theirs, and reads the signatures of all. The last of the result is the
// package itself; each comes after what it depends on.
func (c Chain) WithDependencies(ctx context.Context, root *Found) ([]*operators.Package, error) {
	var ordered []*operators.Package
	w := &walk{chain: c, state: map[string]int{}, done: func(f *Found, pkg *operators.Package) error {
		ordered = append(ordered, pkg)
		return f.setProvenance(ctx, pkg)
	}}
	if err := w.visit(ctx, root, nil); err != nil {
		return nil, err
	}
	return ordered, nil
}

// References resolves the dependencies of a package in a registry, and theirs. It returns the references of all, with their digests; each
// comes after what it depends on. A package that lies in the archive of another one has no reference. It is an error if a dependency is not
// from a registry.
func (c Chain) References(ctx context.Context, root *Found) ([]Reference, error) {
	var out []Reference
	w := &walk{chain: c, state: map[string]int{}, done: func(f *Found, _ *operators.Package) error {
		switch {
		case f.source.Base == "":
			return fmt.Errorf("package %s is from %s, which is no registry: push it first", f.Package.Operator.Name, f.Origin)
		case f.inside == ".":
			out = append(out, f.source)
		}
		return nil
	}}
	if err := w.visit(ctx, root, nil); err != nil {
		return nil, err
	}
	return out, nil
}

// walk visits a package and all that it depends on. It keeps no packages: there may be many large ones.
type walk struct {
	chain Chain
	// state of a package: 1 while it is visited, 2 once it is done.
	state map[string]int
	// size is how many bytes the templates of all have.
	size int
	// done is called for each package after those that it depends on: with what was found, and with the package that names their versions.
	done func(f *Found, pkg *operators.Package) error
}

// maxPackages bounds a package and all that it depends on, and maxTemplates the bytes of their templates: a server can make each package
// that it is asked for name a further one.
const (
	maxPackages  = 200
	maxTemplates = 512 << 20
)

func (w *walk) visit(ctx context.Context, f *Found, trail []string) error {
	trail = append(trail, f.Package.Operator.Name)
	key := f.identity()
	if w.state[key] == 1 {
		return fmt.Errorf("cyclic package dependency found: %s", strings.Join(trail, " -> "))
	}
	if w.state[key] == 2 {
		return nil
	}
	if len(w.state) == maxPackages {
		return fmt.Errorf("package %s depends on more than %d packages", trail[0], maxPackages-1)
	}
	w.state[key] = 1
	for _, text := range f.Package.Templates {
		w.size += len(text)
	}
	if w.size > maxTemplates {
		return fmt.Errorf("package %s and what it depends on have templates of more than %d bytes", trail[0], maxTemplates)
	}
	references := map[int]operators.Reference{}
	for _, d := range f.Package.Dependencies() {
		child, err := w.find(ctx, f, d)
		if err != nil {
			return fmt.Errorf("dependency of task %q of package %s: %w", d.Task, f.Package.Operator.Name, err)
		}
		if err := w.visit(ctx, child, trail); err != nil {
			return err
		}
		o := child.Package.Operator
		references[d.Index] = operators.Reference{Operator: o.Name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion}
	}
	pkg, err := f.Package.WithDependencies(references)
	if err != nil {
		return err
	}
	w.state[key] = 2
	return w.done(f, pkg)
}

// identity tells packages apart. Of a URL, the origin lacks what follows the ?, which may be a secret.
func (f *Found) identity() string {
	o := f.Package.Operator
	return f.Origin + " " + operators.VersionName(o.Name, o.AppVersion, o.OperatorVersion)
}

// find finds a dependency. The versions that a task names choose from a repository only: where the task names a path,
// KUDO takes whatever is there, and packages rely on it.
func (w *walk) find(ctx context.Context, f *Found, d operators.Dependency) (*Found, error) {
	if err := checkTransport(f.Origin, d.Package); err != nil {
		return nil, err
	}
	return w.chain.Find(ctx, Request{Name: d.Package, AppVersion: d.AppVersion, OperatorVersion: d.OperatorVersion}, f)
}

// checkTransport refuses what would give away the safety of where the package came from: nothing vouches for what comes over
// plain HTTP, unless its digest is known; and what comes from elsewhere has no business with files of this disk.
func checkTransport(from, to string) error {
	if !isURL(from) && !IsReference(from) || !isURL(to) {
		return nil
	}
	b, err := url.Parse(to)
	before, _, _ := strings.Cut(strings.ToLower(from), ":")
	switch {
	case err != nil || strings.EqualFold(before, b.Scheme):
		return nil
	case b.Scheme == "file":
		return fmt.Errorf("%s: a package from elsewhere cannot refer to files of this disk", redactURL(b))
	case before != "http" && before != "file" && b.Scheme == "http" && !strings.HasPrefix(b.Fragment, digestFragment):
		return fmt.Errorf("%s: a package that came over %s cannot depend on one over plain http, unless its digest follows, as #%s<hex>",
			redactURL(b), before, digestFragment)
	}
	return nil
}
