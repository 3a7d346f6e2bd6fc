package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	sigsyaml "sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/trust"
)

// CatalogName is the name of the repository that is used if the user has configured none: the catalog of kudo.
const CatalogName = "catalog"

// CatalogURL is the address of that repository. make release sets it; other builds have none.
var CatalogURL string

// Home is the folder of what kudo keeps for a user: which repositories there are, and the cache.
//
//	repository/repositories.yaml   in KUDO's format, and credentials: mode 0600
//	cache/                         indexes and archives
type Home struct{ Dir string }

// DefaultHome is $KUDO_HOME, or ~/.kudo, as in KUDO.
func DefaultHome(env func(string) string, user func() (string, error)) (Home, error) {
	if dir := env("KUDO_HOME"); dir != "" {
		return Home{dir}, nil
	}
	dir, err := user()
	if err != nil {
		return Home{}, fmt.Errorf("where kudo keeps repositories is not known: set --home or KUDO_HOME: %w", err)
	}
	return Home{filepath.Join(dir, ".kudo")}, nil
}

// Secret is text that is never printed.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "(hidden)" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "(hidden)" }

// Repository is a place with an index, and how to reach it.
type Repository struct {
	Name string `json:"name"`
	// URL of the folder that holds index.yaml: https, http or file; or a place in a registry, oci://HOST/PATH, or layout:DIR.
	URL string `json:"url"`
	// Username and Password are for basic authentication, Token is for a bearer's. They are sent to the scheme, host
	// and port of URL only.
	Username string `json:"username,omitempty"`
	Password Secret `json:"password,omitempty"`
	Token    Secret `json:"token,omitempty"`
	// CAFile is a PEM file of certificates to trust besides those of the system.
	CAFile string `json:"caFile,omitempty"`
	// TokenHosts issue the tokens of a registry, and get its credentials.
	TokenHosts []string `json:"tokenHosts,omitempty"`
	// Key is the public key in PEM that must have signed the index. If empty, the index needs no signature.
	Key string `json:"key,omitempty"`
}

// IsRegistry reports whether the repository is a registry, or a folder that stands for one. It has no list of packages.
func (r Repository) IsRegistry() bool { return IsReference(r.URL) }

// Address returns the URL for people, without what may be secret in it.
func (r Repository) Address() string {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return "an address that cannot be read"
	case r.IsRegistry() && u.User == nil:
		return r.URL
	}
	return redactURL(u)
}

// Validate says what is wrong with a repository.
func (r Repository) Validate() error {
	if !isPackageName(r.Name) {
		return fmt.Errorf("%q cannot name a repository: use letters, digits and -", r.Name)
	}
	if err := r.validateCredentials(); err != nil {
		return err
	}
	if r.IsRegistry() {
		return r.validateRegistry()
	}
	if _, err := r.publicKey(); err != nil {
		return err
	}
	u, err := parseURL(r.URL)
	if err != nil {
		return fmt.Errorf("repository %s: %w", r.Name, err)
	}
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("repository %s: the URL %s must be that of the folder that holds index.yaml, without ? and #", r.Name, redactURL(u))
	case len(r.TokenHosts) > 0:
		return fmt.Errorf("repository %s: only registries (%s) have token hosts", r.Name, registry.Scheme)
	case (r.Password != "" || r.Token != "") && u.Scheme == "file":
		return fmt.Errorf("repository %s: a folder of this disk takes no credentials", r.Name)
	}
	return r.readable(u)
}

func (r Repository) validateCredentials() error {
	switch {
	case r.Token != "" && (r.Password != "" || r.Username != ""):
		return fmt.Errorf("repository %s: a token cannot be used with a user name and a password", r.Name)
	case (r.Username == "") != (r.Password == ""):
		return fmt.Errorf("repository %s: a user name requires a password, and a password requires a user name", r.Name)
	}
	return nil
}

// validateRegistry says what is wrong with a repository that is a registry, or a folder that stands for one.
func (r Repository) validateRegistry() error {
	place, err := Within(r.URL, "name", "")
	switch {
	case r.Key != "":
		return fmt.Errorf("repository %s: a registry has no index that a key could have signed: policies judge the signatures of its packages",
			r.Name)
	case err != nil:
		return fmt.Errorf("repository %s: %w", r.Name, err)
	case place.IsFolder() && (r.Password != "" || r.Token != "" || r.CAFile != "" || len(r.TokenHosts) > 0):
		return fmt.Errorf("repository %s: a folder of this disk takes no credentials and certificates", r.Name)
	}
	return nil
}

