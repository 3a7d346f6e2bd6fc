package repos

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

const someDigest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// entry is an entry of an index.
func entry(name, version, more string) string {
	return "  - {name: " + name + ", operatorVersion: " + version + ", digest: " + someDigest + ", urls: [" + name + "-" + version + ".tgz]" + more + "}\n"
}

// served is an index with two versions of one package, and a package without appVersion.
func served() string {
	return "apiVersion: v1\nentries:\n" +
		"  MySQL:\n" + entry("MySQL", "1.2.0", `, appVersion: "8.0", description: "A database\nfor all"`) + entry("MySQL", "1.10.0", `, appVersion: "8.0"`) +
		"  web:\n" + entry("web", "0.1.0", "")
}

// repositoryOf serves an index, and makes it the repository in use. It returns its URL.
func repositoryOf(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("KUDO_HOME", t.TempDir())
	commandtest.Expect(t, New, 0, "", "repo", "add", "ours", server.URL, "-f")
	commandtest.Expect(t, New, 0, "", "repo", "context", "ours")
	return server.URL
}

// serve answers requests for index.yaml with a text.
func serve(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}
}

// TestSearch checks which packages are found, and in which versions.
func TestSearch(t *testing.T) {
	repositoryOf(t, serve(served()))
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string // name and version
	}{
		"All":         {"the highest version of each package", nil, []string{"MySQL 1.10.0", "web 0.1.0"}},
		"Part":        {"a part of the name", []string{"sql"}, []string{"MySQL 1.10.0"}},
		"LetterCase":  {"in any letter case", []string{"WEB"}, []string{"web 0.1.0"}},
		"Versions":    {"all versions, the highest first", []string{"sql", "-a"}, []string{"MySQL 1.10.0", "MySQL 1.2.0"}},
		"None":        {"no package", []string{"redis"}, []string{}},
		"Pattern":     {"a part is no pattern", []string{".*"}, []string{}},
		"Description": {"descriptions are not searched", []string{"database"}, []string{}},
		"Repo":        {"in a named repository", []string{"--repo", "ours", "web"}, []string{"web 0.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := commandtest.Expect(t, NewSearch, 0, "", append([]string{"search", "-o", "json"}, tc.args...)...)
			var found []struct{ Name, OperatorVersion string }
			if err := json.Unmarshal([]byte(out), &found); err != nil || found == nil {
				t.Fatalf("%s: no list: %v\n%s", tc.reason, err, out)
			}
			got := []string{}
			for _, f := range found {
				got = append(got, f.Name+" "+f.OperatorVersion)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	out, _ := commandtest.Expect(t, NewSearch, 0, "", "search", "-a")
	want := "NAME    APP VERSION   OPERATOR VERSION   DESCRIPTION\nMySQL   8.0           1.10.0\nMySQL   8.0           1.2.0              A database for all\nweb     -             0.1.0\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("a table, with a description on one line: -want +got:\n%s", diff)
	}
	if out, _ := commandtest.Expect(t, NewSearch, 0, "", "search", "redis"); out != "no package found\n" {
		t.Errorf("no package is no error: %s", out)
	}
	if _, errs := commandtest.Expect(t, NewSearch, command.ExitError, "", "search", "--repo", "theirs"); !strings.Contains(errs, "theirs") {
		t.Errorf("the repository is named: %s", errs)
	}
}

// TestSearchFails checks what is said of a repository that has no index.
func TestSearchFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
	}{
		"Absent":    {"the index does not exist", http.NotFound},
		"Page":      {"a page of a web server", serve("<html><body>login</body></html>")},
		"Broken":    {"no YAML", serve("a: [")},
		"Forbidden": {"the user has no access", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
	} {
		t.Run(name, func(t *testing.T) {
			url := repositoryOf(t, tc.handler)
			out, errs := commandtest.Expect(t, NewSearch, command.ExitError, "", "search")
			if out != "" || !strings.Contains(errs, url) && !strings.Contains(errs, "ours") || strings.Contains(errs, "the cluster cannot be reached") {
				t.Errorf("%s: the error names neither repository nor URL:\n%s%s", tc.reason, out, errs)
			}
		})
	}
}

// TestAddChecks checks that a repository is added only if its index can be read, and that credentials are sent.
func TestAddChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in string
		args       []string
		handler    http.HandlerFunc
		code       int
		want       string
	}{
		"Read":      {"the index can be read", "", nil, serve(served()), 0, "repository theirs added\n"},
		"NoIndex":   {"there is none", "", nil, http.NotFound, command.ExitError, "(--skip-check adds it all the same)"},
		"SkipCheck": {"the user skips the check", "", []string{"--skip-check"}, http.NotFound, 0, "repository theirs added\n"},
		"Token": {"a token is sent", "hunter2\n", []string{"--token-stdin"}, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer hunter2" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			serve(served())(w, r)
		}, 0, "repository theirs added\n"},
		"Password": {"so are a user name and a password", "hunter2\r\n", []string{"--username", "me", "--password-stdin"}, func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			serve(served())(w, r)
		}, 0, "repository theirs added\n"},
		"WrongToken":  {"a wrong token is refused", "hunter2\n", []string{"--token-stdin"}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, command.ExitError, "(--skip-check adds it all the same)"},
		"UserAlone":   {"a user name has a password", "", []string{"--username", "me"}, serve(served()), command.ExitUsage, "a user name requires a password"},
		"TokenAndMe":  {"a token has no user name", "hunter2\n", []string{"--username", "me", "--token-stdin"}, serve(served()), command.ExitUsage, "a token cannot be used with a user name"},
		"BlankSecret": {"blanks inside a secret stay, a second line is refused", "hunter2\n \nx\n", []string{"--token-stdin"}, serve(served()), command.ExitUsage, "stdin must hold the secret as one line"},
		"CAMissing":   {"the file of certificates exists", "", []string{"--ca-file", "none.pem"}, serve(served()), command.ExitError, "none.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUDO_HOME", t.TempDir())
			t.Chdir(t.TempDir())
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			out, errs := commandtest.Expect(t, New, tc.code, tc.in, append([]string{"repo", "add", "theirs", server.URL}, tc.args...)...)
			if !strings.Contains(out+errs, tc.want) || strings.Contains(out+errs, "hunter2") {
				t.Errorf("%s: no %q in, or a secret in\n%s%s", tc.reason, tc.want, out, errs)
			}
			list, _ := commandtest.Expect(t, New, 0, "", "repo", "list")
			if added := strings.Contains(list, server.URL); added != (tc.code == 0) {
				t.Errorf("%s: it is listed: %t\n%s", tc.reason, added, list)
			}
		})
	}
}

