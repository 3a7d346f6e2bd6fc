package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
)

// says runs a command with an input, and fails if its exit code is another.
func says(t *testing.T, code int, in string, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := Main(args, strings.NewReader(in), &stdout, &stderr); got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// TestRepo goes through all commands of repositories, with the catalog as one.
func TestRepo(t *testing.T) {
	home, dist := filepath.Join(t.TempDir(), "home"), t.TempDir()
	t.Setenv("KUDO_HOME", home)
	t.Setenv("SOURCE_DATE_EPOCH", "")
	catalog, err := filepath.Glob("../../operators/catalog/*/operator")
	if err != nil || len(catalog) == 0 {
		t.Fatal("no catalog", err)
	}
	for _, dir := range catalog {
		says(t, 0, "", "package", "create", dir, "-d", dist)
	}
	says(t, 0, "", "repo", "index", dist)
	first, _ := os.ReadFile(filepath.Join(dist, "index.yaml"))
	says(t, command.ExitError, "", "repo", "index", dist)
	says(t, 0, "", "repo", "index", dist, "--overwrite")
	if again, _ := os.ReadFile(filepath.Join(dist, "index.yaml")); !bytes.Equal(first, again) {
		t.Error("the same archives give the same index")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.FileServer(http.Dir(dist)).ServeHTTP(w, r)
	}))
	defer server.Close()

	if _, errs := says(t, command.ExitError, "", "install", "hello"); !strings.Contains(errs, "no repository is configured: add one by kubectl kudo repo add NAME URL") {
		t.Errorf("there is a repository at first:\n%s", errs)
	}
	says(t, command.ExitError, "", "repo", "add", "ours", server.URL)
	says(t, command.ExitUsage, "hunter2\n", "repo", "add", "ours", "http://packages.example.com", "--username", "me", "--password-stdin")
	says(t, command.ExitUsage, "", "repo", "add", "ours", server.URL, "--username", "me", "--password-stdin")
	says(t, 0, "hunter2\n", "repo", "add", "ours", server.URL, "--username", "me", "--password-stdin")
	says(t, command.ExitError, "hunter2\n", "repo", "add", "ours", server.URL, "--username", "me", "--password-stdin")
	says(t, command.ExitError, "", "repo", "context", "other")
	says(t, 0, "", "repo", "context", "ours")
	for _, format := range []string{"", "yaml", "json"} {
		if out, _ := says(t, 0, "", "repo", "list", "--output="+format); !strings.Contains(out, "ours") || strings.Contains(out, "hunter2") {
			t.Errorf("credentials are not listed:\n%s", out)
		}
	}
	if info, err := os.Stat(filepath.Join(home, "repository", "repositories.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials can be read by the user only: %v %v", info, err)
	}

	out, _ := says(t, 0, "", "search", "HELL", "-a", "-o", "json")
	var found []struct{ Name, OperatorVersion string }
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 || found[0].Name != "hello" {
		t.Errorf("search: %v\n%s", err, out)
	}
	if out, _ := says(t, 0, "", "search", "nothing-like-it", "-o", "json"); out != "[]\n" {
		t.Errorf("an empty list is a list: %s", out)
	}
	says(t, command.ExitUsage, "", "install", "hello", "--operator-version", "^abc")
	says(t, command.ExitUsage, "", "package", "list", "tasks", "hello", "--operator-version", "^abc")
	url := server.URL + "/" + filepath.Base(archiveOf(t, dist, "hello"))
	for _, args := range [][]string{{"hello"}, {"hello", "--repo", "ours", "--operator-version", ">=0.0.1"}, {url}} {
		for what, want := range map[string]string{"parameters": "REPLICAS", "plans": "Plan deploy", "tasks": "Apply"} {
			if out, _ := says(t, 0, "", append([]string{"package", "list", what}, args...)...); !strings.Contains(out, want) {
				t.Errorf("package list %s looks into repositories (%v):\n%s", what, args, out)
			}
		}
	}
	if out, _ := says(t, 0, "", "package", "render", "hello"); !strings.Contains(out, "kind: Deployment") {
		t.Errorf("package render looks into repositories:\n%s", out)
	}
	if _, errs := says(t, command.ExitError, "", "package", "verify", url); !strings.Contains(errs, "download it first") {
		t.Errorf("package verify says what it does not do:\n%s", errs)
	}

	tool := &command.Env{Out: io.Discard, Err: io.Discard}
	for _, o := range []command.VersionFlags{{}, {Repo: "ours"}, {OperatorVersion: ">=0.0.1"}} {
		packages, err := tool.ResolvePackages(context.Background(), "hello", o)
		if err != nil || len(packages) != 1 || packages[0].Operator.Name != "hello" {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := tool.ResolvePackages(context.Background(), url, command.VersionFlags{}); err != nil {
		t.Errorf("an archive by its URL: %v", err)
	}
	server.Close()
	for _, args := range [][]string{{"repo", "add", "away", server.URL}, {"search", "hello"}} {
		if _, errs := says(t, command.ExitError, "", args...); !strings.Contains(errs, server.URL) || strings.Contains(errs, "cluster") {
			t.Errorf("%v: a repository that is away is not the cluster:\n%s", args, errs)
		}
	}
	says(t, 0, "", "repo", "remove", "ours")
	says(t, command.ExitError, "", "repo", "rm", "ours")
	says(t, command.ExitError, "", "search")
}

func archiveOf(t *testing.T, dir, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, name+"-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

// TestRepoIndex: URLs, merging, times, and what is no package.
func TestRepoIndex(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	old, fresh := t.TempDir(), t.TempDir()
	for _, dir := range []string{old, fresh} {
		says(t, 0, "", "package", "create", "../../operators/catalog/hello/operator", "-d", dir)
	}
	says(t, 0, "", "package", "create", "../../operators/catalog/guestbook/operator", "-d", old)
	says(t, 0, "", "repo", "index", old, "--url", "https://old.example.com/x/")
	if err := os.WriteFile(filepath.Join(fresh, "broken.tgz"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := says(t, 0, "", "repo", "index", fresh, "--url", "https://new.example.com", "--merge", filepath.Join(old, "index.yaml"))
	if !strings.Contains(errs, "left out: broken.tgz") {
		t.Errorf("what is left out is named: %s", errs)
	}
	text, err := os.ReadFile(filepath.Join(fresh, "index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"https://new.example.com/hello-", "https://old.example.com/x/guestbook-", `generated: "1970-01-01T00:00:00Z"`} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("not once: %s\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old.example.com/x/hello") {
		t.Errorf("those of the folder win:\n%s", text)
	}
	says(t, command.ExitUsage, "", "repo", "index", fresh, "-w", "--url", "folder")
	says(t, command.ExitError, "", "repo", "index", filepath.Join(fresh, "nowhere"))
}