// publicKey returns the key that must have signed the index; nil if the index needs no signature.
func (r Repository) publicKey() (*trust.PublicKey, error) {
	if r.Key == "" {
		return nil, nil
	}
	key, err := trust.ParsePublicKey([]byte(r.Key))
	if err != nil {
		return nil, fmt.Errorf("key of repository %s: %w", r.Name, err)
	}
	return key, nil
}

// readable fails if credentials would go over the network in clear.
func (r Repository) readable(u *url.URL) error {
	if (r.Password != "" || r.Token != "") && u.Scheme == "http" && !loopback(u.Hostname()) {
		return fmt.Errorf("repository %s: credentials would be readable on their way to %s: use https", r.Name, redactURL(u))
	}
	return nil
}

// loopback reports whether a host is this machine, to which nothing travels.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// index is the URL of the index.
func (r Repository) index() (*url.URL, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return u.JoinPath(IndexFileName), nil
}

// Repositories is which repositories there are.
type Repositories struct {
	// Version of the format: v1.
	Version string `json:"repoVersion"`
	// Context is the name of the one in use.
	Context      string       `json:"context,omitempty"`
	Repositories []Repository `json:"repositories"`
	// Mirrors say which registries are read from elsewhere.
	Mirrors []Mirror `json:"mirrors,omitempty"`
}

// ErrNone is that there is no repository.
var ErrNone = errors.New("no repository is configured: add one by kubectl kudo repo add NAME URL")

// Get returns a repository by its name; an empty name is the one in use.
func (l *Repositories) Get(name string) (Repository, error) {
	if name == "" {
		name = l.Context
	}
	if name == "" && len(l.Repositories) == 0 {
		return Repository{}, ErrNone
	}
	if name == "" {
		return Repository{}, errors.New("no repository is in use: choose one by kubectl kudo repo context, or --repo")
	}
	for _, r := range l.Repositories {
		if r.Name == name {
			return r, nil
		}
	}
	return Repository{}, fmt.Errorf("there is no repository %q: kubectl kudo repo list shows those that there are, repo add adds one", name)
}

// Add adds a repository. It is in use from now on if none was.
func (l *Repositories) Add(r Repository) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if slices.ContainsFunc(l.Repositories, func(other Repository) bool { return other.Name == r.Name }) {
		return fmt.Errorf("there is a repository %q already: take another name, or remove that one by kubectl kudo repo remove %s first", r.Name,
			r.Name)
	}
	l.Repositories = append(l.Repositories, r)
	if l.Context == "" {
		l.Context = r.Name
	}
	return nil
}

// Remove forgets a repository. None is in use if that was.
func (l *Repositories) Remove(name string) error {
	if name == "" {
		return errors.New("a repository is named by its name, which cannot be empty")
	}
	if _, err := l.Get(name); err != nil {
		return err
	}
	l.Repositories = slices.DeleteFunc(l.Repositories, func(r Repository) bool { return r.Name == name })
	if l.Context == name {
		l.Context = ""
	}
	return nil
}

func (h Home) file() string { return filepath.Join(h.Dir, "repository", "repositories.yaml") }

// maxRepositories is how large the file may be, in bytes.
const maxRepositories = 1 << 20

// Load reads which repositories there are. If there is no file, that is the catalog, if this build knows its address.
func (h Home) Load() (*Repositories, error) {
	text, err := readBounded(h.file(), maxRepositories)
	if errors.Is(err, fs.ErrNotExist) {
		list := &Repositories{Version: IndexVersion}
		if CatalogURL != "" {
			list.Context, list.Repositories = CatalogName, []Repository{{Name: CatalogName, URL: CatalogURL}}
		}
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("repositories: %w", err)
	}
	list := &Repositories{}
	if err := sigsyaml.Unmarshal(text, list); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", h.file(), err)
	}
	if list.Version != IndexVersion {
		return nil, fmt.Errorf("%s has repoVersion %q: only %s is known", h.file(), list.Version, IndexVersion)
	}
	return list, nil
}

// lockRetry is how often a lock that another process holds is tried.
const lockRetry = 20 * time.Millisecond

// lock locks the folder of the repositories. The caller unlocks it.
func (h Home) lock(ctx context.Context) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(h.file()), 0o700); err != nil {
		return nil, fmt.Errorf("repositories: %w", err)
	}
	lock := flock.New(h.file()+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking %s: %w", lock.Path(), err)
	}
	return lock.Unlock, nil
}

// Change changes which repositories there are. Processes that do so at the same time wait for one another; nothing is
// written if change returns an error.
func (h Home) Change(ctx context.Context, change func(*Repositories) error) (err error) {
	unlock, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	list, err := h.Load()
	if err != nil {
		return err
	}
	if err := change(list); err != nil {
		return err
	}
	text, err := sigsyaml.Marshal(list)
	if err != nil {
		return err
	}
	return atomicfile.Write(h.file(), text, 0o600)
}
