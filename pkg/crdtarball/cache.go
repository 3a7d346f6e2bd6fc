package crdtarball

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"k8s.io/utils/clock"
)

// DefaultDir is where the manager keeps its cache.
const DefaultDir = "/var/lib/kudo/cache"

// DefaultMaxBytes is how large a cache becomes before entries are evicted.
const DefaultMaxBytes = 1 << 30

// Options of a cache. Everything but Dir has a working zero value.
type Options struct {
	// Dir is the folder. It is made if it is missing.
	Dir string
	// Limits of a tarball.
	Limits Limits
	// MaxBytes is the size beyond which the entries used least recently are evicted; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Retry says how often and when a failed fetch is tried again.
	Retry Retry
	// Metrics that are told what happens.
	Metrics Metrics
	// ProgressEvery is how often a fetch reports its progress at most; 0 means 5 s.
	ProgressEvery time.Duration
	// LockWait is how long a caller waits while another process fetches or removes the same entry; 0 means 1 min.
	LockWait time.Duration
	// Clock; nil means the real one.
	Clock clock.Clock
	// Random gives numbers in [0,1) for the jitter of retries; nil means math/rand.
	Random func() float64

	// step is told each step of publishing, for tests that end the process there.
	step func(name string)
}

// Cache keeps tarballs on the disk:
//
//	<dir>/<key>/meta.json                    what the entry is; names the content
//	<dir>/<key>/content-<n>/crds.tar.gz      the tarball as it came
//	<dir>/<key>/content-<n>/files/…          what it unpacks to
//	<dir>/.lock-<key>, .use-<key>            file locks: one fetches; many read, and what is read is not evicted
//	<dir>/.tmp-<key>-<n>                     what is yet incomplete
//
// A new entry appears by one rename of a folder that is complete and on the disk. A newer content is moved into the
// entry's folder beside the old, and takes effect by one rename of meta.json. So a folder is complete at any time,
// whenever the process ends, and the good copy is there until the better one is.
type Cache struct {
	options Options
	metrics Metrics
	flights flights
	memory  memory
	// fetching has the keys that this process has locked to fetch them.
	fetching sync.Map
}

// Open opens the cache in a folder, makes the folder if need be, and sweeps what killed processes have left. A folder
// that is read-only can be opened, and its entries used. Errors are *Error.
func Open(options Options) (*Cache, error) {
	if options.MaxBytes <= 0 {
		options.MaxBytes = DefaultMaxBytes
	}
	if options.ProgressEvery <= 0 {
		options.ProgressEvery = 5 * time.Second
	}
	if options.LockWait <= 0 {
		options.LockWait = time.Minute
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.step == nil {
		options.step = func(string) {}
	}
	options.Limits = options.Limits.withDefaults()
	options.Retry = options.Retry.withDefaults()
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, classifyDisk("making the cache folder "+options.Dir, err)
	}
	c := &Cache{options: options, metrics: options.Metrics}
	c.memory.maxBytes = memoryBytes
	if err := c.removeLeftovers(); err != nil {
		return nil, classifyDisk("reading the cache folder "+options.Dir, err)
	}
	c.measure()
	return c, nil
}

// Key is the name of an entry's folder: the SHA-256 of the source's identity in hex.
func Key(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}

// isKey reports whether a name can be that of an entry.
func isKey(name string) bool {
	return len(name) == 2*sha256.Size && strings.Trim(name, "0123456789abcdef") == ""
}

func (c *Cache) path(parts ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, parts...)...)
}

const (
	tmpPrefix     = ".tmp-"
	lockPrefix    = ".lock-"
	usePrefix     = ".use-"
	contentPrefix = "content-"
	metaName      = "meta.json"
	tarballName   = "crds.tar.gz"
	filesName     = "files"
)

// errLocked ends the wait for a lock that another process holds.
var errLocked = errors.New("locked by another process")

// lockRetry is how often a lock that another process holds is tried again.
const lockRetry = 50 * time.Millisecond

