package crdtarball

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// meta is the content of meta.json.
type meta struct {
	// Version of the layout: metaVersion.
	Version int `json:"version"`
	// URL of the source, as Display shows it.
	URL string `json:"url"`
	// SHA256 of the tarball in hex, and Size in bytes.
	SHA256 string `json:"digest"`
	Size   int64  `json:"size"`
	Validators
	// Time of the fetch.
	Time time.Time `json:"time"`
	// Content is the name of the folder beside meta.json that counts.
	Content string `json:"content"`
	// Files that the tarball unpacks to.
	Files []unpackedFile `json:"files"`
}

const (
	metaVersion = 1
	// maxMeta bounds meta.json: 10,000 files of long names fit.
	maxMeta = 64 << 20
	// memoryBytes is how many bytes of documents are kept in memory, so that what did not change is not read again.
	memoryBytes = 32 << 20
	// useEvery is how exactly the time of the last use is kept.
	useEvery = time.Minute
)

// bytes is what the entry takes on the disk, but for rounding.
func (m *meta) bytes() int64 {
	total := m.Size
	for _, file := range m.Files {
		total += file.Size
	}
	return total
}

// documents is the size of the files that hold documents, at most.
func (m *meta) documents() int64 { return m.bytes() - m.Size }

// entry is an entry that was read and found good.
type entry struct {
	meta    meta
	objects []*unstructured.Unstructured
	// stamps of meta.json, the tarball and the files when they were read.
	stamps []fileStamp
}

// fileStamp is how a file looks from outside.
type fileStamp struct {
	path string
	info fs.FileInfo
}

func (e *entry) resolved(key string) *Resolved {
	names := make([]string, len(e.objects))
	for i, object := range e.objects {
		names[i] = object.GetName()
	}
	return &Resolved{Key: key, Digest: "sha256:" + e.meta.SHA256, CachedAt: e.meta.Time, Names: names, objects: e.objects}
}

