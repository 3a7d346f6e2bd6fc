package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

// TestDefaultHome checks where kudo keeps repositories, and what a user without a home folder reads.
func TestDefaultHome(t *testing.T) {
	set := func(dir string) func(string) string {
		return func(name string) string { return map[string]string{"KUDO_HOME": dir, "HOME": "other"}[name] }
	}
	user := func() (string, error) { return "me", nil }
	unknown := func() (string, error) { return "", errors.New("$HOME is not defined") }
	for _, tc := range []struct {
		reason    string
		env       func(string) string
		user      func() (string, error)
		want, err string
	}{
		{"the variable goes before the home folder", set("mine"), user, "mine", ""},
		{"the variable suffices without a home folder", set("mine"), unknown, "mine", ""},
		{"the home folder, if the variable is empty", set(""), user, filepath.Join("me", ".kudo"), ""},
		{"neither", set(""), unknown, "", "where kudo keeps repositories is not known: set --home or KUDO_HOME: $HOME is not defined"},
	} {
		got, err := DefaultHome(tc.env, tc.user)
		if got.Dir != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %q, %v", tc.reason, got.Dir, err)
		}
	}
}

// TestSecretIsHidden checks that no verb prints a password, neither alone nor within its repository.
func TestSecretIsHidden(t *testing.T) {
	r := Repository{Name: "a", URL: "https://h", Username: "u", Password: "hunter2", Token: "hunter2"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{r, &r, r.Password, []Secret{r.Token}, map[string]Repository{"a": r}} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "hunter2") {
				t.Errorf("%s of %T shows the secret: %s", verb, value, text)
			}
		}
	}
	if err := errors.Join(fmt.Errorf("%w: %v", fs.ErrInvalid, r)); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error shows the secret: %v", err)
	}
}

