package crdtarball

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Entry describes an entry of a cache.
type Entry struct {
	// Key is the name of its folder.
	Key string `json:"key"`
	// URL of the source, as Display shows it.
	URL string `json:"url"`
	// Digest of the tarball: `sha256:` and 64 hexadecimal digits.
	Digest string `json:"digest"`
	// Bytes on the disk: the tarball and what it unpacks to.
	Bytes int64 `json:"bytes"`
	// CachedAt is when it was fetched, UsedAt when it was used last, to a minute.
	CachedAt time.Time `json:"cachedAt"`
	UsedAt   time.Time `json:"usedAt"`
	// Problem says why the entry cannot be used; empty if nothing is known to be wrong.
	Problem string `json:"problem,omitempty"`
	// CRDs are the names in it; only Verify fills them in.
	CRDs []string `json:"crds,omitempty"`
}

// List describes the entries of the cache, the one used last first. It reads meta.json only. Errors are *Error.
func (c *Cache) List() ([]Entry, error) {
	folder, err := os.ReadDir(c.options.Dir)
	if err != nil {
		return nil, classifyDisk("reading the cache folder", err)
	}
	entries := []Entry{}
	for _, e := range folder {
		if isKey(e.Name()) {
			entries = append(entries, c.describe(e.Name()))
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.UsedAt.Compare(a.UsedAt) })
	return entries, nil
}

func (c *Cache) describe(key string) Entry {
	e := Entry{Key: key}
	if info, err := os.Stat(c.path(key)); err == nil {
		e.UsedAt = info.ModTime().UTC().Truncate(time.Second)
	}
	m, err := c.readMeta(key)
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	e.URL, e.Digest, e.Bytes, e.CachedAt = m.URL, "sha256:"+m.SHA256, m.bytes(), m.Time
	return e
}

// Verify reads all entries and checks each byte and document. The Problem of an entry says what is wrong with it.
// Errors are *Error.
func (c *Cache) Verify() ([]Entry, error) {
	entries, err := c.List()
	if err != nil {
		return nil, err
	}
	for i := range entries {
		found, err := c.read(entries[i].Key)
		if err != nil {
			entries[i].Problem = err.Error()
			continue
		}
		entries[i].CRDs = found.resolved(entries[i].Key).Names
	}
	return entries, nil
}

// Import puts a tarball into the cache as if it had come from a source of that identity: the URL of httpSource,
// `oci://` and the reference of ociSource, or `configmap://<namespace>/<name>[:<key>],…`. A pin is the SHA-256 in hex
// that it must have, empty for none. An entry of that identity is replaced. Errors are *Error.
func (c *Cache) Import(ctx context.Context, identity, pin string, tarball io.Reader) (*Resolved, error) {
	key := Key(identity)
	if err := checkPin(pin); err != nil {
		return nil, err
	}
	unlock, err := c.lock(ctx, key)
	if err != nil {
		return nil, wrapSource(identity, err)
	}
	defer unlock()
	fill := func(to Target) (Fetched, error) {
		if _, err := io.Copy(to, tarball); err != nil {
			var known *Error
			if errors.As(err, &known) {
				return Fetched{}, known
			}
			return Fetched{}, fail(ReasonConnection, "reading the tarball: %w", err)
		}
		return Fetched{}, nil // its validators are known to the source only
	}
	found, err := c.publish(ctx, key, identity, wanted{digest: pin}, fill, nil)
	if err != nil {
		return nil, wrapSource(identity, err)
	}
	resolved := found.resolved(key)
	resolved.URL, resolved.Fetched = Display(identity), true
	return resolved, nil
}

