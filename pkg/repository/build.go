package repository

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"kudo.dev/kudo/operators/archive"
)

// Build makes the entries of all archives (.tgz, .tar.gz) in a folder and below. The URL of an archive is its path
// behind base; an empty base makes URLs that are relative to the index. Archives that hold no package are skipped, and
// returned as errors. The error says that two archives hold the same version of a package.
func Build(fsys fs.FS, base string) (entries map[string][]Entry, skipped []error, err error) {
	entries = map[string][]Entry{}
	from := map[[3]string]string{}
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isArchive(name) {
			return err
		}
		e, err := describe(fsys, name)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("%s: %w", name, err))
			return nil
		}
		key := [3]string{e.Name, e.AppVersion, e.OperatorVersion}
		if other, twice := from[key]; twice {
			return fmt.Errorf("%s and %s hold the same version of package %s: delete one, or raise operatorVersion", other, name, e.Name)
		}
		from[key] = name
		e.URLs = []string{urlOf(base, name)}
		entries[e.Name] = append(entries[e.Name], *e)
		return nil
	})
	return entries, skipped, err
}

// urlOf is the URL of a file behind base.
func urlOf(base, name string) string {
	relative := (&url.URL{Path: name}).String() // with ./ in front where a colon would look like a scheme
	if base == "" {
		return relative
	}
	return strings.TrimRight(base, "/") + "/" + strings.TrimPrefix(relative, "./")
}

// describe makes the entry of an archive, without URLs.
func describe(fsys fs.FS, name string) (*Entry, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	limit := archive.DefaultLimits().Compressed
	packed, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(packed)) > limit {
		return nil, fmt.Errorf("has more than the %d bytes allowed", limit)
	}
	found, err := unpack(packed, path.Base(name), name)
	if err != nil {
		return nil, err
	}
	o := found.Package.Operator
	e := &Entry{
		Name: o.Name, OperatorVersion: o.OperatorVersion, AppVersion: o.AppVersion, Description: o.Description,
		Maintainers: o.Maintainers, Digest: digestOf(packed),
	}
	return e, check(e.Name, []Entry{*e})
}

// Merge adds entries of another index. Where both have the same version of a package, the first one's stays.
func Merge(into, other map[string][]Entry) {
	for name, list := range other {
		for _, e := range list {
			same := func(o Entry) bool { return o.AppVersion == e.AppVersion && o.OperatorVersion == e.OperatorVersion }
			if !slices.ContainsFunc(into[name], same) {
				into[name] = append(into[name], e)
			}
		}
	}
}

// Absolute makes the URLs of entries independent of the repository that they are from.
func Absolute(r Repository, entries map[string][]Entry) error {
	for _, list := range entries {
		for _, e := range list {
			for i, text := range e.URLs {
				u, err := absolute(r, text)
				if err != nil {
					return fmt.Errorf("package %s %s: %w", e.Name, e.OperatorVersion, err)
				}
				e.URLs[i] = u.String()
			}
		}
	}
	return nil
}