// TestRemoveAll checks that a removal that names one repository wrongly removes none.
func TestRemoveAll(t *testing.T) {
	repositoryOf(t, serve(served()))
	before, _ := commandtest.Expect(t, New, 0, "", "repo", "list", "-o", "json")
	for _, args := range [][]string{{"ours", "none"}, {"ours", "ours"}, {"none"}, {"OURS"}, {"../ours"}} {
		commandtest.Expect(t, New, command.ExitError, "", append([]string{"repo", "remove"}, args...)...)
		if after, _ := commandtest.Expect(t, New, 0, "", "repo", "list", "-o", "json"); after != before {
			t.Errorf("remove %v changes the list:\n%s", args, after)
		}
	}
	commandtest.Expect(t, New, command.ExitError, "", "repo", "context", "none")
	if after, _ := commandtest.Expect(t, New, 0, "", "repo", "list", "-o", "json"); after != before {
		t.Errorf("a repository that is not known is not used:\n%s", after)
	}
}

// TestIndexMerge checks whose URLs and entries an index has that was merged.
func TestIndexMerge(t *testing.T) {
	url := repositoryOf(t, serve(served()))
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string
		lack   string
	}{
		"Repo":    {"URLs of a repository are whole", []string{"--merge-repo", "ours"}, []string{url + "/web-0.1.0.tgz", url + "/MySQL-1.10.0.tgz"}, ""},
		"URL":     {"so are those of an index at a URL", []string{"--merge", url + "/index.yaml"}, []string{url + "/web-0.1.0.tgz"}, ""},
		"Folder":  {"which may be that of its folder", []string{"--merge", url}, []string{url + "/web-0.1.0.tgz"}, ""},
		"File":    {"those of a file stay as they are", []string{"--merge", "other.yaml"}, []string{"web-0.1.0.tgz"}, url},
		"Nothing": {"without, there are no entries", nil, []string{"1970-01-02T00:00:00Z"}, "web-0.1.0.tgz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("other.yaml", []byte(served()), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir("packages", 0o755); err != nil {
				t.Fatal(err)
			}
			commandtest.Expect(t, New, 0, "", append([]string{"repo", "index", "packages"}, tc.args...)...)
			text, err := os.ReadFile(filepath.Join("packages", "index.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, text)
				}
			}
			if tc.lack != "" && strings.Contains(string(text), tc.lack) {
				t.Errorf("%s: %q is in\n%s", tc.reason, tc.lack, text)
			}
			if out, _ := commandtest.Expect(t, New, 0, "", append([]string{"repo", "index", "packages", "-w"}, tc.args...)...); !strings.HasSuffix(out, "is up to date\n") {
				t.Errorf("%s: the same input gives the same index: %s", tc.reason, out)
			}
		})
	}
}

// TestIndexSkips checks that what is no package is left out with a warning.
func TestIndexSkips(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Setenv("SOURCE_DATE_EPOCH", "")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"broken.tgz": "no archive", "README.md": "text"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, errs := commandtest.Expect(t, New, 0, "", "repo", "index", ".")
	if out != "index created: index.yaml\n" || strings.Count(errs, "Warning: left out: ") != 1 || !strings.Contains(errs, "broken.tgz") {
		t.Errorf("one warning, which names the archive:\n%s%s", out, errs)
	}
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	commandtest.Expect(t, New, command.ExitError, "", "repo", "index", "file")
}
