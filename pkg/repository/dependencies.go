package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/operators/content"
)

// WithDependencies resolves the dependencies of a package, and theirs, and reads the signatures of all. The last of the result is the
// package itself; each comes after what it depends on.
func (c Chain) WithDependencies(ctx context.Context, root *Found) ([]*operators.Package, error) {
	var ordered []*operators.Package
	err := c.walk(ctx, root, func(f *Found, pkg *operators.Package) error {
		ordered = append(ordered, pkg)
		return f.setProvenance(ctx, pkg)
	})
	if err != nil {
		return nil, err
	}
	return ordered, nil
}

// References resolves the dependencies of a package in a registry, and theirs. It returns the references of all, with their digests; each
// comes after what it depends on. A package that lies in the archive of another one has no reference. It is an error if a dependency is not
// from a registry.
func (c Chain) References(ctx context.Context, root *Found) ([]Reference, error) {
	var out []Reference
	err := c.walk(ctx, root, func(f *Found, _ *operators.Package) error {
		switch {
		case f.source.Base == "":
			return fmt.Errorf("package %s is from %s, which is no registry: push it first", f.Package.Operator.Name, f.Origin)
		case f.inside == ".":
			out = append(out, f.source)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Lock finds what a task of a package names, as a lock file keeps it. What the lock of the package says of the task is not looked at. The
// dependency must have a lock itself if it depends on others, so that its content does not change with what is found for it.
func (c Chain) Lock(ctx context.Context, root *Found, d operators.Dependency) (operators.LockFound, error) {
	child, err := c.find(ctx, root, d)
	if err != nil {
		return operators.LockFound{}, err
	}
	if err := child.Package.ValidateLock().Err(); err != nil {
		return operators.LockFound{}, fmt.Errorf("package %s:\n%w", child.Origin, err)
	}
	for _, needed := range child.Package.Dependencies() {
		if needed.Content == "" {
			return operators.LockFound{}, fmt.Errorf("package %s depends on others (task %q), and has no %s: its publisher adds one by kubectl "+
				"kudo package lock", child.Origin, needed.Task, operators.LockFileName)
		}
	}
	var resolved *operators.Package // the last package of the walk is the child
	if err := c.walk(ctx, child, func(_ *Found, pkg *operators.Package) error { resolved = pkg; return nil }); err != nil {
		return operators.LockFound{}, err
	}
	digest, err := contentOf(resolved)
	o := resolved.Operator
	return operators.LockFound{Name: o.Name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion, Content: digest,
		From: child.pinned(d.Package)}, err
}

// walk visits a package and all that it depends on. It calls done for each package after those that the package depends on.
func (c Chain) walk(ctx context.Context, root *Found, done func(f *Found, pkg *operators.Package) error) error {
	w := &walk{chain: c, state: map[string]int{}, content: map[string]string{}, done: done}
	return w.visit(ctx, root, nil)
}

// pinned returns where a package that was asked for by a name, a path, a URL or a reference was found, with its digest. It is empty for
// what is found on this disk by a path or by a name, since other machines do not have it there.
func (f *Found) pinned(asked string) string {
	if reference, err := ParseReference(asked); err == nil {
		reference.Tag, reference.Digest = "", f.source.Digest
		return reference.String()
	}
	if f.source.Base != "" {
		if f.source.IsFolder() || f.inside != "." {
			return ""
		}
		return Reference{Base: f.source.Base, Name: f.source.Name, Digest: f.source.Digest}.String()
	}
	if isURL(asked) {
		address, _, _ := strings.Cut(asked, "#")
		return address + "#" + digestFragment + f.digest
	}
	return f.address
}

// contentOf returns the content digest of the OperatorVersion that a package becomes.
func contentOf(pkg *operators.Package) (string, error) {
	_, version, err := operators.Convert(pkg, "")
	if err != nil {
		return "", fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	return content.Digest(version)
}

// walk visits a package and all that it depends on. It keeps no packages: there may be many large ones.
type walk struct {
	chain Chain
	// state of a package: 1 while it is visited, 2 once it is done.
	state map[string]int
	// content has the content digests of packages whose dependencies are resolved, by the same keys. A package that nothing depends on has
	// none.
	content map[string]string
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
	if err := f.Package.ValidateLock().Err(); err != nil {
		return fmt.Errorf("package %s:\n%w", f.Package.Operator.Name, err)
	}
	references := map[int]operators.Reference{}
	for _, d := range f.Package.Dependencies() {
		child, err := w.chain.find(ctx, f, d)
		if err != nil {
			return fmt.Errorf("dependency of task %q of package %s: %w", d.Task, f.Package.Operator.Name, err)
		}
		if err := w.visit(ctx, child, trail); err != nil {
			return err
		}
		if err := w.checkContent(f, d, child); err != nil {
			return err
		}
		o := child.Package.Operator
		references[d.Index] = operators.Reference{Operator: o.Name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion,
			Content: d.Content}
	}
	pkg, err := f.Package.WithDependencies(references)
	if err != nil {
		return err
	}
	if len(trail) > 1 {
		if w.content[key], err = contentOf(pkg); err != nil {
			return err
		}
	}
	w.state[key] = 2
	return w.done(f, pkg)
}

// checkContent refuses a dependency whose content is not the one that the package wants.
func (w *walk) checkContent(f *Found, d operators.Dependency, child *Found) error {
	if is := w.content[child.identity()]; d.Content != "" && is != d.Content {
		o := child.Package.Operator
		by, remedy := "the task", "set spec.content of the task to it"
		if f.Package.Lock.Entry(d.Task) != nil {
			by, remedy = operators.LockFileName, "kubectl kudo package lock DIR --upgrade "+d.Task+" takes it"
		}
		return fmt.Errorf("dependency of task %q of package %s: %s is %s %s with content %s, and %s wants content %s: if that is right, %s",
			d.Task, f.Package.Operator.Name, child.Origin, o.Name, artifact.Tag(o.AppVersion, o.OperatorVersion), is, by, d.Content, remedy)
	}
	return nil
}

// identity tells packages apart. Of a URL, the origin lacks what follows the ?, which may be a secret.
func (f *Found) identity() string {
	o := f.Package.Operator
	return f.Origin + " " + operators.VersionName(o.Name, o.AppVersion, o.OperatorVersion)
}

// find finds a dependency. The versions that a task names choose from a repository only: where the task names a path, KUDO takes whatever
// is there, and packages rely on it. A task that names a URL or a reference gets what the lock has found there; one that names a package by
// its name gets it from where its own package is, so that copies of both depend on one another, and from where the lock has found it if
// that place has no such package.
func (c Chain) find(ctx context.Context, f *Found, d operators.Dependency) (*Found, error) {
	r := Request{Name: d.Package, AppVersion: d.AppVersion, OperatorVersion: d.OperatorVersion}
	if d.From != "" && !r.bare() {
		r.Name = d.From
	}
	found, err := c.findSafely(ctx, r, f)
	if d.From == "" || r.Name == d.From {
		return found, err
	}
	if err == nil {
		o := found.Package.Operator
		if o.AppVersion == d.AppVersion && o.OperatorVersion == d.OperatorVersion {
			return found, nil
		}
		err = fmt.Errorf("%s is %s %s, and not the one that is locked", found.Origin, o.Name, artifact.Tag(o.AppVersion, o.OperatorVersion))
	}
	if ctx.Err() != nil {
		return nil, err
	}
	r.Name = d.From
	locked, failed := c.findSafely(ctx, r, f)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return locked, nil
}

// findSafely finds what a package names, if that may be named by a package from where it is.
func (c Chain) findSafely(ctx context.Context, r Request, f *Found) (*Found, error) {
	if err := checkTransport(f.Origin, r.Name); err != nil {
		return nil, err
	}
	return c.Find(ctx, r, f)
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
