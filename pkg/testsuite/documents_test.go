package testsuite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocuments has files of objects, and what is none.
func TestDocuments(t *testing.T) {
	const list = "apiVersion: v1\nkind: List\nitems: "
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
		err          string
	}{
		"Empty":    {"an empty file", "", nil, ""},
		"Comments": {"comments and empty documents", "# x\n---\n---\n{}\n---\nnull\n---\n" + object, []string{"ConfigMap app"}, ""},
		"JSON":     {"JSON", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, []string{"Secret s"}, ""},
		"List": {
			"a List is what it holds, at any depth",
			list + "[{apiVersion: v1, kind: A}, {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: B}]}, {}]",
			[]string{"A ", "B "},
			"",
		},
		"OtherList":    {"other lists are objects", "apiVersion: x/v1\nkind: List\nitems: [{a: b}]", []string{"List "}, ""},
		"NoItems":      {"a List without items is one, too", "apiVersion: v1\nkind: List", []string{"List "}, ""},
		"NoKind":       {"an object without a kind", object + "---\napiVersion: v1", nil, "f.yaml: document 2: lacks apiVersion or kind"},
		"NoVersion":    {"without a version", "kind: A", nil, "f.yaml: document 1: lacks apiVersion or kind"},
		"Metadata":     {"metadata that are no map", "apiVersion: v1\nkind: A\nmetadata: [x]", nil, "f.yaml: document 1: metadata is no map"},
		"NullMetadata": {"metadata that are null", "apiVersion: v1\nkind: A\nmetadata: null", []string{"A "}, ""},
		"Text":         {"a text", "hello", nil, "f.yaml: document 1 is no object"},
		"Sequence":     {"a list of objects", "- apiVersion: v1\n  kind: A", nil, "f.yaml: document 1 is no object"},
		"Item": {
			"an item that is a text",
			list + "[{apiVersion: v1, kind: A}, x]",
			nil,
			"f.yaml: document 1: item 2 of the List is no object",
		},
		"ItemKind": {
			"an item without a kind",
			list + "[{apiVersion: v1, kind: A}, {a: b}]",
			nil,
			"f.yaml: document 1: item 2 of the List: lacks apiVersion or kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"f.yaml": tc.text})
			objs, err := Documents(filepath.Join(dir, "f.yaml"))
			if err != nil || tc.err != "" {
				if got := strings.TrimPrefix(fmt.Sprint(err), dir+string(filepath.Separator)); got != tc.err {
					t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
				}
				return
			}
			var got []string
			for _, obj := range objs {
				got = append(got, obj.GetKind()+" "+obj.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestIntegers keeps numbers that a float64 cannot hold.
func TestIntegers(t *testing.T) {
	want := []any{int64(9007199254740993), 1.5, int64(-1), "1"}
	if diff := cmp.Diff(any(want), value(t, "[9007199254740993, 1.5, -1, '1']")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFolders reads the files of a folder, and of those in it.
func TestFolders(t *testing.T) {
	named := func(name string) string { return strings.Replace(object, "app", name, 1) }
	dir := folder(t, map[string]string{
		"d/b.yaml": named("b"), "d/a.yml": named("a"), "d/c.json": "{}", "d/README.md": "x", "d/deep/e.yaml": named("e"), "plain": named("p"),
	})
	names := func(path string, recursive bool) []string {
		t.Helper()
		read := Objects
		if recursive {
			read = manifests
		}
		objs, err := read(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, obj := range objs {
			out = append(out, obj.GetName())
		}
		return out
	}
	for _, tc := range []struct {
		reason, path string
		recursive    bool
		want         []string
	}{
		{"the files of a folder, in order", "d", false, []string{"a", "b"}},
		{"a file, whatever its ending", "plain", false, []string{"p"}},
		{"manifests also of folders in it", "d", true, []string{"a", "b", "e"}},
		{"a file of manifests", "plain", true, []string{"p"}},
	} {
		if diff := cmp.Diff(tc.want, names(tc.path, tc.recursive)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
