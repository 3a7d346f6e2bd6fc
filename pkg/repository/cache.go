package repository

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/atomicfile"
)

// cache keeps what was fetched. The file of an index is
//
//	one line of JSON: cached
//	a line for each package, sorted by name: name, offset, length
//	the text of the index
//
// so that a lookup reads the list, and of the text the part that it needs. An archive is kept by its digest.
type cache struct{ dir string }

// cached describes the file of an index.
type cached struct {
	validators
	URL string `json:"url"`
	// List and Text are the lengths of the two parts in bytes, Packages is how many there are.
	List     int64 `json:"list"`
	Text     int64 `json:"text"`
	Packages int   `json:"packages"`
}

// maxArchives is how many bytes of archives are kept; the least recently used go first.
const maxArchives = 256 << 20

// indexFile is named by all that decides on what a server answers.
func (c cache) indexFile(r Repository) string {
	key := digestOf([]byte(r.URL + "\x00" + r.Username + "\x00" + string(r.Password) + "\x00" + string(r.Token)))
	return filepath.Join(c.dir, "index", r.Name+"-"+key[:16])
}

// loadIndex opens the index that is kept of a repository. Whatever is wrong with it means that there is none.
func (c cache) loadIndex(r Repository) (*Index, validators, bool) {
	if !ownFile(c.indexFile(r)) {
		return nil, validators{}, false
	}
	file, err := os.Open(c.indexFile(r))
	if err != nil {
		return nil, validators{}, false
	}
	x, head, err := openIndex(file)
	if err != nil || head.URL != r.URL {
		_ = file.Close()
		return nil, validators{}, false
	}
	return x, head.validators, true
}

func openIndex(file *os.File) (*Index, cached, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, cached{}, err
	}
	reader := bufio.NewReaderSize(file, 64<<10)
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return nil, cached{}, err
	}
	var head cached
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, cached{}, err
	}
	start := int64(len(line)) + head.List
	if head.List < 0 || head.Text < 0 || head.Packages < 0 || head.List > MaxIndex || head.Text > MaxIndex || start+head.Text != info.Size() ||
		int64(head.Packages) > head.List {
		return nil, cached{}, errors.New("lengths do not add up")
	}
	list := make([]byte, head.List)
	if _, err := io.ReadFull(reader, list); err != nil {
		return nil, cached{}, err
	}
	x := &Index{sections: make([]section, 0, head.Packages), text: io.NewSectionReader(file, start, head.Text), close: file.Close}
	for line := range strings.Lines(string(list)) {
		s, err := parseSection(strings.TrimSuffix(line, "\n"), head.Text)
		if err != nil {
			return nil, cached{}, err
		}
		x.sections = append(x.sections, s)
	}
	return x, head, nil
}

func parseSection(line string, size int64) (section, error) {
	name, rest, _ := strings.Cut(line, " ")
	a, b, _ := strings.Cut(rest, " ")
	offset, errA := strconv.Atoi(a)
	length, errB := strconv.Atoi(b)
	if err := errors.Join(errA, errB); err != nil {
		return section{}, err
	}
	if offset < 0 || length < 0 || int64(length) > size || int64(offset) > size-int64(length) { // their sum may overflow
		return section{}, errors.New("a part lies outside of the text")
	}
	return section{name, offset, length}, nil
}

// storeIndex keeps an index that was just parsed.
func (c cache) storeIndex(r Repository, x *Index, fresh validators) error {
	text, ok := x.text.(*bytes.Reader)
	if !ok {
		return errors.New("only an index in memory can be kept")
	}
	var list bytes.Buffer
	for _, s := range x.sections {
		fmt.Fprintf(&list, "%s %d %d\n", s.name, s.offset, s.length)
	}
	head, err := json.Marshal(cached{fresh, r.URL, int64(list.Len()), text.Size(), len(x.sections)})
	if err != nil {
		return err
	}
	body := make([]byte, text.Size())
	if _, err := text.ReadAt(body, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	target := c.indexFile(r)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return atomicfile.Write(target, slices.Concat(head, []byte("\n"), list.Bytes(), body), 0o600)
}

// forget removes all indexes of a repository.
func (c cache) forget(name string) error {
	files, err := filepath.Glob(filepath.Join(c.dir, "index", name+"-*"))
	for _, file := range files {
		// Another repository's name may begin with this one and a dash.
		if rest := strings.TrimPrefix(filepath.Base(file), name+"-"); len(rest) == 16 {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

func (c cache) archiveFile(digest string) string {
	return filepath.Join(c.dir, "archives", digest+".tgz")
}

// loadArchive returns an archive by its digest, if it is kept and whole.
func (c cache) loadArchive(digest string) ([]byte, bool) {
	name := c.archiveFile(digest)
	if !ownFile(name) {
		return nil, false
	}
	data, err := readBounded(name, archive.DefaultLimits().Compressed)
	return data, err == nil && digestOf(data) == digest
}

// storeArchive keeps an archive whose digest was checked.
func (c cache) storeArchive(digest string, data []byte) error {
	target := c.archiveFile(digest)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if err := atomicfile.Write(target, data, 0o600); err != nil {
		return err
	}
	return c.prune(maxArchives)
}

// prune deletes the oldest archives until the rest has at most limit bytes.
func (c cache) prune(limit int64) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, "archives"))
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range files {
		if total <= limit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, "archives", info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= info.Size()
	}
	return nil
}
