package repository

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/text"
)

// layoutScheme is the prefix of references to a folder that serves as a registry. The folder holds one OCI layout for each package.
const layoutScheme = "layout:"

// Reference names a package in a registry, oci://HOST/PATH/NAME[:TAG][@DIGEST], or in a folder, layout:DIR/NAME[:TAG][@DIGEST].
type Reference struct {
	// Base is where the repository of the package is, such as oci://HOST/PATH or layout:DIR.
	Base string
	// Name is that of the package: the last element of the path.
	Name string
	// Tag and Digest may be empty.
	Tag    string
	Digest digest.Digest
}

// IsReference reports whether a text begins like a reference.
func IsReference(s string) bool {
	return strings.HasPrefix(s, registry.Scheme) || strings.HasPrefix(s, layoutScheme)
}

// ParseReference reads a reference.
func ParseReference(s string) (Reference, error) {
	fail := func(format string, args ...any) (Reference, error) {
		return Reference{}, fmt.Errorf("%q is no reference such as oci://registry.example.org/kudo/postgres:1.0.0 or layout:folder/postgres: %s",
			text.Truncate(s, 256), fmt.Sprintf(format, args...))
	}
	if !IsReference(s) {
		return fail("it must begin with %s or %s", registry.Scheme, layoutScheme)
	}
	rest, encoded, hasDigest := strings.Cut(s, "@")
	r := Reference{Digest: digest.Digest(encoded)}
	if hasDigest && (r.Digest.Validate() != nil || r.Digest.Algorithm() != digest.SHA256) {
		return fail("what follows @ must be a digest, sha256:<hex>; if the @ is part of the path, name the folder by another path, such as a " +
			"relative one")
	}
	last := strings.LastIndexAny(rest, separators(rest))
	if at := strings.LastIndex(rest, ":"); at > last && at >= len(layoutScheme) {
		rest, r.Tag = rest[:at], rest[at+1:]
		if !artifact.IsTag(r.Tag) {
			return fail("%q cannot be a tag", text.Truncate(r.Tag, 128))
		}
	}
	switch {
	case last < 0: // layout:NAME
		r.Base, r.Name = layoutScheme+".", strings.TrimPrefix(rest, layoutScheme)
	case rest[:last] == "oci:/":
		return fail("it names a registry and no package")
	default:
		r.Base, r.Name = rest[:last], rest[last+1:]
	}
	if r.Base == layoutScheme { // layout:/NAME
		r.Base += "/"
	}
	if !isPackageName(r.Name) {
		return fail("%q cannot be the name of a package", text.Truncate(r.Name, 64))
	}
	return r, r.check()
}

// separators are those of the path of a reference.
func separators(s string) string {
	if strings.HasPrefix(s, layoutScheme) && filepath.Separator == '\\' {
		return `/\`
	}
	return "/"
}

// Within returns the reference of a package in a registry or folder, such as oci://HOST/PATH or layout:DIR.
func Within(base, name, tag string) (Reference, error) {
	r := Reference{Base: strings.TrimSuffix(base, "/"), Name: name, Tag: tag}
	const format = "%s is no place such as oci://registry.example.org/kudo or layout:folder: %s"
	switch {
	case !IsReference(base):
		return r, fmt.Errorf(format, text.Quote(base, 256), "it must begin with "+registry.Scheme+" or "+layoutScheme)
	case r.Base == layoutScheme:
		return r, fmt.Errorf(format, text.Quote(base, 256), "name the folder")
	case strings.Contains(base, "@"):
		return r, fmt.Errorf(format, text.Quote(base, 256), "what follows @ is the digest of a package; name a folder whose path has an @ by "+
			"another path, such as a relative one")
	}
	return r, r.check()
}

// check refuses what cannot be a repository of a registry.
func (r Reference) check() error {
	if r.IsFolder() {
		return nil
	}
	return registry.CheckReference(r.Repository())
}

// IsFolder reports whether the package is in a folder of this disk.
func (r Reference) IsFolder() bool { return strings.HasPrefix(r.Base, layoutScheme) }

// Repository returns the reference without tag and digest.
func (r Reference) Repository() string { return r.Base + "/" + r.Name }

// String returns the reference as it is written.
func (r Reference) String() string {
	s := r.Repository()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest.String()
	}
	return s
}

// folder returns the folder of the package.
func (r Reference) folder() string {
	return filepath.Join(filepath.FromSlash(strings.TrimPrefix(r.Base, layoutScheme)), r.Name)
}

// host returns the host of the registry, with its port; empty for a folder.
func (r Reference) host() string {
	rest, is := strings.CutPrefix(r.Base, registry.Scheme)
	if !is {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(host)
}
