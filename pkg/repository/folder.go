package repository

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/ocilayout"
)

// FolderContent returns the references of all versions of all packages in a folder such as layout:DIR, and warns of what else is there. It
// returns none for the folder of one package, and for a place that is no folder.
func (s *Remote) FolderContent(ctx context.Context, base string) ([]Reference, error) {
	dir, is := strings.CutPrefix(base, layoutScheme)
	if !is || hasIndex(dir) == nil {
		return nil, nil
	}
	children, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // the caller reads the folder as that of one package, and says what is wrong
	}
	var out []Reference
	for _, child := range children {
		path := filepath.Join(dir, child.Name())
		err := hasIndex(path)
		switch {
		case child.Type()&fs.ModeSymlink != 0:
			s.warn("%s is left out, since it is a link: replace it by the folder that it leads to", path)
			continue
		case !child.IsDir():
			continue
		case errors.Is(err, fs.ErrNotExist):
			s.warn("%s is left out, since it has no %s", path, ocispec.ImageIndexFile)
			continue
		case err != nil:
			return nil, err
		}
		r, err := ParseReference(strings.TrimSuffix(base, "/") + "/" + child.Name())
		if err != nil {
			return nil, err
		}
		versions, err := s.folderVersions(ctx, r)
		if err != nil {
			return nil, wrapReference(r, err)
		}
		out = append(out, versions...)
	}
	return out, nil
}

// hasIndex returns nil if a folder has the index of an OCI layout.
func hasIndex(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, ocispec.ImageIndexFile))
	return err
}

// folderVersions returns the references of the versions of a package in a folder, the highest first. It warns of manifests that have no tag
// of a version.
func (s *Remote) folderVersions(ctx context.Context, r Reference) ([]Reference, error) {
	folder := ocilayout.Folder{Dir: r.folder()}
	entries, err := listVersions(ctx, folder, r)
	if err != nil {
		return nil, err
	}
	manifests, err := folder.Manifests()
	if err != nil {
		return nil, err
	}
	var out []Reference
	for _, e := range entries {
		out = append(out, Reference{Base: r.Base, Name: r.Name, Tag: artifact.Tag(e.AppVersion, e.OperatorVersion)})
	}
	known := map[digest.Digest]bool{}
	for _, m := range manifests {
		if _, _, is := artifact.ParseTag(ocilayout.Tag(m)); is {
			known[m.Digest] = true
		}
	}
	for _, m := range manifests {
		if known[m.Digest] {
			continue
		}
		known[m.Digest] = true
		if m.ArtifactType == artifact.SignatureType { // it goes along with the package that it is of
			continue
		}
		s.warn("%s@%s is left out, since it has no tag of a version: name it by its digest", r, m.Digest)
	}
	return out, nil
}

// SortByDependencies returns references of packages with their digests. Each is after those of the references that its package depends on.
func (s *Remote) SortByDependencies(ctx context.Context, all []Reference) ([]Reference, error) {
	var names []string
	versions, needs := map[string][]Reference{}, map[string][]string{}
	for _, r := range all {
		pulled, err := s.Pull(ctx, r, Versions{})
		if err != nil {
			return nil, err
		}
		names = append(names, r.Name)
		versions[r.Name] = append(versions[r.Name], pulled.Reference)
		for _, d := range pulled.Package.Dependencies() {
			name := d.Package
			if other, err := ParseReference(name); err == nil {
				name = other.Name
			}
			needs[r.Name] = append(needs[r.Name], name)
		}
	}
	var out []Reference
	var visit func(name string)
	visit = func(name string) {
		found := versions[name]
		if len(found) == 0 { // a package from elsewhere, or one that was visited
			return
		}
		delete(versions, name)
		for _, need := range needs[name] {
			visit(need)
		}
		out = append(out, found...)
	}
	for _, name := range names {
		visit(name)
	}
	return out, nil
}
