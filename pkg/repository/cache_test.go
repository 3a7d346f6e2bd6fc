package repository

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// storeSample stores an index in a cache and returns the cache and the name of its file.
func storeSample(t *testing.T, r Repository, text string) (cache, string) {
	t.Helper()
	x, err := ParseIndex([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := cache{t.TempDir()}
	if err := c.storeIndex(r, x, validators{ETag: `"1"`, LastModified: "then"}); err != nil {
		t.Fatal(err)
	}
	return c, c.indexFile(r)
}

const smallIndex = "apiVersion: v1\nentries:\n  a:\n  - operatorVersion: 1.0.0\n  b:\n  - operatorVersion: 2.0.0\n"

// TestStoreIndex checks that an index of the cache answers as the one that was stored.
func TestStoreIndex(t *testing.T) {
	r := Repository{Name: "r", URL: "https://a.example"}
	c, name := storeSample(t, r, smallIndex)
	x, known, ok := c.loadIndex(r)
	if !ok {
		t.Fatal("the index was not kept")
	}
	defer func() { _ = x.Close() }()
	if want := (validators{`"1"`, "then"}); known != want {
		t.Errorf("got the validators %+v", known)
	}
	if diff := cmp.Diff([]string{"a", "b"}, x.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/2.0.0"}, versionsIn(t, x, "b")); diff != "" {
		t.Error(diff)
	}
	if err := c.storeIndex(r, x, known); err == nil || !strings.Contains(err.Error(), "only an index in memory") {
		t.Errorf("an index of the cache is not stored into its own file: %v", err)
	}
	for reason, other := range map[string]Repository{
		"another URL":      {Name: "r", URL: "https://b.example"},
		"another user":     {Name: "r", URL: "https://a.example", Username: "u", Password: "p"},
		"another token":    {Name: "r", URL: "https://a.example", Token: "t"},
		"another password": {Name: "r", URL: "https://a.example", Password: "p"},
	} {
		if _, _, ok := c.loadIndex(other); ok {
			t.Errorf("%s: a server may answer otherwise, and the index was loaded", reason)
		}
	}
	if err := os.Rename(name, name+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name+".real", name); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := c.loadIndex(r); ok {
		t.Error("a symbolic link is no file of the cache")
	}
}

// TestDamagedIndexIsNone checks that whatever is wrong with the file of an index means that there is none.
func TestDamagedIndexIsNone(t *testing.T) {
	const text = "- operatorVersion: 1.0.0\n"
	file := func(head cached, list string) string {
		head.URL = "https://a.example"
		line, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n" + list + text
	}
	fits := func(list string) string {
		return file(cached{List: int64(len(list)), Text: int64(len(text)), Packages: 1}, list)
	}
	const huge = "9223372036854775807"
	for _, tc := range []struct {
		reason, content string
		ok              bool
	}{
		{"a whole file", fits(fmt.Sprintf("a 0 %d\n", len(text))), true},
		{"an empty file", "", false},
		{"no line", "{}", false},
		{"no JSON", "x\n", false},
		{"a head that is longer than the buffer", strings.Repeat(" ", 1<<17) + "\n", false},
		{"a text that is cut", strings.TrimSuffix(fits("a 0 1\n"), "\n"), false},
		{"bytes behind the text", fits("a 0 1\n") + "x", false},
		{"a negative list", file(cached{List: -1, Text: int64(len(text)) + 1}, ""), false},
		{"a negative text", file(cached{List: int64(len(text)) + 1, Text: -1}, ""), false},
		{"more packages than bytes", file(cached{Text: int64(len(text)), Packages: 1 << 40}, ""), false},
		{"a negative number of packages", file(cached{Text: int64(len(text)), Packages: -1}, ""), false},
		{"a part without a length", fits("a 0\n"), false},
		{"a part with a negative offset", fits("a -1 1\n"), false},
		{"a part with a negative length", fits("a 0 -1\n"), false},
		{"a part behind the text", fits(fmt.Sprintf("a 1 %d\n", len(text))), false},
		{"a length that overflows", fits("a " + huge + " " + huge + "\n"), false},
		{"an offset that overflows", fits("a " + huge + " 1\n"), false},
		{"an index of another URL", strings.Replace(fits("a 0 1\n"), "a.example", "b.example", 1), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := Repository{Name: "r", URL: "https://a.example"}
			c := cache{t.TempDir()}
			write(t, filepath.Dir(c.indexFile(r)), map[string]string{filepath.Base(c.indexFile(r)): tc.content})
			x, _, ok := c.loadIndex(r)
			if ok != tc.ok {
				t.Fatalf("loaded: %t", ok)
			}
			if ok {
				defer func() { _ = x.Close() }()
				if diff := cmp.Diff([]string{"/1.0.0"}, versionsIn(t, x, "a")); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestForgetLeavesOthers checks that the indexes of repositories whose names begin alike stay.
func TestForgetLeavesOthers(t *testing.T) {
	c := cache{t.TempDir()}
	x, err := ParseIndex([]byte(smallIndex))
	if err != nil {
		t.Fatal(err)
	}
	store := func(r Repository) string {
		if err := c.storeIndex(r, x, validators{ETag: "1"}); err != nil {
			t.Fatal(err)
		}
		return c.indexFile(r)
	}
	gone := []string{store(Repository{Name: "a", URL: "https://a.example"}), store(Repository{Name: "a", URL: "https://b.example"})}
	stays := []string{store(Repository{Name: "a-b", URL: "https://a.example"}), store(Repository{Name: "ab", URL: "https://a.example"})}
	for range 2 { // forgetting again is no error
		if err := c.forget("a"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range gone {
		if ownFile(name) {
			t.Errorf("%s was not removed", filepath.Base(name))
		}
	}
	for _, name := range stays {
		if !ownFile(name) {
			t.Errorf("%s is that of another repository", filepath.Base(name))
		}
	}
	if err := (cache{filepath.Join(c.dir, "nowhere")}).forget("a"); err != nil {
		t.Errorf("a cache that does not exist: %v", err)
	}
}

// TestLoadArchive checks that only an archive with its digest is returned.
func TestLoadArchive(t *testing.T) {
	c, data := cache{t.TempDir()}, []byte("an archive")
	digest := digestOf(data)
	if _, ok := c.loadArchive(digest); ok {
		t.Error("nothing was stored yet")
	}
	for range 2 {
		if err := c.storeArchive(digest, data); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := c.loadArchive(digest); !ok || !bytes.Equal(got, data) {
		t.Errorf("got %q, %t", got, ok)
	}
	if info, err := os.Stat(c.archiveFile(digest)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive can be read by others: %v, %v", info, err)
	}
	if err := os.WriteFile(c.archiveFile(digest), []byte("another one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.loadArchive(digest); ok {
		t.Error("an archive that was changed has another digest")
	}
	if err := os.Remove(c.archiveFile(digest)); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, c.archiveFile(digest)); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.loadArchive(digest); ok {
		t.Error("a symbolic link is no file of the cache")
	}
}

// TestPruneKeepsWhatFits checks that folders stay, and that the bound itself is allowed.
func TestPruneKeepsWhatFits(t *testing.T) {
	c := cache{t.TempDir()}
	write(t, filepath.Join(c.dir, "archives"), map[string]string{"a": "12345", "b": "12345", "folder/c": strings.Repeat("x", 100)})
	if err := c.prune(10); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "archives", "*")); len(left) != 3 {
		t.Errorf("two archives of five bytes fit into ten: %v", left)
	}
	if err := c.prune(0); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "archives", "*")); len(left) != 1 || filepath.Base(left[0]) != "folder" {
		t.Errorf("a folder is no archive: %v", left)
	}
	if err := (cache{filepath.Join(c.dir, "nowhere")}).prune(1); err == nil {
		t.Error("a cache that cannot be read is an error")
	}
}
