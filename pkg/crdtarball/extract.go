package crdtarball

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"

	"kudo.dev/kudo/operators/archive"
)

// Limits bound a tarball. A field that is zero means that of DefaultLimits.
type Limits struct {
	// Compressed is the size of the tarball in bytes, Unpacked that of all its files, File that of one.
	Compressed, Unpacked, File int64
	// Ratio is how many times as large as the tarball its content may be, once that is more than 1 MiB.
	Ratio int64
	// Entries is how many entries the tarball may have, folders included.
	Entries int
	// Depth is the number of parts of a path, Name the length of each in bytes.
	Depth, Name int
	// Documents is the size in bytes of all files with documents, Nodes how many values they hold in all: both bound
	// the memory that the documents take.
	Documents int64
	Nodes     int
}

// DefaultLimits are ample: the largest collections of CustomResourceDefinitions have some 10 MiB.
func DefaultLimits() Limits {
	return Limits{Compressed: 32 << 20, Unpacked: 256 << 20, File: 16 << 20, Ratio: 200, Entries: 10_000, Depth: 16, Name: 255,
		Documents: 64 << 20, Nodes: 2_000_000}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, field := range []struct{ value, standard *int64 }{{&l.Compressed, &d.Compressed}, {&l.Unpacked, &d.Unpacked},
		{&l.File, &d.File}, {&l.Ratio, &d.Ratio}, {&l.Documents, &d.Documents}} {
		if *field.value == 0 {
			*field.value = *field.standard
		}
	}
	for _, field := range []struct{ value, standard *int }{{&l.Entries, &d.Entries}, {&l.Depth, &d.Depth}, {&l.Name, &d.Name},
		{&l.Nodes, &d.Nodes}} {
		if *field.value == 0 {
			*field.value = *field.standard
		}
	}
	return l
}

func (l Limits) archive() archive.Limits {
	return archive.Limits{Compressed: l.Compressed, Unpacked: l.Unpacked, File: l.File, Ratio: l.Ratio, Entries: l.Entries,
		Depth: l.Depth, Part: l.Name, Name: l.Depth * (l.Name + 1)}
}

// unpackedFile is a file that was unpacked, as meta.json keeps it.
type unpackedFile struct {
	// Name is the path in the tarball.
	Name string `json:"name"`
	// Size in bytes.
	Size int64 `json:"size"`
	// SHA256 of the content in hex.
	SHA256 string `json:"sha256"`
}

// extract unpacks a tarball below root, which is empty, and tells what it wrote. Everything written is on the disk when
// it returns. On an error root holds a part of the tarball. Errors are *Error and name the entry.
func extract(tarball io.Reader, root *os.Root, limits Limits) ([]unpackedFile, error) {
	limits = limits.withDefaults()
	head := &headReader{r: tarball}
	sink := &rootSink{root: root}
	err := archive.Extract(head, limits.archive(), sink)
	if err == nil {
		err = sink.sync()
	}
	switch {
	case err == nil:
		return sink.files, nil
	case sink.failed != nil:
		return nil, classifyDisk("unpacking into the cache", sink.failed)
	}
	if what := head.what(); what != "" {
		return nil, fail(ReasonArchive, "the download is no gzipped tar but %s", what)
	}
	return nil, &Error{Reason: ReasonArchive, Err: err}
}

// rootSink writes into a folder that it cannot leave.
type rootSink struct {
	root    *os.Root
	files   []unpackedFile
	folders []string
	// failed is the error of the file system, if that was it.
	failed error
}

// Folder implements archive.Sink.
func (s *rootSink) Folder(name string) error {
	s.folders = append(s.folders, name)
	return s.disk(s.root.MkdirAll(name, 0o755))
}

// File implements archive.Sink.
func (s *rootSink) File(name string, content io.Reader) error {
	if parent := path.Dir(name); parent != "." {
		if err := s.Folder(parent); err != nil {
			return err
		}
	}
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return s.disk(err)
	}
	writer := &diskWriter{file: file, hash: sha256.New()}
	n, err := io.Copy(writer, content)
	if err == nil {
		writer.failed = file.Sync()
	}
	if closed := file.Close(); writer.failed == nil && err == nil {
		writer.failed = closed
	}
	if writer.failed != nil {
		return s.disk(writer.failed)
	}
	s.files = append(s.files, unpackedFile{Name: name, Size: n, SHA256: hex.EncodeToString(writer.hash.Sum(nil))})
	return err
}

func (s *rootSink) disk(err error) error {
	if err != nil {
		s.failed = err
	}
	return err
}

// sync brings the names of the files to the disk; their content is there already.
func (s *rootSink) sync() error {
	seen := map[string]bool{}
	for _, folder := range append(s.folders, ".") {
		for ; !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			if err := syncIn(s.root, folder); err != nil {
				return s.disk(err)
			}
		}
	}
	return nil
}

func syncIn(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// diskWriter hashes what it writes, and keeps its own errors apart from those of what is read.
type diskWriter struct {
	file   io.Writer
	hash   hash.Hash
	failed error
}

// Write implements io.Writer.
func (d *diskWriter) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.hash.Write(p[:n])
	if err != nil {
		d.failed = err
	}
	return n, err
}

// headReader keeps the first bytes, to say what something is that is no gzip.
type headReader struct {
	r    io.Reader
	head []byte
}

// Read implements io.Reader.
func (h *headReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if missing := 512 - len(h.head); missing > 0 {
		h.head = append(h.head, p[:min(n, missing)]...)
	}
	return n, err
}

// what names something that is not gzip; empty if it is.
func (h *headReader) what() string {
	if len(h.head) >= 2 && h.head[0] == 0x1f && h.head[1] == 0x8b {
		return ""
	}
	if len(h.head) == 0 {
		return "nothing (0 bytes)"
	}
	kind, _, _ := strings.Cut(http.DetectContentType(h.head), ";")
	switch kind {
	case "text/html":
		return "an HTML page, as servers send it for an error or a login"
	case "application/octet-stream":
		return "unknown bytes"
	}
	return kind
}

// list returns the paths of all regular files below a tree.
func list(tree fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}
