package crdtarball

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// download gets a tarball from its source, trying again as Retry says, and publishes it. The key is locked. If a good
// entry is given, the source is asked whether there is a newer one.
func (c *Cache) download(ctx context.Context, key string, source Source, want wanted, good *entry, report func(Progress)) (*entry, error) {
	var known Validators
	if good != nil {
		known = good.meta.Validators
	}
	var last error
	return retry(ctx, c.options.Retry, c.options.Clock, c.options.Random, func(attempt int) (*entry, error) {
		c.metrics.fetched()
		limit := c.options.Retry.Attempt
		ctx, cancel := context.WithTimeoutCause(ctx, limit, &Error{Reason: ReasonTimeout, Temporary: true,
			Err: fmt.Errorf("the download took longer than %s", limit)})
		defer cancel()
		fill := func(to Target) (Fetched, error) { return source.Fetch(ctx, to, known) }
		progress := func(bytes, total int64) {
			report(Progress{Attempt: attempt, Bytes: bytes, Total: total, Last: last})
		}
		found, err := c.publish(ctx, key, source.Identity(), want, fill, progress)
		if errors.Is(err, errNotModified) {
			return good, nil
		}
		if err != nil {
			last = wrapSource(source.Identity(), err)
		}
		return found, err
	})
}

// errNotModified is the outcome of a fetch that found nothing newer.
var errNotModified = errors.New("not modified")

