package crdcache

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/crdtarball"
)

// runCache runs a command of the cache in the folder carry.
func runCache(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	return commandtest.Expect(t, New, code, "", append([]string{"cache", "--cache-dir", "carry"}, args...)...)
}

// filled fills the cache in the folder carry with tarballs of these URLs, each last used so long ago.
func filled(t *testing.T, used map[string]time.Duration) {
	t.Helper()
	t.Chdir(t.TempDir())
	crdTarball(t, "crds.tgz")
	for url, ago := range used {
		runCache(t, 0, "import", url, "crds.tgz")
		at := time.Now().Add(-ago)
		if err := os.Chtimes(filepath.Join("carry", crdtarball.Key(url)), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// listed returns the URLs of the cache in their order.
func listed(t *testing.T) []string {
	t.Helper()
	out, _ := runCache(t, 0, "list", "-o", "json")
	var entries []struct {
		URL   string
		Bytes int64
	}
	if err := json.Unmarshal([]byte(out), &entries); err != nil {
		t.Fatal(err)
	}
	urls := []string{}
	for _, e := range entries {
		urls = append(urls, strings.TrimPrefix(e.URL, "https://example.org/"))
	}
	return urls
}

// TestPrune checks which tarballs are removed, and which stay.
func TestPrune(t *testing.T) {
	const now, day, month = "https://example.org/now", "https://example.org/day", "https://example.org/month"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		left   []string
		out    string
	}{
		"Nothing":     {"without a reason, all stay", nil, []string{"now", "day", "month"}, "nothing to remove\n"},
		"Older":       {"what was not used for so long", []string{"--older-than", "240h"}, []string{"now", "day"}, month},
		"OlderAll":    {"of any age above", []string{"--older-than", "12h"}, []string{"now"}, day},
		"OlderNone":   {"nothing is as old", []string{"--older-than", "9000h"}, []string{"now", "day", "month"}, "nothing to remove\n"},
		"Named":       {"by its URL", []string{day}, []string{"now", "month"}, day},
		"Key":         {"by its key", []string{crdtarball.Key(day)}, []string{"now", "month"}, day},
		"KeyBegins":   {"or the first digits of it", []string{crdtarball.Key(day)[:8]}, []string{"now", "month"}, day},
		"Two":         {"several", []string{now, month}, []string{"day"}, now},
		"Twice":       {"one that is named twice is removed once", []string{day, day}, []string{"now", "month"}, day},
		"Size":        {"nothing is small enough", []string{"--max-size", "0"}, []string{}, now},
		"SizeEnough":  {"all are small enough", []string{"--max-size", "1Gi"}, []string{"now", "day", "month"}, "nothing to remove\n"},
		"SizeAndName": {"what is named makes room for the others", []string{"--max-size", "1Gi", now}, []string{"day", "month"}, now},
		"All":         {"all", []string{"--all"}, []string{}, month},
	} {
		t.Run(name, func(t *testing.T) {
			filled(t, map[string]time.Duration{now: 0, day: 24 * time.Hour, month: 720 * time.Hour})
			out, _ := runCache(t, 0, append([]string{"prune"}, tc.args...)...)
			if !strings.Contains(out, tc.out) {
				t.Errorf("%s: no %q in\n%s", tc.reason, tc.out, out)
			}
			if diff := cmp.Diff(tc.left, listed(t)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPruneRefuses checks that a wrong command line removes nothing, not even what it names rightly.
func TestPruneRefuses(t *testing.T) {
	const url = "https://example.org/a"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Unknown":      {"a name of no entry", []string{url, "https://example.org/b"}, command.ExitError, "the cache has no entry"},
		"Short":        {"too few digits of a key", []string{crdtarball.Key(url)[:7]}, command.ExitError, "the first 8 digits of it"},
		"SizeNegative": {"a size is not negative", []string{"--all", "--max-size=-1Mi"}, command.ExitUsage, `invalid --max-size "-1Mi": write it like 500Mi`},
		"SizeText":     {"a size is a number", []string{"--all", "--max-size", "500MB!"}, command.ExitUsage, "write it like 500Mi"},
		"AgeNegative":  {"an age is not negative", []string{"--all", "--older-than=-1h"}, command.ExitUsage, "--older-than -1h0m0s: must not be negative"},
		"AgeNoUnit":    {"an age has a unit", []string{"--all", "--older-than", "720"}, command.ExitUsage, "missing unit"},
	} {
		t.Run(name, func(t *testing.T) {
			filled(t, map[string]time.Duration{url: 0})
			if _, errs := runCache(t, tc.code, append([]string{"prune"}, tc.args...)...); !strings.Contains(errs, tc.want) {
				t.Errorf("%s: no %q in\n%s", tc.reason, tc.want, errs)
			}
			if got := listed(t); len(got) != 1 {
				t.Errorf("%s: the entry was removed", tc.reason)
			}
		})
	}
}

// TestPruneDamaged checks that an entry that cannot be used is removed without a reason, and others stay.
func TestPruneDamaged(t *testing.T) {
	const good, bad = "https://example.org/good", "https://example.org/bad"
	filled(t, map[string]time.Duration{good: 0, bad: time.Hour})
	if err := os.WriteFile(filepath.Join("carry", crdtarball.Key(bad), "meta.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := runCache(t, 0, "list")
	if !strings.Contains(out, crdtarball.Key(bad)[:12]) || !strings.Contains(out, "PROBLEM") {
		t.Errorf("a damaged entry is listed with its problem:\n%s", out)
	}
	out, errs := runCache(t, command.ExitError, "verify", "-o", "yaml")
	if !strings.Contains(out, "problem: ") || !strings.Contains(errs, "1 of 2 entries are damaged: import them again, or remove them by kubectl kudo cache prune") {
		t.Errorf("a check in a format has an error, too:\n%s%s", out, errs)
	}
	runCache(t, 0, "prune")
	if diff := cmp.Diff([]string{"good"}, listed(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if out, _ := runCache(t, 0, "verify"); !strings.HasSuffix(out, "1 entries, all good\n") {
		t.Errorf("what is left is good:\n%s", out)
	}
}

// TestListTable checks the columns of a list, and that a folder of another name is no entry.
func TestListTable(t *testing.T) {
	filled(t, map[string]time.Duration{"https://example.org/new": 0, "https://example.org/old": 50 * time.Hour})
	if err := os.MkdirAll("carry/other", 0o755); err != nil {
		t.Fatal(err)
	}
	out, _ := runCache(t, 0, "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !cmp.Equal(strings.Fields(lines[0]), []string{"KEY", "SIZE", "USED", "DIGEST", "URL", "PROBLEM"}) {
		t.Fatalf("a header and two rows:\n%s", out)
	}
	if !strings.HasSuffix(lines[1], "https://example.org/new") || !strings.HasSuffix(lines[2], "https://example.org/old") || !strings.Contains(lines[2], "2d2h ago") {
		t.Errorf("the one used last stands first:\n%s", out)
	}
	for _, line := range lines[1:] {
		if digest := strings.Fields(line)[4]; !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+12 {
			t.Errorf("the digest is %q in\n%s", digest, out)
		}
	}
}

// TestShortDigest checks how much of a digest is shown.
func TestShortDigest(t *testing.T) {
	for _, tc := range []struct{ reason, digest, want string }{
		{"twelve digits", "sha256:" + strings.Repeat("0123456789abcdef", 4), "sha256:0123456789ab"},
		{"no more than there are", "sha256:01", "sha256:01"},
		{"none of an entry that cannot be read", "", ""},
	} {
		if got := shortDigest(tc.digest); got != tc.want {
			t.Errorf("%s: %q", tc.reason, got)
		}
	}
}

// TestExportRefuses checks that no file is written, or changed, if an entry cannot be exported.
func TestExportRefuses(t *testing.T) {
	const url = "https://example.org/a"
	filled(t, map[string]time.Duration{url: 0})
	if err := os.WriteFile("kept.tgz", []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	contents, err := filepath.Glob("carry/" + crdtarball.Key(url) + "/content-*/files/crds/spark.yaml")
	if err != nil || len(contents) != 1 {
		t.Fatalf("%v, %v", contents, err)
	}
	if err := os.WriteFile(contents[0], []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"kept.tgz", "new.tgz", "-"} {
		if out, errs := runCache(t, command.ExitError, "export", url, file); out != "" || !strings.HasPrefix(errs, "Error: ") {
			t.Errorf("%s: a damaged entry is exported: %s%s", file, out, errs)
		}
	}
	if kept, err := os.ReadFile("kept.tgz"); err != nil || !bytes.Equal(kept, []byte("kept")) {
		t.Errorf("the file was changed: %q, %v", kept, err)
	}
	if _, err := os.Stat("new.tgz"); err == nil {
		t.Error("a file was written")
	}
	runCache(t, command.ExitUsage, "export", url)
}

// TestImportFormats checks what a program is told of an import, and that an import may be repeated.
func TestImportFormats(t *testing.T) {
	t.Chdir(t.TempDir())
	crdTarball(t, "crds.tgz")
	const url = "https://example.org/a"
	var keys []string
	for range 2 {
		out, _ := runCache(t, 0, "import", url, "crds.tgz", "-o", "json")
		var imported struct {
			Key, URL, Digest string
			CRDs             []string
		}
		if err := json.Unmarshal([]byte(out), &imported); err != nil {
			t.Fatal(err)
		}
		if imported.URL != url || !cmp.Equal(imported.CRDs, []string{"sparks.example.org"}) || !strings.HasPrefix(imported.Digest, "sha256:") {
			t.Errorf("got %+v", imported)
		}
		keys = append(keys, imported.Key)
	}
	if keys[0] != crdtarball.Key(url) || keys[1] != keys[0] {
		t.Errorf("the key is that of the URL: %v", keys)
	}
	if got := listed(t); len(got) != 1 {
		t.Errorf("a second import replaces the first: %v", got)
	}
	if _, errs := runCache(t, command.ExitUsage, "import", url, "crds.tgz", "-o", "table"); !strings.Contains(errs, "invalid output format") {
		t.Errorf("formats exist: %s", errs)
	}
	for _, pin := range []string{"abc", strings.Repeat("g", 64), "sha256:" + strings.Repeat("0", 64)} {
		if _, errs := runCache(t, command.ExitError, "import", "https://example.org/b", "crds.tgz", "--sha256", pin); !strings.HasPrefix(errs, "Error: ") {
			t.Errorf("%s is no digest: %s", pin, errs)
		}
	}
	if got := listed(t); len(got) != 1 {
		t.Errorf("an import that fails leaves nothing: %v", got)
	}
}
