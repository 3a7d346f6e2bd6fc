package repository

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/registry"
)

// Remote finds packages in repositories and at URLs. It reads the index of a repository once. It is for one command
// and not for several goroutines.
type Remote struct {
	// Registry says how registries are reached that a user names.
	Registry registry.Options
	// Direct is set if registries are read themselves, and not their mirrors.
	Direct bool

	home  Home
	clock clock.PassiveClock
	// warn prints a warning for the user, for example that an archive could not be written to the cache. It may be nil.
	warn    func(format string, args ...any)
	timeout time.Duration
	// signaturesTimeout bounds the request for a file of signatures, and silent has the hosts that did not answer in this time.
	signaturesTimeout time.Duration
	silent            map[string]bool
	list              *Repositories
	open              map[string]*openRepository
	// resolved has the references that were pulled, by resolvedKey; last is what was pulled last.
	resolved map[string]resolved
	last     *Pulled
}

type openRepository struct {
	client *Client
	index  *Index
}

// NewRemote makes a source of the repositories of a home. A timeout of zero means DefaultTimeout for each download.
func NewRemote(home Home, timeout time.Duration, warn func(format string, args ...any)) *Remote {
	if warn == nil {
		warn = func(string, ...any) {}
	}
	return &Remote{home: home, clock: clock.RealClock{}, warn: warn, timeout: timeout, signaturesTimeout: signaturesTimeout,
		silent: map[string]bool{}, open: map[string]*openRepository{}, resolved: map[string]resolved{}}
}

// Close releases files and connections.
func (s *Remote) Close() error {
	var err error
	for _, o := range s.open {
		o.client.Close()
		if o.index != nil {
			err = errors.Join(err, o.index.Close())
		}
	}
	return err
}

// Find implements Source.
func (s *Remote) Find(ctx context.Context, r Request, from *Found) (*Found, error) {
	if isURL(r.Name) {
		return s.atURL(ctx, r, from)
	}
	if IsReference(r.Name) {
		return s.atReference(ctx, r, from)
	}
	if !r.bare() {
		return nil, &NotFoundError{Name: r.Name}
	}
	name := r.Repository
	if name == "" && from != nil {
		name = from.repository
		if name == "" && from.source.Base != "" { // the package that depends on it names no repository: both are in the same registry
			return s.inRegistry(ctx, from.source.Base, "", r, from)
		}
	}
	repository, err := s.Repository(name)
	if err != nil {
		return nil, err
	}
	if repository.IsRegistry() {
		return s.inRegistry(ctx, repository.URL, repository.Name, r, from)
	}
	index, err := s.Index(ctx, repository)
	if err != nil {
		return nil, err
	}
	entries, err := index.Versions(r.Name)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", repository.Name, err)
	}
	if len(entries) == 0 {
		return nil, &NotFoundError{r.Name, fmt.Sprintf("repository %s has no such package: kubectl kudo search shows what it has",
			repository.Name)}
	}
	entry, err := Choose(entries, r.AppVersion, r.OperatorVersion)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, fmt.Errorf("repository %s has package %s, but not %s: kubectl kudo search %s --all-versions shows what it has",
			repository.Name, r.Name,
			cmp.Or(Versions{r.AppVersion, r.OperatorVersion}.String(), "any version that was not removed"), r.Name)
	}
	return s.fetch(ctx, repository, entry)
}

// Repositories returns which repositories the home has.
func (s *Remote) Repositories() (*Repositories, error) {
	if s.list == nil {
		list, err := s.home.Load()
		if err != nil {
			return nil, err
		}
		s.list = list
	}
	return s.list, nil
}

// Repository returns a repository of the home by its name; an empty name is the one in use.
func (s *Remote) Repository(name string) (Repository, error) {
	list, err := s.Repositories()
	if err != nil {
		return Repository{}, err
	}
	return list.Get(name)
}

// Names returns the names of the packages of a repository that contain a text, in any letter case, sorted. A registry has no list of
// packages: for one, the text must be the whole name of a package, and an empty text is an error.
func (s *Remote) Names(ctx context.Context, r Repository, part string) ([]string, error) {
	if part != "" && r.IsRegistry() {
		return []string{part}, nil
	}
	index, err := s.Index(ctx, r)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(index.Names(), func(name string) bool {
		return !strings.Contains(strings.ToLower(name), strings.ToLower(part))
	}), nil
}