// TestValidateTexts checks that a refusal names the repository and what to do, and shows no credentials.
func TestValidateTexts(t *testing.T) {
	for _, tc := range []struct {
		reason string
		r      Repository
		want   string
	}{
		{"a name with a slash", Repository{Name: "a/b", URL: "https://h"}, `"a/b" cannot name a repository: use letters, digits and -`},
		{"no name", Repository{URL: "https://h"}, `"" cannot name a repository: use letters, digits and -`},
		{"a fragment, which may be secret", Repository{Name: "a", URL: "https://h/x#y"}, "repository a: the URL https://h/x must be that of the folder that holds index.yaml, without ? and #"},
		{"a token besides a user name", Repository{Name: "a", URL: "https://h", Token: "hunter2", Username: "u"}, "repository a: a token cannot be used with a user name and a password"},
		{"a password without a user name", Repository{Name: "a", URL: "https://h", Password: "hunter2"}, "repository a: a user name requires a password, and a password requires a user name"},
		{"a token for a folder", Repository{Name: "a", URL: "file:///x", Token: "hunter2"}, "repository a: a folder of this disk takes no credentials"},
		{"a password for a folder", Repository{Name: "a", URL: "file:///x", Username: "u", Password: "hunter2"}, "repository a: a folder of this disk takes no credentials"},
		{"a password in clear", Repository{Name: "a", URL: "http://h/x", Username: "u", Password: "hunter2"}, "repository a: credentials would be readable on their way to http://h/x: use https"},
		{"a host that begins like this machine", Repository{Name: "a", URL: "http://localhost.example.com", Token: "hunter2"}, "repository a: credentials would be readable on their way to http://localhost.example.com: use https"},
		{"this machine by its IPv6 address", Repository{Name: "a", URL: "http://[::1]:8080", Token: "hunter2"}, ""},
		{"this machine by its name", Repository{Name: "a", URL: "http://localhost:8080", Token: "hunter2"}, ""},
	} {
		got := ""
		if err := tc.r.Validate(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// repositories are two, of which b is in use.
func repositories() *Repositories {
	return &Repositories{Version: IndexVersion, Context: "b", Repositories: []Repository{{Name: "a", URL: "https://a"}, {Name: "b", URL: "https://b"}}}
}

// TestRepositories checks what a change makes of two repositories, and that a refused change leaves them.
func TestRepositories(t *testing.T) {
	one := func(name string) []Repository { return []Repository{{Name: name, URL: "https://" + name}} }
	for name, tc := range map[string]struct {
		reason string
		change func(*Repositories) error
		want   Repositories
		err    string
	}{
		"Add": {"one that is added is not in use", func(l *Repositories) error { return l.Add(Repository{Name: "c", URL: "https://c"}) },
			Repositories{Version: IndexVersion, Context: "b", Repositories: append(repositories().Repositories, one("c")...)}, ""},
		"AddFirst": {"unless none was", func(l *Repositories) error {
			l.Context = ""
			return l.Add(Repository{Name: "c", URL: "https://c"})
		}, Repositories{Version: IndexVersion, Context: "c", Repositories: append(repositories().Repositories, one("c")...)}, ""},
		"AddTwice": {"a name is taken once", func(l *Repositories) error { return l.Add(Repository{Name: "a", URL: "https://c"}) }, *repositories(),
			`there is a repository "a" already: take another name, or remove that one by kubectl kudo repo remove a first`},
		"AddInvalid": {"an invalid one is not added", func(l *Repositories) error { return l.Add(Repository{Name: "c", URL: "ftp://c"}) }, *repositories(), "repository c: "},
		"Remove":     {"one that is not in use", func(l *Repositories) error { return l.Remove("a") }, Repositories{Version: IndexVersion, Context: "b", Repositories: one("b")}, ""},
		"RemoveUsed": {"none is in use afterwards", func(l *Repositories) error { return l.Remove("b") }, Repositories{Version: IndexVersion, Context: "", Repositories: one("a")}, ""},
		"RemoveUnknown": {"one that is not there", func(l *Repositories) error { return l.Remove("c") }, *repositories(),
			`there is no repository "c": kubectl kudo repo list shows those that there are, repo add adds one`},
		"RemoveUnnamed": {"an empty name does not mean the one in use", func(l *Repositories) error { return l.Remove("") }, *repositories(),
			"a repository is named by its name, which cannot be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got := repositories()
			err := tc.change(got)
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGet checks which repository a name means.
func TestGet(t *testing.T) {
	for _, tc := range []struct {
		reason, context, name, want, err string
	}{
		{"by its name", "b", "a", "a", ""},
		{"the one in use", "b", "", "b", ""},
		{"none is in use", "", "", "", "no repository is in use: choose one by kubectl kudo repo context, or --repo"},
		{"the one in use does not exist, as after an edit by hand", "c", "", "", `there is no repository "c": kubectl kudo repo list shows those that there are, repo add adds one`},
	} {
		list := repositories()
		list.Context = tc.context
		got, err := list.Get(tc.name)
		if got.Name != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %q, %v", tc.reason, got.Name, err)
		}
	}
}

// TestLoad checks what is read without a file, and that an error names the file and its fault.
func TestLoad(t *testing.T) {
	const file = "repository/repositories.yaml"
	for name, tc := range map[string]struct {
		reason, text string
		want         *Repositories
		err          string
	}{
		"NoFile": {"there is none in a build without a catalog", "", &Repositories{Version: IndexVersion}, ""},
		"File":   {"a file as KUDO writes it", "repoVersion: v1\ncontext: b\nrepositories: [{name: a, url: https://a}, {name: b, url: https://b}]", repositories(), ""},
		"NoYAML": {"a file that is none", "repositories: [", nil, file + " cannot be read: "},
		"Empty":  {"a file that was cut", "\n", nil, file + ` has repoVersion "": only v1 is known`},
		"Later":  {"a format of a later version", "repoVersion: v2", nil, file + ` has repoVersion "v2": only v1 is known`},
		"Large":  {"a file without an end", "#" + strings.Repeat(" ", maxRepositories), nil, file + " has more than the 1048576 bytes allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			home := Home{t.TempDir()}
			if tc.text != "" {
				write(t, home.Dir, map[string]string{file: tc.text})
			}
			got, err := home.Load()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.err)
			}
		})
	}
}

// TestCatalog checks that the catalog of a release is in use until the user has configured repositories, and can be removed.
func TestCatalog(t *testing.T) {
	CatalogURL = "https://example.org/kudo"
	t.Cleanup(func() { CatalogURL = "" })
	home, catalog := Home{t.TempDir()}, Repository{Name: CatalogName, URL: CatalogURL}
	list, err := home.Load()
	if diff := cmp.Diff(&Repositories{Version: IndexVersion, Context: CatalogName, Repositories: []Repository{catalog}}, list); err != nil || diff != "" {
		t.Errorf("without a file: %v\n-want +got: %s", err, diff)
	}
	if err := home.Change(t.Context(), func(l *Repositories) error { return l.Add(Repository{Name: "ours", URL: "https://h"}) }); err != nil {
		t.Fatal(err)
	}
	if list, err = home.Load(); err != nil || len(list.Repositories) != 2 || list.Context != CatalogName {
		t.Errorf("another one was added: %+v, %v", list, err)
	}
	if err := home.Change(t.Context(), func(l *Repositories) error { return l.Remove(CatalogName) }); err != nil {
		t.Fatal(err)
	}
	if list, err = home.Load(); err != nil || len(list.Repositories) != 1 || list.Repositories[0].Name != "ours" {
		t.Errorf("the catalog was removed: %+v, %v", list, err)
	}
}

// TestChange checks that changes of several processes are all kept, and that a file with credentials is only the user's.
func TestChange(t *testing.T) {
	home := Home{filepath.Join(t.TempDir(), "new", "home")}
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			err := home.Change(t.Context(), func(l *Repositories) error {
				return l.Add(Repository{Name: fmt.Sprintf("r%d", i), URL: "https://h", Token: "t"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	list, err := home.Load()
	if err != nil || len(list.Repositories) != 8 || list.Context != list.Repositories[0].Name {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := list.Repositories[7].Token; got != "t" {
		t.Errorf("the token is written as %q", string(got))
	}
	for name, want := range map[string]fs.FileMode{"": 0o700, "repositories.yaml": 0o600, "repositories.yaml.lock": 0o600} {
		info, err := os.Stat(filepath.Join(home.Dir, "repository", name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
}

// TestChangeRefused checks that a change that fails writes nothing, and releases the lock.
func TestChangeRefused(t *testing.T) {
	home, refused := Home{t.TempDir()}, errors.New("refused")
	err := home.Change(t.Context(), func(l *Repositories) error {
		l.Context = "other"
		return refused
	})
	if _, missing := os.Stat(home.file()); !errors.Is(err, refused) || !errors.Is(missing, fs.ErrNotExist) {
		t.Errorf("%v, the file: %v", err, missing)
	}
	if err := home.Change(t.Context(), func(*Repositories) error { return nil }); err != nil {
		t.Errorf("the lock was not released: %v", err)
	}
	write(t, home.Dir, map[string]string{"repository/repositories.yaml": "repoVersion: v2"})
	called := false
	err = home.Change(t.Context(), func(*Repositories) error {
		called = true
		return nil
	})
	if text, _ := os.ReadFile(home.file()); err == nil || called || string(text) != "repoVersion: v2" {
		t.Errorf("a file of a later version is overwritten by %s: %v", text, err)
	}
}

// TestChangeLocked checks that a change ends with its context while another process holds the lock.
func TestChangeLocked(t *testing.T) {
	home := Home{t.TempDir()}
	write(t, home.Dir, map[string]string{"repository/other": ""})
	lock := flock.New(home.file() + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := home.Change(ctx, func(*Repositories) error {
		t.Error("the list was changed without the lock")
		return nil
	})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "locking "+home.file()+".lock: ") {
		t.Errorf("%v", err)
	}
	write(t, home.Dir, map[string]string{"file": ""})
	if err := (Home{filepath.Join(home.Dir, "file")}).Change(t.Context(), nil); err == nil || !strings.HasPrefix(err.Error(), "repositories: ") {
		t.Errorf("a home that is a file: %v", err)
	}
}
