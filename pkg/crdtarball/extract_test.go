package crdtarball

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func openRoot(t testing.TB) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

func TestExtract(t *testing.T) {
	root, _ := openRoot(t)
	files, err := extract(bytes.NewReader(pack(t, file("./a.yaml", "1"), file("deep/er/b", "22"), folder("deep"))), root, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []unpackedFile{{"a.yaml", 1, sum([]byte("1"))}, {"deep/er/b", 2, sum([]byte("22"))}}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("./ and missing folders are fine: -want +got:\n%s", diff)
	}
	if err := fstest.TestFS(root.FS(), "a.yaml", "deep/er/b"); err != nil {
		t.Error(err)
	}
}

func TestExtractRefuses(t *testing.T) {
	many := make([]item, 20)
	for i := range many {
		many[i] = file(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 100))
	}
	typed := func(kind byte) []byte { return pack(t, item{tar.Header{Name: "d", Typeflag: kind}, ""}) }
	good := pack(t, file("a", strings.Repeat("text ", 2000)))
	for name, tc := range map[string]struct {
		reason  string
		archive []byte
		limits  Limits
		want    string
	}{
		"Absolute":   {"absolute names", pack(t, file("/etc/passwd", "x")), Limits{}, `entry "/etc/passwd": the path is absolute`},
		"Parent":     {"names that leave", pack(t, file("a/../../b", "x")), Limits{}, `entry "a/../../b": the path leaves`},
		"Symlink":    {"symbolic links", pack(t, link("l", "/etc/passwd")), Limits{}, `entry "l": is a link to "/etc/passwd"`},
		"Hardlink":   {"hard links", pack(t, item{tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}, ""}), Limits{}, `entry "l": is a link`},
		"Char":       {"devices", typed(tar.TypeChar), Limits{}, `entry "d": is neither a file nor a folder`},
		"Block":      {"devices", typed(tar.TypeBlock), Limits{}, "neither a file nor a folder"},
		"Fifo":       {"pipes", typed(tar.TypeFifo), Limits{}, "neither a file nor a folder"},
		"Twice":      {"duplicate names", pack(t, file("a", "1"), file("./a", "2")), Limits{}, `entry "./a": the path is used twice`},
		"Case":       {"names that differ in case only", pack(t, file("a/B", "1"), file("A/b", "2")), Limits{}, "only in letter case"},
		"FileFolder": {"a file as a folder", pack(t, file("a", "1"), file("a/b", "2")), Limits{}, `"a" is a file already`},
		"Deep":       {"depth", pack(t, file(strings.Repeat("a/", 16)+"b", "")), Limits{}, "deeper than 16"},
		"Long":       {"the length of a name", pack(t, file(strings.Repeat("a", 256), "")), Limits{}, "longer than 255"},
		"File":       {"the size of a file", pack(t, file("a", strings.Repeat("x", 101))), Limits{File: 100}, `entry "a": has 101 bytes, more than the 100`},
		"Unpacked":   {"the size of all files", pack(t, many...), Limits{Unpacked: 1500}, "unpacks to more than the 1500 bytes"},
		"Entries":    {"the number of entries", pack(t, many...), Limits{Entries: 10}, "more than 10 entries"},
		"Compressed": {"the size of the tarball", good, Limits{Compressed: 50}, "more than the 50 bytes"},
		"Ratio":      {"the ratio", pack(t, file("a", strings.Repeat("\x00", 4<<20))), Limits{}, "more than 200 times its size"},
		"HTML":       {"an HTML page", []byte("<!DOCTYPE html><html><body>Sign in"), Limits{}, "no gzipped tar but an HTML page"},
		"Text":       {"text", []byte("Not found\n"), Limits{}, "no gzipped tar but text/plain"},
		"Zip":        {"another archive", []byte("PK\x03\x04 and so on"), Limits{}, "no gzipped tar but application/zip"},
		"Nothing":    {"nothing", nil, Limits{}, "nothing (0 bytes)"},
		"NotTar":     {"gzip of something else", gzipped(t, bytes.Repeat([]byte("no tar "), 200)), Limits{}, "cut short or damaged"},
		"Cut":        {"half of it", good[:len(good)/2], Limits{}, "cut short or damaged"},
		"Checksum":   {"a wrong checksum", append(bytes.Clone(good[:len(good)-8]), "12345678"...), Limits{}, "cut short or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			root, _ := openRoot(t)
			_, err := extract(bytes.NewReader(tc.archive), root, tc.limits)
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonArchive || e.Temporary || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s is refused: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestBomb refuses 512 MiB of zeros with little memory and disk, both as one ratio and hidden below the ratio.
func TestBomb(t *testing.T) {
	for name, limits := range map[string]Limits{
		"Ratio": {}, "Unpacked": {Ratio: 1 << 20, File: 1 << 30}, "File": {Ratio: 1 << 20}, "Disk": {Ratio: 1 << 20, Unpacked: 1 << 30, File: 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			root, dir := openRoot(t)
			reader, writer := io.Pipe()
			go func() { _ = writer.CloseWithError(writeBomb(writer)) }()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := extract(reader, root, limits)
			runtime.ReadMemStats(&after)
			_ = reader.Close()
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonArchive {
				t.Errorf("it is refused: %v", err)
			}
			// The maker of the bomb is in the same process; both together stay small.
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
				t.Errorf("%d MiB were allocated", grown>>20)
			}
			if size := treeSize(t, dir); size > 256<<20 {
				t.Errorf("%d MiB were written", size>>20)
			}
		})
	}
}