// Find returns the key of an entry that is named by its key, by the beginning of its key (8 digits or more), or by the
// identity of its source. Errors are *Error.
func (c *Cache) Find(name string) (string, error) {
	if key := Key(name); c.has(key) {
		return key, nil
	}
	if isKey(name) && c.has(name) {
		return name, nil
	}
	const least = 8
	entries, err := c.List()
	if err != nil {
		return "", err
	}
	var matching []string
	for _, e := range entries {
		if len(name) >= least && strings.HasPrefix(e.Key, name) {
			matching = append(matching, e.Key)
		}
	}
	switch len(matching) {
	case 1:
		return matching[0], nil
	case 0:
		return "", fail(ReasonNotCached, "the cache has no entry %s: name the URL, or the key or the first %d digits of it",
			quoteShort(Display(name)), least)
	}
	return "", fail(ReasonNotCached, "the cache has %d entries whose key begins with %s", len(matching), name)
}

func (c *Cache) has(key string) bool {
	_, err := os.Lstat(c.path(key))
	return err == nil
}

// Export writes the tarball of an entry, as it came, after checking the entry. Errors are *Error.
func (c *Cache) Export(ctx context.Context, key string, to io.Writer) (*Resolved, error) {
	done := c.use(ctx, key)
	defer done()
	found, err := c.read(key)
	if err != nil {
		return nil, fail(ReasonNotCached, "the cache %s", describeMissing(err))
	}
	tarball, err := os.Open(c.path(key, found.meta.Content, tarballName))
	if err != nil {
		return nil, classifyDisk("reading the tarball", err)
	}
	defer func() { _ = tarball.Close() }()
	if _, err := io.Copy(to, tarball); err != nil {
		return nil, classifyDisk("writing the tarball", err)
	}
	resolved := found.resolved(key)
	resolved.URL = found.meta.URL
	return resolved, nil
}

// Remove takes an entry out of the cache, unless it is in use. Errors are *Error.
func (c *Cache) Remove(key string) error {
	unlock, ok := c.tryLock(lockPrefix, key)
	if !ok {
		return c.busy(key)
	}
	defer unlock()
	done, ok := c.tryLock(usePrefix, key)
	if !ok {
		return c.busy(key)
	}
	defer done()
	// Under another name first: should the process end in between, there is no half entry.
	aside, err := os.MkdirTemp(c.options.Dir, tmpPrefix+key+"-*")
	if err != nil {
		return classifyDisk("removing the entry "+key, err)
	}
	c.memory.drop(key)
	if err := os.Rename(c.path(key), aside+"/"+key); err != nil {
		return classifyDisk("removing the entry "+key, errors.Join(err, os.Remove(aside)))
	}
	c.options.step("set aside")
	if err := os.RemoveAll(aside); err != nil {
		return classifyDisk("removing the entry "+key, err)
	}
	return nil
}

func (c *Cache) busy(key string) error {
	if err := c.writable(key); err != nil {
		return classifyDisk("removing the entry "+key, err)
	}
	return &Error{Reason: ReasonDisk, Temporary: true, Err: fmt.Errorf("the entry %s is in use", key)}
}

// writable tells why nothing can be written into the cache folder; it returns nil if it can.
func (c *Cache) writable(key string) error {
	probe, err := os.CreateTemp(c.options.Dir, tmpPrefix+key+"-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// evict removes the entries used least recently until the cache is within its size. Those in use and the one just
// written stay.
func (c *Cache) evict(keep string) {
	entries, err := c.List()
	if err != nil {
		return
	}
	total := int64(0)
	for _, e := range entries {
		total += e.Bytes
	}
	for _, e := range slices.Backward(entries) {
		if total <= c.options.MaxBytes {
			break
		}
		if e.Key == keep || c.Remove(e.Key) != nil {
			continue
		}
		total -= e.Bytes
		c.metrics.evicted()
	}
	c.measure()
}

// measure tells the metrics how large the cache is.
func (c *Cache) measure() {
	entries, err := c.List()
	if err != nil {
		return
	}
	total := int64(0)
	for _, e := range entries {
		total += e.Bytes
	}
	c.metrics.sized(len(entries), total)
}
