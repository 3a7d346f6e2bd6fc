package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/ocilayout"
	"kudo.dev/kudo/pkg/registry"
)

// artifacts reads and writes the artifacts of one package, which a registry or a folder keeps.
type artifacts interface {
	// Manifest returns the manifest of a tag or digest, in bounds; the error is registry.ErrNotFound if there is none.
	Manifest(ctx context.Context, reference string, limit int64) (ocispec.Descriptor, []byte, error)
	// Blob returns a blob whose size was checked, and checks its digest.
	Blob(ctx context.Context, d ocispec.Descriptor) ([]byte, error)
	Tags(ctx context.Context) ([]string, error)
	// Push writes blobs that are not there, and then the manifest under a tag.
	Push(ctx context.Context, manifest registry.Blob, blobs []registry.Blob, tag string) error
}

// store is where the artifacts of one package are, with what refers to them.
type store interface {
	artifacts
	// Referrers returns descriptors of manifests that refer to one, but for those that keep refuses, and reports whether bounds have cut
	// the list. What was found before an error is returned, too.
	Referrers(ctx context.Context, subject ocispec.Descriptor, keep func(ocispec.Descriptor) bool) (found []ocispec.Descriptor, cut bool,
		err error)
}

// Pulled is an artifact, and the reference with the digest that it has.
type Pulled struct {
	*artifact.Artifact
	Reference Reference
}

// resolved is a reference, and where its artifact is.
type resolved struct {
	Reference
	store store
}

// Pull fetches the package of a reference that a user gives. Without tag and digest it is the highest version that fits.
func (s *Remote) Pull(ctx context.Context, r Reference, wanted Versions) (*Pulled, error) {
	return s.pull(ctx, r, wanted, nil)
}

// pull fetches the package of a reference. A tag is resolved once: a tag that moves while a command runs changes nothing. Of the artifacts
// only the last one is kept, since a command such as copy can pull many large ones; the others are fetched by their digests again, from
// where they were found.
func (s *Remote) pull(ctx context.Context, r Reference, wanted Versions, from *Found) (*Pulled, error) {
	key := resolvedKey(r, wanted)
	at, known := s.resolved[key]
	if known && s.last != nil && s.last.Reference == at.Reference {
		return s.last, nil
	}
	asked := string(at.Digest)
	if !known {
		var err error
		if at, err = s.resolve(ctx, r, wanted, from); err != nil {
			return nil, err
		}
		asked = cmp.Or(at.Tag, string(at.Digest))
	}
	found, err := s.fetchArtifact(ctx, at, asked)
	if err != nil {
		return nil, wrapReference(at.Reference, err)
	}
	at.Reference = found.Reference
	s.resolved[key], s.resolved[resolvedKey(at.Reference, Versions{})], s.last = at, at, found
	return found, nil
}

// resolve connects to where a reference is, and chooses its tag if it has neither tag nor digest.
func (s *Remote) resolve(ctx context.Context, r Reference, wanted Versions, from *Found) (at resolved, err error) {
	at.Reference = r
	if at.store, err = s.sources(r, from); err != nil || r.Tag != "" || r.Digest != "" {
		return at, err
	}
	if at.Tag, err = chooseTag(ctx, at.store, r, wanted); err != nil {
		return at, wrapReference(r, err)
	}
	return at, nil
}

func resolvedKey(r Reference, wanted Versions) string { return r.String() + " " + wanted.String() }

// wrapReference puts a reference before an error, and before a predicate of the reference.
func wrapReference(r Reference, err error) error {
	var kind *artifact.TypeError
	var content *artifact.ContentError
	if errors.As(err, &kind) || errors.As(err, &content) {
		return fmt.Errorf("%s %w", r, err)
	}
	return fmt.Errorf("%s: %w", r, err)
}