func writeBomb(to io.Writer) error {
	zipped, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	packed := tar.NewWriter(zipped)
	if err := packed.WriteHeader(&tar.Header{Name: "crds.yaml", Mode: 0o644, Size: 512 << 20, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range 512 {
		if _, err := packed.Write(block); err != nil {
			return err
		}
	}
	return errors.Join(packed.Close(), zipped.Close())
}

func treeSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func TestDocuments(t *testing.T) {
	tree := fstest.MapFS{
		"b.yaml": {Data: []byte("# first\n---\n" + crd("b.example.org") + "---\n" + crd("a.example.org"))},
		"a.json": {Data: []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"c.d"},"spec":{"group":"d","names":{"plural":"c"},"versions":[{}]}}`)},
		"README": {Data: []byte("text")}, "empty.yml": {Data: nil},
	}
	objects, err := Documents(tree, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	if diff := cmp.Diff([]string{"c.d", "b.example.org", "a.example.org"}, names); diff != "" {
		t.Errorf("by file, then as they stand: -want +got:\n%s", diff)
	}
}

func TestDocumentsRefuses(t *testing.T) {
	bomb := "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
	for name, tc := range map[string]struct {
		reason string
		tree   map[string]string
		want   string
	}{
		"HTML":      {"an HTML page", map[string]string{"a.yaml": "\n<!DOCTYPE html>\n<html>"}, "a.yaml is an HTML page"},
		"XML":       {"markup", map[string]string{"a.yaml": "<Error><Code>NoSuchKey"}, "a.yaml is markup"},
		"Kind":      {"another kind", map[string]string{"a.yaml": crd("a.b"), "x/b.yaml": "# c\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"}, `x/b.yaml line 3 is a Deployment of apps/v1, named "web"`},
		"Beta":      {"an old version", map[string]string{"a.yaml": strings.Replace(crd("a.b"), "/v1", "/v1beta1", 1)}, "which Kubernetes no longer serves"},
		"List":      {"a list", map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems: []\n"}, "is a List of v1"},
		"Twice":     {"a duplicate name", map[string]string{"a.yaml": crd("a.b"), "b.yaml": crd("a.b")}, "b.yaml line 1 the CustomResourceDefinition a.b is declared twice, first in a.yaml line 1"},
		"None":      {"no CRD at all", map[string]string{"README.md": "x"}, "there are only README.md"},
		"Empty":     {"nothing at all", nil, "has no CustomResourceDefinition"},
		"Comments":  {"comments only", map[string]string{"a.yaml": "# nothing\n---\n"}, "has no CustomResourceDefinition"},
		"Malformed": {"broken YAML", map[string]string{"a.yaml": "a: b\n c: d: e\n"}, "a.yaml line 2 cannot be read"},
		"Text":      {"text", map[string]string{"a.yaml": "Not Found"}, `a.yaml line 1 is no object but the text "Not Found"`},
		"NoName":    {"a CRD without a name", map[string]string{"a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"}, "without metadata.name"},
		"WrongName": {"a CRD of a wrong name", map[string]string{"a.yaml": strings.Replace(crd("a.b"), "name: a.b", "name: x.y", 1)}, `must be named "a.b"`},
		"NoVersion": {"a CRD without versions", map[string]string{"a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b, names: {plural: a}}\n"}, "has no spec.versions"},
		"Labels":    {"labels that are no text", map[string]string{"a.yaml": strings.Replace(crd("a.b"), "name: a.b", "name: a.b\n  labels: {x: 1}", 1)}, "metadata.labels that are no map of strings"},
		"Binary":    {"binary files", map[string]string{"a.yaml": "a\x00b"}, "a.yaml is binary"},
		"All":       {"all files", map[string]string{"a.yaml": "kind: A\napiVersion: v1\n", "b.yaml": "kind: B\napiVersion: v1\n"}, "is a B of v1"},
		"Bomb":      {"aliases that grow", map[string]string{"a.yaml": bomb, "b.yaml": bomb}, "more than the 100000 values"},
		"Size":      {"much text", map[string]string{"a.yaml": strings.Repeat("#\n", 1<<20)}, "more than the 1048576 bytes allowed in all"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range tc.tree {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			_, err := Documents(tree, Limits{Documents: 1 << 20, Nodes: 100_000})
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonDocuments || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}
