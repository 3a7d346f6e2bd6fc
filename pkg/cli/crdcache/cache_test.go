package crdcache

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// crdTarball writes a tarball of one CustomResourceDefinition.
func crdTarball(t *testing.T, name string) []byte {
	t.Helper()
	const text = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sparks.example.org}
spec:
  group: example.org
  names: {plural: sparks, singular: spark, kind: Spark}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	var out bytes.Buffer
	if _, err := archive.Write(&out, fstest.MapFS{"crds/spark.yaml": {Data: []byte(text)}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCache fills a folder, looks at it, takes a tarball out again, and empties it, without cluster or network.
func TestCache(t *testing.T) {
	t.Chdir(t.TempDir())
	data := crdTarball(t, "crds.tgz")
	const url = "https://example.org/spark/3.5.1/crds.tar.gz"
	run := func(want int, stdin string, args ...string) (string, string) {
		t.Helper()
		return commandtest.Expect(t, New, want, stdin, append([]string{"cache", "--cache-dir", "carry"}, args...)...)
	}
	for _, tc := range []struct {
		reason, stdin string
		args          []string
		code          int
		out, errs     string
	}{
		{"looking makes no folder", "", []string{"list"}, command.ExitError, "", "there is no cache folder carry"},
		{"a URL is a URL", "", []string{"import", "example.org/x", "crds.tgz"}, command.ExitError, "", "must begin with https://"},
		{"credentials do not belong into URLs", "", []string{"import", "https://u:p@example.org/x", "crds.tgz"}, command.ExitError, "", "secretRef"},
		{"references have a digest", "", []string{"import", "oci://example.org/x:v1", "crds.tgz"}, command.ExitError, "", "digest"},
		{"files exist", "", []string{"import", url, "gone.tgz"}, command.ExitError, "", "gone.tgz"},
		{"two arguments", "", []string{"import", url}, command.ExitUsage, "", "takes a URL and a file"},
		{"tarballs are checked", "<html>", []string{"import", url, "-"}, command.ExitError, "", "an HTML page"},
		{"and their digests", "", []string{"import", url, "crds.tgz", "--sha256", strings.Repeat("0", 64)}, command.ExitError, "", "content has digest"},
		{"nothing of that stays", "", []string{"list"}, 0, "the cache carry is empty", ""},
		{"a file", "", []string{"import", url, "crds.tgz"}, 0, "with 1 CRDs as " + url, ""},
		{"the standard input", string(data), []string{"import", "configmap://lab/crds", "-"}, 0, "configmap://lab/crds", ""},
		{"entries are listed", "", []string{"list"}, 0, url, ""},
		{"formats exist", "", []string{"list", "-o", "table"}, command.ExitUsage, "", "invalid output format"},
		{"and checked", "", []string{"verify"}, 0, "2 entries, all good", ""},
		{"one goes out again", "", []string{"export", url, "out.tgz"}, 0, "exported sha256:", ""},
		{"if it is there", "", []string{"export", "https://example.org/other", "out.tgz"}, command.ExitError, "", "the cache has no entry"},
		{"nothing is removed without a reason", "", []string{"prune"}, 0, "nothing to remove", ""},
		{"nor what was used lately", "", []string{"prune", "--older-than", "1h", "--max-size", "1Mi"}, 0, "nothing to remove", ""},
		{"sizes are sizes", "", []string{"prune", "--max-size", "much"}, command.ExitUsage, "", "write it like 500Mi"},
		{"one is removed by its URL", "", []string{"prune", "configmap://lab/crds"}, 0, "removed ", ""},
	} {
		out, errs := run(tc.code, tc.stdin, tc.args...)
		if !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) {
			t.Errorf("%s: %v says\n%s%s", tc.reason, tc.args, out, errs)
		}
	}
	if exported, err := os.ReadFile("out.tgz"); err != nil || !bytes.Equal(exported, data) {
		t.Errorf("the same bytes come out: %v", err)
	}
	if out, _ := run(0, "", "export", url, "-"); out != string(data) {
		t.Error("- is the standard output")
	}
	var entries []struct{ Key, URL, Digest string }
	listed, _ := run(0, "", "list", "-o", "json")
	if err := json.Unmarshal([]byte(listed), &entries); err != nil || len(entries) != 1 || entries[0].URL != url {
		t.Fatalf("%s: %v", listed, err)
	}
	contents, err := filepath.Glob("carry/" + entries[0].Key + "/content-*/files/crds/spark.yaml")
	if err != nil || len(contents) != 1 {
		t.Fatalf("%v, %v", contents, err)
	}
	if err := os.WriteFile(contents[0], []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := run(command.ExitError, "", "verify")
	if !strings.Contains(out, "damaged: crds/spark.yaml is not what meta.json says") || !strings.Contains(errs, "1 of 1 entries are damaged") {
		t.Errorf("damage is found: %s%s", out, errs)
	}
	if out, _ := run(0, "", "prune", "--all"); !strings.Contains(out, "removed") {
		t.Errorf("and removed: %s", out)
	}
	if out, _ := run(0, "", "list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("nothing is left: %s", out)
	}
}