// fetchArtifact fetches the artifact of a reference, by a tag or digest.
func (s *Remote) fetchArtifact(ctx context.Context, at resolved, asked string) (*Pulled, error) {
	r, store := at.Reference, at.store
	d, data, err := store.Manifest(ctx, asked, artifact.MaxManifest)
	if err != nil {
		return nil, err
	}
	if r.Digest != "" && d.Digest != r.Digest {
		return nil, fmt.Errorf("tag %s has the digest %s: the tag was moved: name either the tag or the digest", r.Tag, d.Digest)
	}
	r.Digest = d.Digest
	manifest, err := artifact.ParseManifest(data, d.MediaType)
	if err != nil {
		return nil, err
	}
	config, err := store.Blob(ctx, manifest.Config)
	if err != nil {
		return nil, err
	}
	packed, err := s.layer(ctx, store, r, manifest.Layer)
	if err != nil {
		return nil, err
	}
	a, err := manifest.Assemble(config, packed)
	if err != nil {
		return nil, err
	}
	if err := artifact.CheckTag(r.Tag, a.Package); err != nil {
		return nil, err
	}
	if name := a.Package.Operator.Name; name != r.Name {
		return nil, &artifact.ContentError{Holds: "package " + name + ": the last part of the path must be its name"}
	}
	return &Pulled{a, r}, nil
}

// layer returns the archive, from the cache if it is there.
func (s *Remote) layer(ctx context.Context, store artifacts, r Reference, d ocispec.Descriptor) ([]byte, error) {
	if packed, is := s.cache().loadArchive(d.Digest.Encoded()); is {
		return packed, nil
	}
	packed, err := store.Blob(ctx, d)
	if err != nil || r.IsFolder() {
		return packed, err
	}
	if err := s.cache().storeArchive(d.Digest.Encoded(), packed); err != nil {
		s.warn("the archive of %s is not kept: %v", r, err)
	}
	return packed, nil
}

// chooseTag returns the tag of the highest version that fits.
func chooseTag(ctx context.Context, store artifacts, r Reference, wanted Versions) (string, error) {
	entries, err := listVersions(ctx, store, r)
	if err != nil {
		return "", err
	}
	entry, err := Choose(entries, wanted.App, wanted.Operator)
	if err != nil {
		return "", err
	}
	if entry == nil {
		what := wanted.String()
		if what == "" {
			what = "of a version"
		}
		return "", fmt.Errorf("%d of its tags are versions, and none is %s", len(entries), what)
	}
	return artifact.Tag(entry.AppVersion, entry.OperatorVersion), nil
}

// listVersions returns the versions that tags name, the highest first.
func listVersions(ctx context.Context, store artifacts, r Reference) ([]Entry, error) {
	tags, err := store.Tags(ctx)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for _, tag := range tags {
		if app, operator, is := artifact.ParseTag(tag); is {
			entries = append(entries, Entry{Name: r.Name, AppVersion: app, OperatorVersion: operator, URLs: []string{r.Repository() + ":" + tag}})
		}
	}
	slices.SortStableFunc(entries, compareEntries)
	return entries, nil
}

// Push writes an artifact to a registry or folder, under the tag of its version, and returns the reference with the digest. It reports
// whether it has written: without overwrite, a tag that has this artifact already is left as it is, and one that has another artifact is
// not moved.
func (s *Remote) Push(ctx context.Context, a *artifact.Artifact, base string, overwrite bool) (r Reference, written bool, err error) {
	if r, err = Within(base, a.Package.Operator.Name, a.Tag()); err != nil {
		return r, false, err
	}
	store, err := s.artifacts(r, nil)
	if err != nil {
		return r, false, err
	}
	d := a.Descriptor()
	m, err := artifact.ParseManifest(a.Manifest, d.MediaType)
	if err != nil {
		return r, false, wrapReference(r, err)
	}
	if !overwrite {
		is, _, err := store.Manifest(ctx, r.Tag, artifact.MaxManifest)
		switch {
		case errors.Is(err, registry.ErrNotFound):
		case err != nil:
			return r, false, wrapReference(r, err)
		case is.Digest != d.Digest:
			return r, false, fmt.Errorf("%s exists already, and has the digest %s instead of %s: raise operatorVersion, or use --overwrite", r,
				is.Digest, d.Digest)
		case !r.IsFolder() || isWhole(ctx, store, m): // a registry takes no manifest without its blobs
			r.Digest = d.Digest
			return r, false, nil
		}
	}
	blobs := []registry.Blob{{Descriptor: m.Config, Data: a.Config}, {Descriptor: m.Layer, Data: a.Archive}}
	if err := store.Push(ctx, registry.Blob{Descriptor: d, Data: a.Manifest}, blobs, r.Tag); err != nil {
		return r, false, wrapReference(r, err)
	}
	r.Digest = d.Digest
	return r, true, nil
}

// isWhole reports whether all that a manifest names is there.
func isWhole(ctx context.Context, store artifacts, m *artifact.Manifest) bool {
	for _, d := range []ocispec.Descriptor{m.Config, m.Layer} {
		if _, err := store.Blob(ctx, d); err != nil {
			return false
		}
	}
	return true
}