// load returns an entry whose every byte was checked against meta.json, now or by this process while the files looked
// as they look now. The error is errMissing, a *damagedError or an *Error.
func (c *Cache) load(ctx context.Context, key string) (*entry, error) {
	if known := c.memory.get(key); known != nil && known.unchanged() {
		c.touch(key)
		return known, nil
	}
	// Without the entry there is nothing to be locked.
	if _, err := os.Lstat(c.path(key)); errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	done := c.use(ctx, key)
	defer done()
	var err error
	// A newer content may take the place of the one that is being read.
	for range 3 {
		var found *entry
		if found, err = c.read(key); err == nil {
			c.memory.put(key, found)
			c.touch(key)
			return found, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	c.memory.drop(key)
	return nil, err
}

// touch notes that an entry was used. It does not matter if that cannot be noted.
func (c *Cache) touch(key string) {
	now := c.options.Clock.Now()
	if info, err := os.Stat(c.path(key)); err == nil && now.Sub(info.ModTime()) > useEvery {
		_ = os.Chtimes(c.path(key), now, now)
	}
}

// readMeta reads meta.json and checks that it makes sense.
func (c *Cache) readMeta(key string) (*meta, error) {
	file, err := os.Open(c.path(key, metaName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(c.path(key)); errors.Is(err, fs.ErrNotExist) {
			return nil, errMissing
		}
	}
	if err != nil {
		return nil, missingOr(err, metaName)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxMeta))
	if err != nil {
		return nil, missingOr(err, metaName)
	}
	var m meta
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, damaged("%s: %w", metaName, err)
	}
	if m.Version != metaVersion {
		return nil, damaged("%s has version %d, not %d", metaName, m.Version, metaVersion)
	}
	if !strings.HasPrefix(m.Content, contentPrefix) || strings.ContainsAny(m.Content, `/\`) {
		return nil, damaged("%s names the content %s", metaName, quoteShort(m.Content))
	}
	return &m, nil
}

// read reads and checks a whole entry. The error is fs.ErrNotExist if a newer content has taken its place meanwhile.
func (c *Cache) read(key string) (*entry, error) {
	m, err := c.readMeta(key)
	if err != nil {
		return nil, err
	}
	e, err := c.readContent(key, m)
	if err != nil && c.isReplaced(key, m) {
		// The files of the old content are deleted one after another: what is left of them looks damaged.
		return nil, fmt.Errorf("%s was replaced: %w", m.Content, fs.ErrNotExist)
	}
	return e, err
}

// isReplaced reports whether an entry has another content than the one that m describes, or is deleted.
func (c *Cache) isReplaced(key string, m *meta) bool {
	now, err := c.readMeta(key)
	return errors.Is(err, errMissing) || err == nil && now.Content != m.Content
}

// readContent reads and checks the content that m describes.
func (c *Cache) readContent(key string, m *meta) (*entry, error) {
	e := &entry{meta: *m}
	if err := e.stamp(c.path(key, metaName)); err != nil {
		return nil, missingOr(err, metaName)
	}
	root, err := os.OpenRoot(c.path(key, m.Content))
	if err != nil {
		return nil, missingOr(err, m.Content)
	}
	defer func() { _ = root.Close() }()
	if err := e.check(root, c.path(key, m.Content), tarballName, unpackedFile{Size: m.Size, SHA256: m.SHA256}); err != nil {
		return nil, err
	}
	files, err := root.OpenRoot(filesName)
	if err != nil {
		return nil, missingOr(err, filesName)
	}
	defer func() { _ = files.Close() }()
	for _, file := range m.Files {
		if err := e.check(files, c.path(key, m.Content, filesName), file.Name, file); err != nil {
			return nil, err
		}
	}
	if err := nothingElse(files.FS(), m.Files); err != nil {
		return nil, err
	}
	if err := e.stampFolders(c.path(key, m.Content)); err != nil {
		return nil, missingOr(err, filesName)
	}
	e.objects, err = Documents(files.FS(), c.options.Limits)
	if err != nil {
		return nil, damaged("%w", err)
	}
	return e, nil
}

// check compares a file with what is known of it, and stamps it.
func (e *entry) check(root *os.Root, folder, name string, want unpackedFile) error {
	file, err := root.Open(name)
	if err != nil {
		return missingOr(err, name)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(file, want.Size+1))
	if err != nil {
		return missingOr(err, name)
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); n != want.Size || sum != want.SHA256 {
		return damaged("%s is not what %s says", name, metaName)
	}
	info, err := file.Stat()
	if err != nil {
		return missingOr(err, name)
	}
	e.stamps = append(e.stamps, fileStamp{path.Join(folder, name), info})
	return nil
}

// nothingElse refuses files that were not in the tarball.
func nothingElse(tree fs.FS, files []unpackedFile) error {
	names, err := list(tree)
	if err != nil {
		return missingOr(err, filesName)
	}
	if len(names) == len(files) {
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(files, func(f unpackedFile) bool { return f.Name == name }) {
			return damaged("%s is there, and was not in the tarball", name)
		}
	}
	return damaged("%d files are there, not %d", len(names), len(files))
}

func (e *entry) stamp(name string) error {
	info, err := os.Lstat(name)
	if err == nil {
		e.stamps = append(e.stamps, fileStamp{name, info})
	}
	return err
}

// stampFolders stamps the folders of the content, which change when a file comes or goes.
func (e *entry) stampFolders(content string) error {
	seen := map[string]bool{content: true}
	folders := []string{content}
	for _, file := range e.meta.Files {
		for folder := path.Dir(path.Join(content, filesName, file.Name)); !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			folders = append(folders, folder)
		}
	}
	for _, folder := range folders {
		if err := e.stamp(folder); err != nil {
			return err
		}
	}
	return nil
}

// unchanged reports whether all files look as they did when they were read.
func (e *entry) unchanged() bool {
	for _, s := range e.stamps {
		now, err := os.Lstat(s.path)
		if err != nil || now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) || now.Mode() != s.info.Mode() ||
			!os.SameFile(now, s.info) {
			return false
		}
	}
	return true
}

// memory keeps entries that were used lately, up to a number of bytes of documents.
type memory struct {
	mu       sync.Mutex
	maxBytes int64
	size     int64
	// kept with the one used last at the end.
	kept []cachedEntry
}

type cachedEntry struct {
	key   string
	entry *entry
}

func (m *memory) get(key string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, k := range m.kept {
		if k.key == key {
			m.kept = append(slices.Delete(m.kept, i, i+1), k)
			return k.entry
		}
	}
	return nil
}

func (m *memory) put(key string, e *entry) {
	m.drop(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	size := e.meta.documents()
	if size > m.maxBytes {
		return
	}
	m.kept, m.size = append(m.kept, cachedEntry{key, e}), m.size+size
	for m.size > m.maxBytes {
		m.size -= m.kept[0].entry.meta.documents()
		m.kept = slices.Delete(m.kept, 0, 1)
	}
}

func (m *memory) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(k cachedEntry) bool {
		if k.key == key {
			m.size -= k.entry.meta.documents()
		}
		return k.key == key
	})
}

// writeMeta writes meta.json into a folder, and brings it to the disk.
func writeMeta(folder string, m meta) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", metaName, err)
	}
	file, err := os.OpenFile(path.Join(folder, metaName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}
