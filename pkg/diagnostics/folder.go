package diagnostics

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// errFull ends what is written to a folder, not the collection.
var errFull = errors.New("left out: the collection is as large as it may be")

// Folder takes the files of a collection.
type Folder struct {
	dir   string
	limit int64

	mu   sync.Mutex
	size int64
}

// NewFolder returns a folder at a path that exists and is empty, which takes limit bytes at most.
func NewFolder(dir string, limit int64) *Folder { return &Folder{dir: dir, limit: limit} }

// Write makes a file, whose path has slashes, and which only the user can read. One that is there is left as it is.
func (f *Folder) Write(name string, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size+int64(len(content)) > f.limit {
		return errFull
	}
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f.size += int64(len(content))
	return nil
}

// maxName bounds what safe returns, in bytes: with an extension, file systems take 255.
const maxName = 200

// safe returns the name of an object as one of a file, another one for each name: names of roles may have colons. A long one ends with
// a digest in place of its rest.
func safe(name string) string {
	var out strings.Builder
	dots := strings.Trim(name, ".") == ""
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && !dots:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	if out.Len() > maxName {
		sum := sha256.Sum256([]byte(name))
		return out.String()[:maxName-33] + "-" + hex.EncodeToString(sum[:16])
	}
	return out.String()
}