// artifacts connects to the repository of a package. A registry that only a dependency names gets no credentials and no settings of the
// user, unless the user has named the same registry.
func (s *Remote) artifacts(r Reference, from *Found) (store, error) {
	if r.IsFolder() {
		return ocilayout.Folder{Dir: r.folder()}, nil
	}
	o := s.Registry
	if from != nil && from.dir == "" && from.source.host() != r.host() {
		o = registry.Options{ConfigFile: o.ConfigFile, Roots: o.Roots, UserAgent: o.UserAgent}
	}
	if err := s.addRepositoryOptions(r, &o); err != nil {
		return nil, err
	}
	return registry.NewClient(r.Repository(), o)
}

// addRepositoryOptions adds what repo add was given for the registry that a reference is in.
func (s *Remote) addRepositoryOptions(r Reference, o *registry.Options) error {
	if _, err := s.Repository(""); s.list == nil {
		return err
	}
	best := Repository{}
	for _, repository := range s.list.Repositories {
		base := strings.TrimSuffix(repository.URL, "/")
		if strings.HasPrefix(base, registry.Scheme) && strings.HasPrefix(r.Repository(), base+"/") && len(base) > len(best.URL) {
			best = repository
		}
	}
	o.TokenHosts = slices.Concat(o.TokenHosts, best.TokenHosts)
	o.Username, o.Password, o.Token = best.Username, string(best.Password), string(best.Token)
	if best.CAFile == "" {
		return nil
	}
	var err error
	if o.Roots, err = registry.AddCertificates(o.Roots, best.CAFile); err != nil {
		return fmt.Errorf("certificates of repository %s: %w", best.Name, err)
	}
	return nil
}

// atReference finds a package in a registry or a folder.
func (s *Remote) atReference(ctx context.Context, r Request, from *Found) (*Found, error) {
	reference, err := ParseReference(r.Name)
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	if reference.IsFolder() && from != nil {
		dir := strings.TrimPrefix(reference.Base, layoutScheme)
		switch {
		case from.source.Base == reference.Base: // the folder that it is in
		case from.dir == "":
			return nil, fmt.Errorf("package %q: a package from elsewhere cannot refer to files of this disk", r.Name)
		case !filepath.IsAbs(dir):
			reference.Base = layoutScheme + filepath.ToSlash(filepath.Join(from.dir, dir))
		}
	}
	wanted := Versions{r.AppVersion, r.OperatorVersion}
	pulled, err := s.pull(ctx, reference, wanted, from)
	if err != nil {
		return nil, fmt.Errorf("package %w", err)
	}
	found, err := unpack(pulled.Archive, pulled.Reference.String(), pulled.Reference.String())
	if err != nil {
		return nil, err
	}
	if at, err := Best([]Versions{{found.Package.Operator.AppVersion, found.Package.Operator.OperatorVersion}}, wanted); at < 0 || err != nil {
		return nil, errors.Join(fmt.Errorf("package %s is not %s", pulled.Reference, wanted), err)
	}
	found.source, found.repository = pulled.Reference, r.Repository
	found.signatures = func(ctx context.Context) (Signatures, error) { return s.Signatures(ctx, pulled) }
	if from != nil {
		found.repository = from.repository
	}
	return found, nil
}

// inRegistry finds a package by its name in a registry or folder.
func (s *Remote) inRegistry(ctx context.Context, base, name string, r Request, from *Found) (*Found, error) {
	reference, err := Within(base, r.Name, "")
	if err != nil {
		return nil, fmt.Errorf("package %w", err)
	}
	found, err := s.atReference(ctx, Request{Name: reference.String(), AppVersion: r.AppVersion, OperatorVersion: r.OperatorVersion}, from)
	if err != nil {
		return nil, err
	}
	found.repository = name
	return found, nil
}

// registryVersions returns the versions of a package in a registry, the highest first; none if there is no such package.
func (s *Remote) registryVersions(ctx context.Context, r Repository, name string) ([]Entry, error) {
	reference, err := Within(r.URL, name, "")
	if err != nil {
		return nil, err
	}
	store, err := s.sources(reference, nil)
	if err != nil {
		return nil, err
	}
	entries, err := listVersions(ctx, store, reference)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return nil, fmt.Errorf("repository %s: %w", r.Name, wrapReference(reference, err))
	}
	return entries, nil
}