// lock makes the caller the only one, among processes too, that fetches or removes a key. A process that has stopped keeps its
// locks, and so the wait for another process has an end. Callers of this process wait for one another as long as their contexts last. The
// error does not name the file: the key is a digest of a URL whose query may be secret.
func (c *Cache) lock(ctx context.Context, key string) (unlock func(), err error) {
	file := flock.New(c.path(lockPrefix+key), flock.SetPermissions(0o644))
	for {
		_, before := c.fetching.Load(key)
		wait, cancel := context.WithTimeoutCause(ctx, c.options.LockWait, errLocked)
		_, err := file.TryLockContext(wait, lockRetry)
		cause := context.Cause(wait)
		cancel()
		_, after := c.fetching.Load(key)
		switch {
		case err == nil:
			c.fetching.Store(key, file)
			return func() { _ = file.Close(); c.fetching.CompareAndDelete(key, file) }, nil
		case ctx.Err() != nil || !errors.Is(cause, errLocked):
			return nil, classifyDisk("locking the cache entry", err)
		case !before && !after:
			return nil, &Error{Reason: ReasonTimeout, Temporary: true, Err: fmt.Errorf(
				"another process has locked the cache entry for %s: it fetches the same, or hangs: if it hangs, end what has opened a file %s* in %s",
				c.options.LockWait, lockPrefix, c.options.Dir)}
		}
	}
}

// tryLock locks a key if it is not locked yet, for fetching or for evicting.
func (c *Cache) tryLock(prefix, key string) (unlock func(), ok bool) {
	file := flock.New(c.path(prefix+key), flock.SetPermissions(0o644))
	if locked, err := file.TryLock(); err != nil || !locked {
		return nil, false
	}
	return func() { _ = file.Close() }, true
}

// use keeps an entry from being evicted. On a read-only disk no process can evict, and no lock is needed. A process that has stopped
// while it evicts is not waited for longer than LockWait.
func (c *Cache) use(ctx context.Context, key string) (done func()) {
	file := flock.New(c.path(usePrefix+key), flock.SetPermissions(0o644))
	ctx, cancel := context.WithTimeout(ctx, c.options.LockWait)
	defer cancel()
	if _, err := file.TryRLockContext(ctx, lockRetry); err != nil {
		return func() {}
	}
	return func() { _ = file.Close() }
}

// removeLeftovers removes what processes that were killed have left: temporaries, and contents that no meta.json names. What a
// living process works on is locked, and stays.
func (c *Cache) removeLeftovers() error {
	entries, err := os.ReadDir(c.options.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), tmpPrefix); ok {
			key, _, _ := strings.Cut(rest, "-")
			c.locked(key, func() { _ = os.RemoveAll(c.path(e.Name())) })
		} else if isKey(e.Name()) && c.hasSpare(e.Name()) {
			c.locked(e.Name(), func() { c.dropSpare(e.Name()) })
		}
	}
	return nil
}

// locked calls do if the key is not locked yet.
func (c *Cache) locked(key string, do func()) {
	unlock, ok := c.tryLock(lockPrefix, key)
	if !ok {
		return
	}
	defer unlock()
	do()
}

// hasSpare reports whether an entry has contents beyond the one that counts.
func (c *Cache) hasSpare(key string) bool {
	meta, err := c.readMeta(key)
	if err != nil {
		return false // fetched anew, and swept then
	}
	return len(c.unreferencedFiles(key, meta.Content)) > 0
}

// unreferencedFiles lists what is in an entry's folder and does not belong to its content.
func (c *Cache) unreferencedFiles(key, content string) []string {
	entries, err := os.ReadDir(c.path(key))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Name() != metaName && e.Name() != content {
			names = append(names, e.Name())
		}
	}
	return names
}

func (c *Cache) dropSpare(key string) {
	meta, err := c.readMeta(key)
	if err != nil {
		return
	}
	for _, name := range c.unreferencedFiles(key, meta.Content) {
		_ = os.RemoveAll(c.path(key, name))
	}
}

// errMissing is a key that the cache has no entry of.
var errMissing = errors.New("there is no such entry in the cache")

// damagedError is an entry that is not what its meta.json says.
type damagedError struct{ err error }

// Error implements error.
func (e *damagedError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *damagedError) Unwrap() error { return e.err }

func damaged(format string, args ...any) error { return &damagedError{fmt.Errorf(format, args...)} }

// missingOr tells an entry that is not there from one that is damaged and one that may not be read.
func missingOr(err error, what string) error {
	if errors.Is(err, fs.ErrPermission) {
		return classifyDisk("reading "+what, err)
	}
	return damaged("%s: %w", what, err)
}
