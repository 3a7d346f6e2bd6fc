package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestDigest checks that the digest is that of the bytes that are written.
func TestDigest(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{"Empty": {}, "One": {"a": {Data: []byte("1")}},
		"Large": {"a": {Data: bytes.Repeat([]byte("xyz"), 100_000)}}} {
		var out bytes.Buffer
		digest, err := Write(&out, fsys)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(out.Bytes()); digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: digest %s of %x", name, digest, sum)
		}
	}
}

// TestDigestDependsOnContent checks that each change of a path or a content changes the digest, and no other change does.
func TestDigestDependsOnContent(t *testing.T) {
	digest := func(fsys fs.FS) string {
		t.Helper()
		d, err := Write(io.Discard, fsys)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := fstest.MapFS{"a/b": {Data: []byte("1")}, "c": {Data: []byte("2")}}
	want := digest(base)
	change := func(key string, f *fstest.MapFile) fstest.MapFS {
		changed := maps.Clone(base)
		changed[key] = f
		return changed
	}
	for name, fsys := range map[string]fs.FS{
		"EmptyFolder": change("d", &fstest.MapFile{Mode: fs.ModeDir}),
		"Link":        change("l", &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("c")}),
		"Fifo":        change("p", &fstest.MapFile{Mode: fs.ModeNamedPipe}),
		"Mode":        change("c", &fstest.MapFile{Mode: 0o777, Data: []byte("2")}),
	} {
		if got := digest(fsys); got != want {
			t.Errorf("%s: the digest changes", name)
		}
	}
	seen := map[string]string{want: "Base"}
	for name, fsys := range map[string]fs.FS{
		"Content": change("c", &fstest.MapFile{Data: []byte("3")}), "Longer": change("c", &fstest.MapFile{Data: []byte("2\n")}),
		"File":  change("d", &fstest.MapFile{}),
		"Moved": fstest.MapFS{"a/c": {Data: []byte("1")}, "c": {Data: []byte("2")}}, "Fewer": fstest.MapFS{"a/b": {Data: []byte("1")}},
		"Swapped": fstest.MapFS{"a/b": {Data: []byte("2")}, "c": {Data: []byte("1")}},
	} {
		got := digest(fsys)
		if other, same := seen[got]; same {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
}

// TestRepack checks the law that packing what was unpacked gives the same bytes.
func TestRepack(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 40 {
		tree[fmt.Sprintf("%c/%d/file-%d.yaml", 'a'+i%3, i%5, i)] = &fstest.MapFile{Data: []byte(strings.Repeat(fmt.Sprint(i), i*10))}
	}
	var first, second bytes.Buffer
	one, err := Write(&first, tree)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := Read(bytes.NewReader(first.Bytes()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Write(&second, unpacked)
	if err != nil || one != two || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("%s, then %s, %v", one, two, err)
	}
}

// full is a writer that takes so many bytes.
type full struct{ room int }

var errFull = errors.New("the disk is full")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestWriterErrors checks that an error of the writer is kept wherever it comes, and that no digest is returned.
func TestWriterErrors(t *testing.T) {
	text := make([]byte, 300_000) // which does not pack well
	for i, x := 0, uint32(1); i < len(text); i++ {
		x = x*1664525 + 1013904223
		text[i] = byte(x >> 24)
	}
	fsys := fstest.MapFS{"a": {Data: text}, "b": {Data: text[:1000]}}
	var out bytes.Buffer
	if _, err := Write(&out, fsys); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 5, 100, 100_000, out.Len() - 100, out.Len() - 1} {
		digest, err := Write(&full{room}, fsys)
		if !errors.Is(err, errFull) || digest != "" || !strings.HasPrefix(err.Error(), "write the archive: ") {
			t.Errorf("room for %d of %d bytes: digest %q, error %v", room, out.Len(), digest, err)
		}
	}
}

// odd is a file system in which a file is not what its entry says.
type odd struct {
	files fstest.MapFS
	name  string
	open  func() (fs.File, error)
}

func (o odd) Open(name string) (fs.File, error) {
	if name == o.name {
		return o.open()
	}
	return o.files.Open(name)
}

// oddFile has a size and a content that differ.
type oddFile struct {
	fs.File
	content io.Reader
	stat    error
}

func (f *oddFile) Read(p []byte) (int, error) { return f.content.Read(p) }

func (f *oddFile) Stat() (fs.FileInfo, error) {
	if f.stat != nil {
		return nil, f.stat
	}
	return f.File.Stat()
}

// TestFilesThatChange checks that a file that changes while it is read is an error, and gives no wrong archive.
func TestFilesThatChange(t *testing.T) {
	broken := errors.New("input/output error")
	files := fstest.MapFS{"a": {Data: []byte("1")}, "b": {Data: []byte("12345")}, "c": {Data: []byte("2")}}
	last := fstest.MapFS{"a": {Data: []byte("1")}, "b": {Data: []byte("12345")}}
	is := func(content io.Reader, stat error) func() (fs.File, error) {
		return func() (fs.File, error) {
			f, err := files.Open("b")
			return &oddFile{f, content, stat}, err
		}
	}
	for name, tc := range map[string]struct {
		reason string
		files  fstest.MapFS
		open   func() (fs.File, error)
		want   string
	}{
		"Grown": {"more than the header says", files, is(strings.NewReader("1234567"), nil),
			"write the archive: b: archive/tar: write too long"},
		"Shrunk": {"less than the header says, found at the next file", files, is(strings.NewReader("12"), nil),
			"write the archive: c: archive/tar: missed writing 3 bytes"},
		"ShrunkLast": {"less than the header says, found at the end", last, is(strings.NewReader("12"), nil),
			"write the archive: archive/tar: missed writing 3 bytes"},
		"Unreadable": {"an error of reading names the file", files, is(iotest.ErrReader(broken), nil),
			"write the archive: b: input/output error"},
		"NoStat": {"an error of Stat is kept", files, is(nil, broken), "write the archive: input/output error"},
		"NoOpen": {"an error of Open is kept", files,
			func() (fs.File, error) {
				return nil,
					&fs.PathError{Op: "open", Path: "b", Err: fs.ErrPermission}
			}, "write the archive: open b: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			digest, err := Write(io.Discard, odd{tc.files, "b", tc.open})
			if err == nil || err.Error() != tc.want || digest != "" {
				t.Errorf("%s: digest %q, error %v, want %s", tc.reason, digest, err, tc.want)
			}
		})
	}
	_, err := Write(io.Discard, odd{fstest.MapFS{"d/a": {}}, "d", func() (fs.File, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("a folder that cannot be listed: %v", err)
	}
}

// TestFileNames checks the name of the archive of a package, which repositories are searched by.
func TestFileNames(t *testing.T) {
	for want, of := range map[string][3]string{
		"a-1.tgz": {"a", "", "1"}, "a-1_2.tgz": {"a", "1", "2"}, "my-op-5.7-rc.1_0.1.0.tgz": {"my-op", "5.7-rc.1", "0.1.0"},
	} {
		if got := FileName(of[0], of[1], of[2]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestSortedByPath checks that the order of files is that of their whole paths, by bytes, not that of a walk.
func TestSortedByPath(t *testing.T) {
	names, err := files(fstest.MapFS{"a/b": {}, "a-b": {}, "a.b": {}, "a/b.c": {}, "A": {}, "a0": {}, "é": {}, "z": {}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A", "a-b", "a.b", "a/b", "a/b.c", "a0", "z", "é"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
