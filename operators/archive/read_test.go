package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestEntryErrors checks the whole message of each entry that is refused: it names the entry, what is wrong, and the remedy.
func TestEntryErrors(t *testing.T) {
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	for name, tc := range map[string]struct {
		reason  string
		headers []tar.Header
		limits  Limits
		want    string
	}{
		"Symlink": {"a link names its target and the remedy", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../x"}}, Limits{},
			`entry "l": is a link to "../x": replace it by the file, links are not allowed`},
		"LinkLong": {"a long target is cut", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("x", 200)}}, Limits{},
			`entry "l": is a link to "` + strings.Repeat("x", 100) + `"… (200 bytes): replace it by the file, links are not allowed`},
		"LinkControl": {"a target is quoted", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a\x1b[2J"}}, Limits{},
			`entry "l": is a link to "a\x1b[2J": replace it by the file, links are not allowed`},
		"Block": {"a block device names its type", []tar.Header{{Name: "d", Typeflag: tar.TypeBlock}}, Limits{},
			`entry "d": is neither a file nor a folder (type '4')`},
		"Absolute": {"a folder may not be absolute either", []tar.Header{dir("/")}, Limits{}, `entry "/": the path is absolute`},
		"Parent": {"a folder may not leave either", []tar.Header{dir("..")}, Limits{},
			`entry "..": the path leaves the archive with .. in it`},
		"ParentEnd":  {"dots at the end", []tar.Header{file("a/..", "x")}, Limits{}, `entry "a/..": the path leaves the archive with .. in it`},
		"DriveSlash": {"a drive of Windows", []tar.Header{file("c:/x", "")}, Limits{}, `entry "c:/x": the path is a Windows path`},
		"Delete": {"the last control character of ASCII", []tar.Header{file("a\x7fb", "")}, Limits{},
			`entry "a\x7fb": the path has characters that are no text`},
		"NoUTF8": {"bytes that are no UTF-8", []tar.Header{file("a\xff", "")}, Limits{},
			`entry "a\xff": the path has characters that are no text`},
		"Twice": {"the path is compared as it is cleaned", []tar.Header{file("a//b", ""), file("./a/./b", "")}, Limits{},
			`entry "./a/./b": the path is used twice`},
		"Case": {"the other path is named", []tar.Header{file("a/B", "1"), file("a/b", "2")}, Limits{},
			`entry "a/b": the path differs from "a/B" only in letter case`},
		"CaseFolder": {"folders differ from files in letter case", []tar.Header{dir("X"), file("x", "")}, Limits{},
			`entry "x": the path differs from "X" only in letter case`},
		"CaseAbove": {"the folder of a file differs", []tar.Header{file("Dir/a", ""), file("dir/b", "")}, Limits{},
			`entry "dir/b": the path differs from "Dir" only in letter case`},
		"CaseOther": {"letters of all scripts have a case", []tar.Header{file("É", ""), file("é", "")}, Limits{},
			`entry "é": the path differs from "É" only in letter case`},
		"FolderFile": {"a folder where a file is", []tar.Header{file("a", ""), dir("a")}, Limits{},
			`entry "a": is a folder, but "a" is a file already`},
		"Root": {"the root is a folder", []tar.Header{file(".", "x")}, Limits{}, `entry ".": a file needs a name`},
		"Name": {"one byte more than a path may have", []tar.Header{file("abcd", "")}, Limits{Name: 3},
			`entry "abcd": the path is longer than 3 bytes`},
		"Part": {"one byte more than a part may have", []tar.Header{file("abc/abcd", "")}, Limits{Part: 3},
			`entry "abc/abcd": a part of the path is longer than 3 bytes`},
		"Depth": {"one folder more than the depth", []tar.Header{file("a/b/c", "")}, Limits{Depth: 2},
			`entry "a/b/c": the path is deeper than 2 folders`},
		"File": {"one byte more than a file may have", []tar.Header{file("a", "1234")}, Limits{File: 3},
			`entry "a": has 4 bytes, more than the 3 allowed`},
		"Unpacked": {"one byte more than all files may have", []tar.Header{file("a", "12"), file("b", "34")}, Limits{Unpacked: 3},
			`entry "b": the archive unpacks to more than the 3 bytes allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(pack(t, tc.headers...)), tc.limits)
			if want := "read the archive: " + tc.want; err == nil || err.Error() != want {
				t.Errorf("%s: -want +got:\n-%s\n+%v", tc.reason, want, err)
			}
			if again := Extract(bytes.NewReader(pack(t, tc.headers...)), tc.limits, &sink{}); again == nil || again.Error() != err.Error() {
				t.Errorf("%s: Extract says %v, and Read %v", tc.reason, again, err)
			}
		})
	}
}

// TestLimitsAtTheirEdge checks that what a limit names is allowed, each by itself.
func TestLimitsAtTheirEdge(t *testing.T) {
	archive := pack(t, file("ab/cd", "123"), file("ab/ef", "4"))
	for name, limits := range map[string]Limits{
		"Compressed": {Compressed: int64(len(archive))}, "Unpacked": {Unpacked: 4}, "File": {File: 3}, "Entries": {Entries: 2},
		"Name": {Name: 5}, "Depth": {Depth: 2}, "Part": {Part: 2},
	} {
		if _, err := Read(bytes.NewReader(archive), limits); err != nil {
			t.Errorf("%s: what a limit allows is refused: %v", name, err)
		}
	}
	for name, tc := range map[string]struct {
		limits Limits
		want   string
	}{
		"Compressed": {Limits{Compressed: int64(len(archive)) - 1},
			fmt.Sprintf("read the archive: the archive has more than the %d bytes allowed", len(archive)-1)},
		"Unpacked": {Limits{Unpacked: 3}, `read the archive: entry "ab/ef": the archive unpacks to more than the 3 bytes allowed`},
		"File":     {Limits{File: 2}, `read the archive: entry "ab/cd": has 3 bytes, more than the 2 allowed`},
		"Entries":  {Limits{Entries: 1}, "read the archive: the archive has more than 1 entries"},
		"Name":     {Limits{Name: 4}, `read the archive: entry "ab/cd": the path is longer than 4 bytes`},
		"Depth":    {Limits{Depth: 1}, `read the archive: entry "ab/cd": the path is deeper than 1 folders`},
		"Part":     {Limits{Part: 1}, `read the archive: entry "ab/cd": a part of the path is longer than 1 bytes`},
	} {
		if _, err := Read(bytes.NewReader(archive), tc.limits); err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %s", name, err, tc.want)
		}
	}
}

// TestDefaultLimits checks that a limit that is not set is the standard one, and that one that is set stays.
func TestDefaultLimits(t *testing.T) {
	if diff := cmp.Diff(DefaultLimits(), Limits{}.withDefaults()); diff != "" {
		t.Errorf("nothing is set: -want +got:\n%s", diff)
	}
	own := Limits{Compressed: 1, Unpacked: 2, File: 3, Ratio: 4, Entries: 5, Name: 6, Depth: 7, Part: 8}
	if diff := cmp.Diff(own, own.withDefaults()); diff != "" {
		t.Errorf("all are set: -want +got:\n%s", diff)
	}
	want := DefaultLimits()
	want.Depth = 3
	if diff := cmp.Diff(want, Limits{Depth: 3}.withDefaults()); diff != "" {
		t.Errorf("one is set: -want +got:\n%s", diff)
	}
}

// TestRatio checks that an archive may unpack to 1 MiB whatever its size is, and beyond that to a multiple of its size.
func TestRatio(t *testing.T) {
	zeros := func(size int) []byte { return pack(t, file("a", strings.Repeat("\x00", size))) }
	if _, err := Read(bytes.NewReader(zeros(1<<20-2048)), Limits{Ratio: 2}); err != nil {
		t.Errorf("less than 1 MiB: %v", err)
	}
	if _, err := Read(bytes.NewReader(zeros(2<<20)), Limits{Ratio: 100}); err == nil ||
		err.Error() != `read the archive: entry "a": the archive unpacks to more than 100 times its size` {
		t.Errorf("more than 1 MiB: %v", err)
	}
	if _, err := Read(bytes.NewReader(zeros(2<<20)), Limits{Ratio: 2000}); err != nil {
		t.Errorf("another ratio: %v", err)
	}
}

// TestPaddingIsBounded checks that bytes behind the end of the tar count, which the tar reader does not see.
func TestPaddingIsBounded(t *testing.T) {
	padded := zip(t, append(tarOf(t, pack(t, file("a", "1"))), make([]byte, 900<<10)...))
	if _, err := Read(bytes.NewReader(padded), Limits{Unpacked: 1 << 20}); err != nil {
		t.Errorf("some padding is read: %v", err)
	}
	if _, err := Read(bytes.NewReader(padded), Limits{Unpacked: 1 << 10, Entries: 10}); err == nil ||
		!strings.HasPrefix(err.Error(), "read the archive: the archive has more than the ") {
		t.Errorf("padding beyond the limit: %v", err)
	}
}

// TestOneStreamOnly checks that bytes behind the gzip stream are not unpacked: a digest was meant for the archive alone.
func TestOneStreamOnly(t *testing.T) {
	one, two := pack(t, file("a", "1")), pack(t, file("b", "2"))
	for name, behind := range map[string][]byte{"Archive": two, "Garbage": []byte("garbage")} {
		fsys, err := Read(bytes.NewReader(append(bytes.Clone(one), behind...)), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(map[string]string{"a": "1"}, contents(t, fsys)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestReaderErrors checks that an error of the reader is kept, so that a caller can tell a cut connection from a bad archive.
func TestReaderErrors(t *testing.T) {
	broken := errors.New("connection reset")
	archive := pack(t, file("a", strings.Repeat("some text ", 1000)), file("b", "2"))
	for at := range len(archive) {
		r := io.MultiReader(bytes.NewReader(archive[:at]), iotest.ErrReader(broken))
		if _, err := Read(r, Limits{}); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", at, err)
		}
	}
}

// TestSlowReader checks that an archive that comes byte by byte is read like any other.
func TestSlowReader(t *testing.T) {
	archive := pack(t, file("a/b", "1"), file("c", strings.Repeat("x", 5000)))
	for name, r := range map[string]io.Reader{
		"OneByte": iotest.OneByteReader(bytes.NewReader(archive)), "Half": iotest.HalfReader(bytes.NewReader(archive)),
		"DataErr": iotest.DataErrReader(bytes.NewReader(archive)),
	} {
		fsys, err := Read(r, Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(map[string]string{"a/b": "1", "c": strings.Repeat("x", 5000)}, contents(t, fsys)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestCutAnywhere checks that no prefix of an archive is taken for the whole.
func TestCutAnywhere(t *testing.T) {
	archive := pack(t, file("a", "1"), file("b/c", strings.Repeat("text ", 300)), file("d", ""))
	for at := range len(archive) {
		if fsys, err := Read(bytes.NewReader(archive[:at]), Limits{}); err == nil || fsys != nil {
			t.Errorf("%d of %d bytes are taken for an archive", at, len(archive))
		}
	}
}

// TestDamagedAnywhere checks that an archive with a wrong byte is refused, or has the right files: the header of gzip has
// bytes that mean nothing.
func TestDamagedAnywhere(t *testing.T) {
	archive := pack(t, file("a", "1"), file("b/c", strings.Repeat("text ", 300)))
	want := map[string]string{"a": "1", "b/c": strings.Repeat("text ", 300)}
	for at := range archive {
		damaged := bytes.Clone(archive)
		damaged[at] ^= 0x55
		fsys, err := Read(bytes.NewReader(damaged), Limits{})
		if err == nil && at >= 10 && !cmp.Equal(want, contents(t, fsys)) {
			t.Errorf("byte %d is wrong, and the files too", at)
		}
	}
}

// TestSizeOfHeaderLies checks that an entry whose header promises more than the archive has is refused before memory is taken.
func TestSizeOfHeaderLies(t *testing.T) {
	var out bytes.Buffer
	packed := tar.NewWriter(&out)
	if err := packed.WriteHeader(&tar.Header{Name: "a", Size: 1 << 23, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Write([]byte("short")); err != nil {
		t.Fatal(err)
	}
	_, err := Read(bytes.NewReader(zip(t, out.Bytes())), Limits{})
	if err == nil || err.Error() != `read the archive: entry "a": is cut short or damaged: unexpected EOF` {
		t.Errorf("error %v", err)
	}
}

// TestExtractFolders checks that a sink gets the folders that have an entry, in the order of the archive, with clean names.
func TestExtractFolders(t *testing.T) {
	archive := pack(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, tar.Header{Name: "a/b/", Typeflag: tar.TypeDir}, file("a/b/c", "1"),
		file("x/y", "2"), tar.Header{Name: "a//", Typeflag: tar.TypeDir}, tar.Header{Name: "a", Typeflag: tar.TypeDir})
	all := &sink{}
	if err := Extract(bytes.NewReader(archive), Limits{}, all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"./", "a/b/", "a/b/c=1", "x/y=2", "a/", "a/"}, all.found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// folderSink fails at each folder.
type folderSink struct{ sink }

func (*folderSink) Folder(string) error { return errSink }

// lazySink reads nothing of a file.
type lazySink struct{ sink }

func (*lazySink) File(string, io.Reader) error { return nil }

// TestExtractSinks checks errors of sinks, and that a sink that leaves content unread is found.
func TestExtractSinks(t *testing.T) {
	folder := pack(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir})
	if err := Extract(bytes.NewReader(folder), Limits{}, &folderSink{}); !errors.Is(err, errSink) ||
		err.Error() != `read the archive: entry "a/": no room` {
		t.Errorf("an error at a folder: %v", err)
	}
	if err := Extract(bytes.NewReader(pack(t, file("a", "1"))), Limits{}, &lazySink{}); err == nil ||
		err.Error() != `read the archive: entry "a": is cut short` {
		t.Errorf("content that is not read: %v", err)
	}
	if err := Extract(bytes.NewReader(pack(t, file("a", ""))), Limits{}, &lazySink{}); err != nil {
		t.Errorf("a file without content needs no reading: %v", err)
	}
	many := &sink{failAt: "b"}
	if err := Extract(bytes.NewReader(pack(t, file("a", "1"), file("b", "2"), file("c", "3"))), Limits{}, many); !errors.Is(err, errSink) {
		t.Errorf("an error at a file: %v", err)
	}
	if diff := cmp.Diff([]string{"a=1"}, many.found); diff != "" {
		t.Errorf("nothing comes after an error: -want +got:\n%s", diff)
	}
}

// TestGlobalHeadersCount checks that comments count as entries, since each of them takes time.
func TestGlobalHeadersCount(t *testing.T) {
	comment := tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}
	archive := pack(t, comment, comment, comment)
	if _, err := Read(bytes.NewReader(archive), Limits{Entries: 3}); err != nil {
		t.Errorf("three comments: %v", err)
	}
	if _, err := Read(bytes.NewReader(archive), Limits{Entries: 2}); err == nil ||
		err.Error() != "read the archive: the archive has more than 2 entries" {
		t.Errorf("one more: %v", err)
	}
}

// TestNotGzipKeepsTheCause checks that the cause can be read by a caller.
func TestNotGzipKeepsTheCause(t *testing.T) {
	_, err := Read(strings.NewReader("plain text that is no archive"), Limits{})
	if !errors.Is(err, gzip.ErrHeader) || err.Error() != "read the archive: the archive is not gzip: gzip: invalid header" {
		t.Errorf("error %v", err)
	}
	if _, err := Read(strings.NewReader(""), Limits{}); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

// TestModesAreIgnored checks that no mode of an archive reaches the tree: no file is executable, and none is writable.
func TestModesAreIgnored(t *testing.T) {
	fsys, err := Read(bytes.NewReader(pack(t, tar.Header{Name: "run.sh", Mode: 0o4777},
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o1777})), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"run.sh": 0o444, "d": fs.ModeDir | 0o555, ".": fs.ModeDir | 0o555} {
		if info, err := fs.Stat(fsys, name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
