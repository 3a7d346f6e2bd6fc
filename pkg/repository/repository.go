// Package repository finds operator packages: in a folder, in an archive, at a URL, in a registry of OCI artifacts, or in a repository,
// which is an index of archives in KUDO's format behind HTTP.
package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/operators/versions"
)

// Found is a package, and where it was found.
type Found struct {
	Package *operators.Package
	// Origin is the absolute path of the folder or archive, or the URL of the archive. A package within an archive has
	// the path inside behind it.
	Origin string

	// Archive holds the bytes of the archive, if the package is an archive on this disk.
	Archive []byte

	// files of the archive, and the folder of the package in them; nil if the package is a folder.
	files  fs.FS
	inside string
	// dir is what paths of dependencies are relative to on this disk. It is empty for what came from elsewhere: such a
	// package cannot name files of this disk.
	dir string
	// source is the reference of the package, or of the archive that it lies in, if that is from a registry or a folder in OCI layout.
	source Reference
	// signatures reads the signatures of the package; nil if it has a place for none.
	signatures func(ctx context.Context) (Signatures, error)
	// digest is that of an archive from a URL, in hex; address is the URL with the digest, unless what follows a ? could be a secret.
	digest, address string
	// repository is the name of that which dependencies are looked for in; empty is the one in use.
	repository string
}

// NotFoundError says that there is no such package.
type NotFoundError struct{ Name, Reason string }

// Error implements error.
func (e *NotFoundError) Error() string { return fmt.Sprintf("package %q: %s", e.Name, e.Reason) }

// Request says which package is wanted.
type Request struct {
	// Name is a path, a URL, a reference such as oci://HOST/PATH/NAME:TAG, or the name of a package in a repository.
	Name string
	// AppVersion and OperatorVersion are versions or ranges of them, such as ^1.2; empty ones are any.
	AppVersion, OperatorVersion string
	// Repository is the name of the repository to look in; empty is the one in use.
	Repository string
}

// bare reports whether the name can be that of a package in a repository: it is neither a path nor a URL nor a reference.
func (r Request) bare() bool {
	return !IsReference(r.Name) && !strings.ContainsAny(r.Name, `/\`) && r.Name != "" && r.Name != "." && r.Name != ".."
}

// Source is one place to find packages in.
type Source interface {
	// Find returns a package. The package from depends on it; that is nil for what a user asks for. An error of type
	// *NotFoundError means that another source may have it; any other ends the search.
	Find(ctx context.Context, r Request, from *Found) (*Found, error)
}

// Chain asks its sources in order.
type Chain []Source

// Find implements Source. The error is of type *NotFoundError if no source has the package.
func (c Chain) Find(ctx context.Context, r Request, from *Found) (*Found, error) {
	var reasons []string
	for _, source := range c {
		found, err := source.Find(ctx, r, from)
		var missing *NotFoundError
		switch {
		case err == nil:
			return found, nil
		case !errors.As(err, &missing) && len(reasons) > 0:
			return nil, fmt.Errorf("package %q: %s; %w", r.Name, strings.Join(reasons, "; "), err)
		case !errors.As(err, &missing):
			return nil, err
		case missing.Reason != "":
			reasons = append(reasons, missing.Reason)
		}
	}
	return nil, &NotFoundError{r.Name, strings.Join(reasons, "; ")}
}

// Resolve finds what a user asks for, and makes sure that it has the versions asked for.
func (c Chain) Resolve(ctx context.Context, r Request) (*Found, error) {
	for _, wanted := range []string{r.AppVersion, r.OperatorVersion} {
		if err := versions.CheckRange(wanted); err != nil {
			return nil, err
		}
	}
	found, err := c.Find(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	operator := found.Package.Operator
	for _, v := range []struct{ what, wanted, is string }{
		{"appVersion", r.AppVersion, operator.AppVersion}, {"operatorVersion", r.OperatorVersion, operator.OperatorVersion},
	} {
		if fits, err := versions.Matches(v.is, v.wanted); err != nil || !fits {
			return nil, errors.Join(err, fmt.Errorf("package %s has %s %q, which is not %s", r.Name, v.what, v.is, v.wanted))
		}
	}
	return found, nil
}

// Resolve finds a package on this disk by a path, which is relative to base: a folder, or an archive (.tgz).
func Resolve(ctx context.Context, name, base string) (*Found, error) {
	if isURL(name) {
		return nil, &NotFoundError{name, "only what is on this disk is looked at here: download it first"}
	}
	return Chain{Local{Base: base}}.Find(ctx, Request{Name: name}, nil)
}

// WithDependencies resolves the dependencies of a package that are on this disk; see Chain.WithDependencies.
func WithDependencies(ctx context.Context, root *Found) ([]*operators.Package, error) {
	return Chain{Local{Base: "."}}.WithDependencies(ctx, root)
}

// unpack reads the package at the root of an archive.
func unpack(packed []byte, name, origin string) (*Found, error) {
	files, err := archive.Read(bytes.NewReader(packed), archive.DefaultLimits())
	if err != nil {
		return nil, wrap(name, err)
	}
	return within(files, ".", name, origin)
}

// within reads a package of a file tree.
func within(files fs.FS, dir, name, origin string) (*Found, error) {
	part, err := fs.Sub(files, path.Clean(dir))
	if err != nil {
		return nil, wrap(name, err)
	}
	pkg, err := operators.Read(part, operators.WithArchive(name))
	if err != nil {
		return nil, wrap(name, err)
	}
	return &Found{Package: pkg, Origin: origin, files: files, inside: dir}, nil
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("package %s:\n%w", name, err)
}