// publish makes an entry of what fill writes. Until it is complete and checked nothing of it can be seen; if anything
// fails, nothing of it is left. The key is locked.
func (c *Cache) publish(ctx context.Context, key, identity string, want wanted,
	fill func(Target) (Fetched, error), progress func(bytes, total int64)) (*entry, error) {
	if err := os.MkdirAll(c.options.Dir, 0o755); err != nil {
		return nil, classifyDisk("making the cache folder", err)
	}
	temporary, err := os.MkdirTemp(c.options.Dir, tmpPrefix+key+"-*")
	if err != nil {
		return nil, classifyDisk("writing into the cache folder", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	c.options.step("temporary made")
	m, err := c.stage(temporary, identity, want, fill, progress)
	if err != nil {
		return nil, err
	}
	if err := c.install(key, temporary, m); err != nil {
		c.dropSpare(key)
		return nil, classifyDisk("moving the tarball into the cache", err)
	}
	c.options.step("done")
	found, err := c.load(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the written entry: %w", err)
	}
	c.evict(key)
	return found, nil
}

// stage fetches, verifies and unpacks a tarball in a folder of its own, and brings all of it to the disk.
func (c *Cache) stage(temporary, identity string, want wanted,
	fill func(Target) (Fetched, error), progress func(bytes, total int64)) (meta, error) {
	suffix := filepath.Base(temporary)[strings.LastIndex(filepath.Base(temporary), "-")+1:]
	m := meta{Version: metaVersion, URL: Display(identity), Content: contentPrefix + suffix}
	content := filepath.Join(temporary, m.Content)
	// os.MkdirTemp makes folders that no other user can read, and the temporary becomes the entry.
	if err := errors.Join(os.Chmod(temporary, 0o755), os.MkdirAll(filepath.Join(content, filesName), 0o755)); err != nil {
		return m, classifyDisk("writing into the cache folder", err)
	}
	fetched, err := c.receive(filepath.Join(content, tarballName), &m, fill, progress)
	if err != nil {
		return m, err
	}
	if fetched.NotModified {
		return m, errNotModified
	}
	m.Validators = fetched.Validators
	c.options.step("downloaded")
	if err := want.check(m.SHA256); err != nil {
		return m, &Error{Reason: ReasonPin, Err: err}
	}
	if m.Files, err = c.unpack(content); err != nil {
		return m, err
	}
	c.options.step("unpacked")
	m.Time = c.options.Clock.Now().UTC().Truncate(time.Second)
	err = errors.Join(syncFolder(content), writeMeta(temporary, m), syncFolder(temporary))
	if err != nil {
		return m, classifyDisk("writing into the cache folder", err)
	}
	c.options.step("staged")
	return m, nil
}

// receive lets fill write the tarball, and brings it to the disk.
func (c *Cache) receive(name string, m *meta,
	fill func(Target) (Fetched, error), progress func(bytes, total int64)) (fetched Fetched, err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return Fetched{}, classifyDisk("writing into the cache folder", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = classifyDisk("writing into the cache folder", closed)
		}
	}()
	to := &receiver{cache: c, file: file, hash: sha256.New(), progress: progress, expected: -1}
	to.report()
	fetched, err = fill(to)
	c.metrics.received(to.n)
	if err != nil || fetched.NotModified {
		return fetched, err
	}
	if to.expected >= 0 && to.n != to.expected {
		return fetched, &Error{Reason: ReasonConnection, Temporary: true, Err: fmt.Errorf("received %d bytes instead of %d", to.n, to.expected)}
	}
	c.options.step("received")
	if err := file.Sync(); err != nil {
		return fetched, classifyDisk("writing into the cache folder", err)
	}
	m.SHA256, m.Size = hex.EncodeToString(to.hash.Sum(nil)), to.n
	return fetched, nil
}

// unpack unpacks the tarball beside itself, and checks the documents.
func (c *Cache) unpack(content string) ([]unpackedFile, error) {
	tarball, err := os.Open(filepath.Join(content, tarballName))
	if err != nil {
		return nil, classifyDisk("reading the tarball", err)
	}
	defer func() { _ = tarball.Close() }()
	root, err := os.OpenRoot(filepath.Join(content, filesName))
	if err != nil {
		return nil, classifyDisk("unpacking into the cache", err)
	}
	defer func() { _ = root.Close() }()
	files, err := extract(tarball, root, c.options.Limits)
	if err != nil {
		return nil, err
	}
	_, err = Documents(root.FS(), c.options.Limits)
	return files, err
}

// install makes a staged folder the entry, or its content the entry's.
//
//	no entry yet:  temporary -> <key>
//	an entry:      temporary/content-n -> <key>/content-n, then temporary/meta.json -> <key>/meta.json
func (c *Cache) install(key, temporary string, m meta) error {
	entry := c.path(key)
	info, err := os.Lstat(entry)
	if err == nil && !info.IsDir() {
		if err := os.Remove(entry); err != nil {
			return err
		}
	}
	if err != nil || !info.IsDir() {
		if err := os.Rename(temporary, entry); err != nil {
			return err
		}
		c.options.step("renamed")
		return syncFolder(c.options.Dir)
	}
	if err := os.Rename(filepath.Join(temporary, m.Content), c.path(key, m.Content)); err != nil {
		return err
	}
	c.options.step("content moved")
	if err := syncFolder(entry); err != nil {
		return err
	}
	// Something that is no file would stand in the way.
	if info, err := os.Lstat(c.path(key, metaName)); err == nil && info.IsDir() {
		if err := os.RemoveAll(c.path(key, metaName)); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(temporary, metaName), c.path(key, metaName)); err != nil {
		return err
	}
	c.options.step("renamed")
	if err := syncFolder(entry); err != nil {
		return err
	}
	c.dropSpare(key)
	return nil
}

func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// receiver is the Target of a fetch: it hashes, counts and bounds what is written to a file.
type receiver struct {
	cache       *Cache
	file        io.Writer
	hash        hash.Hash
	n, expected int64
	progress    func(bytes, total int64)
	reported    time.Time
}

// Expect implements Target.
func (r *receiver) Expect(size int64) error {
	if most := r.cache.options.Limits.Compressed; size > most {
		return fail(ReasonArchive, "the tarball has %d bytes, more than the %d allowed", size, most)
	}
	r.expected = size
	return nil
}

// Write implements io.Writer.
func (r *receiver) Write(p []byte) (int, error) {
	if most := r.cache.options.Limits.Compressed; r.n+int64(len(p)) > most {
		return 0, fail(ReasonArchive, "the tarball has more than the %d bytes allowed", most)
	}
	n, err := r.file.Write(p)
	r.hash.Write(p[:n])
	r.n += int64(n)
	if err != nil {
		return n, classifyDisk("writing into the cache folder", err)
	}
	if r.cache.options.Clock.Since(r.reported) >= r.cache.options.ProgressEvery {
		r.report()
	}
	return n, nil
}

func (r *receiver) report() {
	r.reported = r.cache.options.Clock.Now()
	if r.progress != nil {
		r.progress(r.n, max(0, r.expected))
	}
}
