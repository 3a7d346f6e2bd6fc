package archive

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"kudo.dev/kudo/pkg/text"
)

// tree is a file system in memory. It does not change once Read has returned it.
type tree struct {
	nodes map[string]*node
	// folded maps a path in lower case to the path.
	folded map[string]string
}

// node is a file, or a folder with its entries sorted by name. It describes itself, as fs.FileInfo and fs.DirEntry.
type node struct {
	name    string
	folder  bool
	data    []byte
	entries []fs.DirEntry
}

func newTree() *tree {
	return &tree{nodes: map[string]*node{".": {name: ".", folder: true}}, folded: map[string]string{".": "."}}
}

// addFolder adds a folder with those that it is in; one that is there already is fine.
func (t *tree) addFolder(name string) error {
	if n, ok := t.nodes[name]; ok {
		if !n.folder {
			return fmt.Errorf("is a folder, but %s is a file already", text.Quote(name, 100))
		}
		return nil
	}
	if err := t.unique(name); err != nil {
		return err
	}
	return t.add(name, &node{name: path.Base(name), folder: true})
}

func (t *tree) addFile(name string, data []byte) error {
	if _, ok := t.nodes[name]; ok {
		return fmt.Errorf("the path is used twice")
	}
	if err := t.unique(name); err != nil {
		return err
	}
	return t.add(name, &node{name: path.Base(name), data: data})
}

// unique refuses paths that differ in letter case only: on some machines they are one file.
func (t *tree) unique(name string) error {
	if other, ok := t.folded[strings.ToLower(name)]; ok {
		return fmt.Errorf("the path differs from %s only in letter case", text.Quote(other, 100))
	}
	return nil
}

func (t *tree) add(name string, n *node) error {
	parent := path.Dir(name)
	if above, ok := t.nodes[parent]; ok && !above.folder {
		return fmt.Errorf("is below %s, but %[1]s is a file already", text.Quote(parent, 100))
	}
	if err := t.addFolder(parent); err != nil {
		return err
	}
	t.nodes[name] = n
	t.folded[strings.ToLower(name)] = name
	folder := t.nodes[parent]
	at, _ := slices.BinarySearchFunc(folder.entries, n.name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	folder.entries = slices.Insert(folder.entries, at, fs.DirEntry(n))
	return nil
}

// Open opens a file or folder.
func (t *tree) Open(name string) (fs.File, error) {
	n, err := t.node("open", name)
	if err != nil {
		return nil, err
	}
	if n.folder {
		return &openFolder{node: n}, nil
	}
	return &openFile{node: n, Reader: bytes.NewReader(n.data)}, nil
}

// ReadFile returns a copy of a file.
func (t *tree) ReadFile(name string) ([]byte, error) {
	n, err := t.node("read", name)
	if err != nil {
		return nil, err
	}
	if n.folder {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return bytes.Clone(n.data), nil
}

// ReadDir lists a folder, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.node("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.folder {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	return slices.Clone(n.entries), nil
}

// Stat describes a file or folder.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.node("stat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (t *tree) node(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, ok := t.nodes[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

func (n *node) Name() string               { return n.name }
func (n *node) Size() int64                { return int64(len(n.data)) }
func (n *node) ModTime() time.Time         { return time.Time{} }
func (n *node) IsDir() bool                { return n.folder }
func (n *node) Sys() any                   { return nil }
func (n *node) Type() fs.FileMode          { return n.Mode().Type() }
func (n *node) Info() (fs.FileInfo, error) { return n, nil }
func (n *node) Mode() fs.FileMode {
	if n.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// openFile reads a file, from any place of it.
type openFile struct {
	*bytes.Reader
	node *node
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

// openFolder lists a folder piece by piece.
type openFolder struct {
	node *node
	next int
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFolder) Close() error               { return nil }
func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.node.name, Err: fs.ErrInvalid}
}

// ReadDir returns the next count entries, or all that are left.
func (f *openFolder) ReadDir(count int) ([]fs.DirEntry, error) {
	left := f.node.entries[f.next:]
	if count > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if count > 0 && count < len(left) {
		left = left[:count]
	}
	f.next += len(left)
	return slices.Clone(left), nil
}