// Versions returns the versions of a package that can be installed, the highest first; none if the repository has no such package. A
// registry can hide versions.
func (s *Remote) Versions(ctx context.Context, r Repository, name string) ([]Entry, error) {
	if r.IsRegistry() {
		return s.registryVersions(ctx, r, name)
	}
	index, err := s.Index(ctx, r)
	if err != nil {
		return nil, err
	}
	entries, err := index.Versions(name)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Removed }), nil
}

// Index returns the index of a repository: from the cache, if the server says that it has not changed.
func (s *Remote) Index(ctx context.Context, r Repository) (*Index, error) {
	if r.IsRegistry() {
		return nil, fmt.Errorf("repository %s: the registry %s has no index, and no list of packages: name the package", r.Name, r.URL)
	}
	o, err := s.connect(r)
	if err != nil || o.index != nil {
		return o.index, err
	}
	if o.index, err = s.readIndex(ctx, r, o.client); err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return o.index, nil
}

func (s *Remote) connect(r Repository) (*openRepository, error) {
	if o := s.open[r.Name]; o != nil {
		return o, nil
	}
	client, err := NewClient(r, s.timeout)
	if err != nil {
		return &openRepository{}, err
	}
	s.open[r.Name] = &openRepository{client: client}
	return s.open[r.Name], nil
}

func (s *Remote) readIndex(ctx context.Context, r Repository, client *Client) (*Index, error) {
	u, err := r.index()
	if err != nil {
		return nil, err
	}
	if r.Key != "" {
		return s.readSignedIndex(ctx, r, u, client)
	}
	kept, known, ok := s.cache().loadIndex(r)
	text, fresh, err := client.get(ctx, u, MaxIndex, false, known)
	if errors.Is(err, errNotModified) && ok {
		return kept, nil
	}
	if ok {
		_ = kept.Close()
	}
	if err != nil {
		return nil, err
	}
	x, err := ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redactURL(u), err)
	}
	if fresh == (validators{}) {
		return x, nil // the server could not be asked whether it has changed
	}
	if err := s.cache().storeIndex(r, x, fresh); err != nil {
		s.warn("the index of repository %s is not kept: %v", r.Name, err)
	}
	return x, nil
}

func (s *Remote) cache() cache { return s.home.cache() }

func (h Home) cache() cache { return cache{filepath.Join(h.Dir, "cache")} }

// Forget removes what is kept of a repository.
func (h Home) Forget(name string) error { return h.cache().forget(name) }

