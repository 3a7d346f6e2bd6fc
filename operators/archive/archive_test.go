package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFileName(t *testing.T) {
	if got := FileName("mysql", "5.7", "0.3.0"); got != "mysql-5.7_0.3.0.tgz" {
		t.Errorf("with appVersion: %s", got)
	}
	if got := FileName("cowsay", "", "0.2.0"); got != "cowsay-0.2.0.tgz" {
		t.Errorf("without appVersion: %s", got)
	}
}

// contents maps the files of a tree to their text.
func contents(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRoundTrip(t *testing.T) {
	tree := fstest.MapFS{
		"operator.yaml":          {Data: []byte("name: x"), ModTime: time.Unix(1e9, 0), Mode: 0o600},
		"params.yaml":            {Data: nil},
		"templates/a.yaml":       {Data: bytes.Repeat([]byte("a"), 100_000)},
		"templates-b.yaml":       {Data: []byte("-")},
		"templates/ü/sub.yaml":   {Data: []byte("ü")},
		"empty":                  {Mode: fs.ModeDir | 0o755},
		"templates/link.yaml":    {Data: []byte("a.yaml"), Mode: fs.ModeSymlink | 0o777},
		strings.Repeat("n", 150): {Data: []byte("long")},
	}
	var first, second bytes.Buffer
	digest, err := Write(&first, tree)
	if err != nil {
		t.Fatal(err)
	}
	tree["operator.yaml"].ModTime, tree["operator.yaml"].Mode = time.Unix(2e9, 0), 0o755
	again, err := Write(&second, tree)
	if err != nil || again != digest || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the same files give the same bytes: %s, %s, %v", digest, again, err)
	}
	unpacked, err := Read(&first, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"operator.yaml": "name: x", "params.yaml": "", "templates/a.yaml": strings.Repeat("a", 100_000),
		"templates-b.yaml": "-", "templates/ü/sub.yaml": "ü", strings.Repeat("n", 150): "long"}
	if diff := cmp.Diff(want, contents(t, unpacked)); diff != "" {
		t.Errorf("regular files come back: -want +got:\n%s", diff)
	}
	if err := fstest.TestFS(unpacked, "operator.yaml", "templates/ü/sub.yaml"); err != nil {
		t.Errorf("what is unpacked is a well-behaved file system: %v", err)
	}
}

func TestHeaders(t *testing.T) {
	var out bytes.Buffer
	if _, err := Write(&out, fstest.MapFS{"b": {Data: []byte("b")}, "a.x": {}, "a/c": {Mode: 0o700}}); err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	if zipped.Name != "" || !zipped.ModTime.IsZero() {
		t.Errorf("gzip has no name and no time: %+v", zipped.Header)
	}
	packed := tar.NewReader(zipped)
	var names []string
	for {
		header, err := packed.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Gid != 0 || header.Uname != "root" || header.Gname != "root" || header.Mode != 0o644 {
			t.Errorf("headers are fixed: %+v", header)
		}
	}
	if diff := cmp.Diff([]string{"a.x", "a/c", "b"}, names); diff != "" {
		t.Errorf("files are sorted by path: -want +got:\n%s", diff)
	}
}

