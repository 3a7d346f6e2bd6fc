package repository

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"kudo.dev/kudo/operators"
)

// WithDependencies resolves the dependencies of a package, and theirs. The last of the result is the package itself;
// each comes after what it depends on.
func (c Chain) WithDependencies(ctx context.Context, root *Found) ([]*operators.Package, error) {
	w := &walk{chain: c, state: map[string]int{}}
	if _, err := w.visit(ctx, root, nil); err != nil {
		return nil, err
	}
	return w.ordered, nil
}

type walk struct {
	chain Chain
	// state of a package: 1 while it is visited, 2 once it is done.
	state   map[string]int
	ordered []*operators.Package
}

func (w *walk) visit(ctx context.Context, f *Found, trail []string) (*operators.Package, error) {
	trail = append(trail, f.Package.Operator.Name)
	key := f.identity()
	if w.state[key] == 1 {
		return nil, fmt.Errorf("cyclic package dependency found: %s", strings.Join(trail, " -> "))
	}
	if w.state[key] == 2 {
		return f.Package, nil
	}
	w.state[key] = 1
	references := map[int]operators.Reference{}
	for _, d := range f.Package.Dependencies() {
		child, err := w.find(ctx, f, d)
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
	w.state[key] = 2
	w.ordered = append(w.ordered, pkg)
	return pkg, nil
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
	if !isURL(from) || !isURL(to) {
		return nil
	}
	a, errA := url.Parse(from)
	b, errB := url.Parse(to)
	switch {
	case errA != nil || errB != nil || a.Scheme == b.Scheme:
		return nil
	case b.Scheme == "file":
		return fmt.Errorf("%s: a package from elsewhere cannot refer to files of this disk", redactURL(b))
	case a.Scheme == "https" && !strings.HasPrefix(b.Fragment, digestFragment):
		return fmt.Errorf("%s: a package that came over https cannot depend on one over plain http, unless its digest follows, as #%s<hex>",
			redactURL(b), digestFragment)
	}
	return nil
}