// fetch fetches the archive of an entry from the first of its URLs that has it.
func (s *Remote) fetch(ctx context.Context, r Repository, e *Entry) (*Found, error) {
	if len(e.URLs) == 0 {
		return nil, fmt.Errorf("repository %s: the index has no URL of package %s %s", r.Name, e.Name, e.OperatorVersion)
	}
	if e.Digest == "" {
		return nil, fmt.Errorf("repository %s has no digest of package %s %s, so that nothing tells its archive from another one: whoever "+
			"keeps the repository makes its index anew by kubectl kudo repo index, which writes digests", r.Name, e.Name, e.OperatorVersion)
	}
	var failed error
	for n, text := range e.URLs {
		u, err := absolute(r, text)
		if err == nil {
			var packed []byte
			if packed, err = s.archive(ctx, r, u, e.Digest); err == nil {
				return s.readArchive(r, e, n, packed)
			}
		}
		failed = errors.Join(failed, fmt.Errorf("repository %s, package %s %s: %w", r.Name, e.Name, e.OperatorVersion, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// readArchive unpacks the archive of an entry, which has come from its nth URL, and makes sure that it is the package that the index says.
func (s *Remote) readArchive(r Repository, e *Entry, n int, packed []byte) (*Found, error) {
	var all []*url.URL
	for _, text := range append(e.URLs[n:n+1:n+1], e.URLs...) { // the signatures are most likely beside that one
		if at, err := absolute(r, text); err == nil && (len(all) == 0 || *at != *all[0]) {
			all = append(all, at)
		}
	}
	u := all[0]
	found, err := unpack(packed, e.Name, redactURL(u))
	if err != nil {
		return nil, err
	}
	o := found.Package.Operator
	if o.Name != e.Name || o.OperatorVersion != e.OperatorVersion || o.AppVersion != e.AppVersion {
		return nil, fmt.Errorf("repository %s: %s holds %s (appVersion %q, operatorVersion %q), and not %s (%q, %q), as the index says",
			r.Name, redactURL(u), o.Name, o.AppVersion, o.OperatorVersion, e.Name, e.AppVersion, e.OperatorVersion)
	}
	found.repository = r.Name
	found.setAddress(u, packed)
	found.signatures = func(ctx context.Context) (Signatures, error) { return s.signaturesBeside(ctx, r, all) }
	return found, nil
}

// absolute is a URL of an entry. An index from elsewhere cannot name files of this disk.
func absolute(r Repository, text string) (*url.URL, error) {
	base, err := r.index()
	if err != nil {
		return nil, err
	}
	relative, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the index has a URL that cannot be read")
	}
	u, err := parseURL(base.ResolveReference(relative).String())
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" && base.Scheme != "file" {
		return nil, fmt.Errorf("%s: an index from elsewhere cannot refer to files of this disk", redactURL(u))
	}
	return u, nil
}

// archive returns the bytes of an archive. If the digest is known, they have it.
func (s *Remote) archive(ctx context.Context, r Repository, u *url.URL, digest string) ([]byte, error) {
	if digest != "" {
		if packed, ok := s.cache().loadArchive(digest); ok {
			return packed, nil
		}
	}
	o, err := s.connect(r)
	if err != nil {
		return nil, err
	}
	packed, _, err := o.client.get(ctx, u, archive.DefaultLimits().Compressed, true, validators{})
	if err != nil || digest == "" {
		return packed, err
	}
	if is := digestOf(packed); is != digest {
		return nil, fmt.Errorf("%s has the digest %s, and not %s: it was damaged or replaced", redactURL(u), is, digest)
	}
	if u.Scheme != "file" {
		if err := s.cache().storeArchive(digest, packed); err != nil {
			s.warn("the archive of %s is not kept: %v", redactURL(u), err)
		}
	}
	return packed, nil
}

// atURL fetches an archive by its URL, with the credentials and certificates of the repository that it is part of.
func (s *Remote) atURL(ctx context.Context, r Request, from *Found) (*Found, error) {
	u, err := parseURL(r.Name)
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	digest, hasDigest := strings.CutPrefix(u.Fragment, digestFragment)
	if u.Fragment != "" && !hasDigest { // a digest with a slip must not mean that none is checked
		return nil, fmt.Errorf("package %s: what follows # is no digest: write it as #%s<hex>", redactURL(u), digestFragment)
	}
	digest = strings.ToLower(digest)
	if sum, err := hex.DecodeString(digest); hasDigest && (err != nil || len(sum) != 32) {
		return nil, fmt.Errorf("package %s: what follows #%s is no SHA-256 in hex", redactURL(u), digestFragment)
	}
	if u.Fragment = ""; !hasDigest {
		digest = ""
	}
	repository, err := s.repositoryOf(u)
	if err != nil {
		return nil, err
	}
	packed, err := s.archive(ctx, repository, u, digest)
	if err != nil {
		return nil, fmt.Errorf("package %w", err)
	}
	found, err := unpack(packed, redactURL(u), redactURL(u))
	if err != nil {
		return nil, err
	}
	found.repository = r.Repository
	found.setAddress(u, packed)
	found.signatures = func(ctx context.Context) (Signatures, error) {
		return s.signaturesBeside(ctx, repository, []*url.URL{u})
	}
	if from != nil {
		found.repository = from.repository
	}
	return found, nil
}

// setAddress says from which URL the archive of the package is.
func (f *Found) setAddress(u *url.URL, packed []byte) {
	f.digest = digestOf(packed)
	if u.Scheme != "file" && u.RawQuery == "" {
		f.address = u.String() + "#" + digestFragment + f.digest
	}
}

// repositoryOf is the repository whose folder a URL is in, or an empty one.
func (s *Remote) repositoryOf(u *url.URL) (Repository, error) {
	list, err := s.Repositories()
	if err != nil {
		return Repository{}, err
	}
	best, longest := Repository{}, -1
	for _, r := range list.Repositories {
		base, err := parseURL(r.URL)
		if err != nil || origin(base) != origin(u) {
			continue
		}
		folder := strings.TrimSuffix(base.Path, "/") + "/"
		if strings.HasPrefix(u.Path, folder) && len(folder) > longest {
			best, longest = r, len(folder)
		}
	}
	return best, nil
}