// pack makes an archive of headers; each file has the text of its PAX comment.
func pack(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, header := range headers {
		text := header.PAXRecords["comment"]
		if header.Typeflag == tar.TypeReg || header.Typeflag == 0 {
			header.Size = int64(len(text))
		}
		if header.Typeflag != tar.TypeXGlobalHeader {
			header.PAXRecords = nil
		}
		if err := packed.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := io.WriteString(packed, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name, text string) tar.Header {
	return tar.Header{Name: name, Mode: 0o644, PAXRecords: map[string]string{"comment": text}}
}

func TestReadAccepts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		headers []tar.Header
		want    map[string]string
	}{
		"DotSlash":   {"paths with ./", []tar.Header{{Name: "./", Typeflag: tar.TypeDir}, file("./a", "1"), file("./b/c", "2")}, map[string]string{"a": "1", "b/c": "2"}},
		"NoFolders":  {"folders without an entry", []tar.Header{file("a/b/c", "1")}, map[string]string{"a/b/c": "1"}},
		"FolderLate": {"folders after their files, and twice", []tar.Header{file("a/b", "1"), {Name: "a/", Typeflag: tar.TypeDir}, {Name: "a", Typeflag: tar.TypeDir}}, map[string]string{"a/b": "1"}},
		"Global":     {"global headers, as git archive writes them", []tar.Header{{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}, file("a", "1")}, map[string]string{"a": "1"}},
		"Pax":        {"long and foreign names", []tar.Header{file(strings.Repeat("x", 300), "1"), file("日本", "2")}, map[string]string{strings.Repeat("x", 300): "1", "日本": "2"}},
		"Nothing":    {"an empty archive", nil, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, err := Read(bytes.NewReader(pack(t, tc.headers...)), Limits{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, fsys)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	good := pack(t, file("operator.yaml", strings.Repeat("x: y\n", 1000)))
	many := make([]tar.Header, 20)
	for i := range many {
		many[i] = file(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 100))
	}
	for name, tc := range map[string]struct {
		reason  string
		archive []byte
		limits  Limits
		want    string
	}{
		"Absolute":   {"absolute paths", pack(t, file("/etc/passwd", "")), Limits{}, `entry "/etc/passwd": the path is absolute`},
		"Parent":     {"paths that leave", pack(t, file("a/../../b", "")), Limits{}, `entry "a/../../b": the path leaves the archive with .. in it`},
		"ParentIn":   {"even those that come back", pack(t, file("a/../b", "")), Limits{}, ".. in it"},
		"Symlink":    {"symbolic links", pack(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), Limits{}, `entry "l": is a link to "/etc/passwd"`},
		"Hardlink":   {"hard links", pack(t, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}), Limits{}, "is a link to"},
		"Device":     {"devices", pack(t, tar.Header{Name: "d", Typeflag: tar.TypeChar}), Limits{}, "is neither a file nor a folder"},
		"Fifo":       {"pipes", pack(t, tar.Header{Name: "d", Typeflag: tar.TypeFifo}), Limits{}, "is neither a file nor a folder"},
		"Twice":      {"the same path", pack(t, file("a", "1"), file("./a", "2")), Limits{}, `entry "./a": the path is used twice`},
		"Case":       {"the same path in other case", pack(t, file("a/B", "1"), file("A/b", "2")), Limits{}, `only in letter case`},
		"FileFolder": {"a file as a folder", pack(t, file("a", "1"), file("a/b", "2")), Limits{}, `"a" is a file already`},
		"FileDeep":   {"a file as a folder above", pack(t, file("a", "1"), file("a/b/c", "2")), Limits{}, `entry "a/b/c": is below "a", but "a" is a file already`},
		"FolderFile": {"a folder as a file", pack(t, file("a/b", "1"), file("a", "2")), Limits{}, "the path is used twice"},
		"Windows":    {"paths of Windows", pack(t, file(`a\b`, "")), Limits{}, "a Windows path"},
		"Drive":      {"paths of Windows", pack(t, file(`C:x`, "")), Limits{}, "a Windows path"},
		"Control":    {"characters that are no text", pack(t, file("a\nb", "")), Limits{}, "no text"},
		"Root":       {"a file without a name", pack(t, file("./.", "1")), Limits{}, "needs a name"},
		"NameLong":   {"long paths", pack(t, file(strings.Repeat("a", 600), "")), Limits{}, "longer than 512"},
		"Deep":       {"deep paths", pack(t, file(strings.Repeat("a/", 40)+"b", "")), Limits{}, "deeper than 32"},
		"FileLarge":  {"large files", pack(t, file("a", strings.Repeat("x", 101))), Limits{File: 100}, `entry "a": has 101 bytes, more than the 100 allowed`},
		"Total":      {"many bytes", pack(t, many...), Limits{Unpacked: 1500}, "unpacks to more than the 1500 bytes"},
		"Entries":    {"many entries", pack(t, many...), Limits{Entries: 10}, "more than 10 entries"},
		"Compressed": {"large archives", good, Limits{Compressed: 50}, "more than the 50 bytes"},
		"Ratio":      {"archives that unpack to much", pack(t, file("a", strings.Repeat("\x00", 4<<20))), Limits{}, "more than 200 times its size"},
		"NotGzip":    {"something else", []byte("PK\x03\x04 what is this"), Limits{}, "the archive is not gzip"},
		"Nothing":    {"no bytes", nil, Limits{}, "the archive is not gzip"},
		"Truncated":  {"half of it", good[:len(good)/2], Limits{}, "cut short or damaged"},
		"NoTrailer":  {"without the checksum", good[:len(good)-8], Limits{}, "cut short or damaged"},
		"Checksum":   {"a wrong checksum", append(bytes.Clone(good[:len(good)-8]), "12345678"...), Limits{}, "cut short or damaged"},
		"NotTar":     {"gzip of something else", zip(t, []byte(strings.Repeat("no tar at all ", 100))), Limits{}, "cut short or damaged"},
		"TarEnds":    {"a tar that ends in a file", zip(t, tarOf(t, good)[:700]), Limits{}, "cut short or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(tc.archive), tc.limits)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarOf(t *testing.T, archive []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzRead(f *testing.F) {
	f.Add(pack(f, file("operator.yaml", "name: x"), file("templates/a.yaml", "a")))
	f.Add(pack(f, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "x"}))
	// The tar itself, zipped by the test, so that the fuzzer reaches it.
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, archive := range [][]byte{data, zip(t, data)} {
			fsys, err := Read(bytes.NewReader(archive), Limits{Unpacked: 1 << 20, File: 1 << 18})
			if err != nil {
				continue
			}
			var out bytes.Buffer
			if _, err := Write(&out, fsys); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			again, err := Read(&out, Limits{})
			if err != nil {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			if diff := cmp.Diff(contents(t, fsys), contents(t, again)); diff != "" {
				t.Errorf("-first +again:\n%s", diff)
			}
		}
	})
}
