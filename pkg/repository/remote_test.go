package repository

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
)

// served is a repository of archives, of which the test may spoil the answers.
type served struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	auth     []string
	// spoil answers instead, if it is true.
	spoil func(w http.ResponseWriter, r *http.Request) bool
}

func (s *served) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.requests
	s.requests = nil
	return seen
}

// serve serves packages, each of files of its own, under /repo.
func serve(t *testing.T, secure bool, packages map[string]map[string]string) *served {
	t.Helper()
	dir := t.TempDir()
	for name, content := range packages {
		write(t, dir, map[string]string{name + ".tgz": pack(t, content)})
	}
	entries, skipped, err := Build(os.DirFS(dir), "")
	if err != nil || len(skipped) > 0 {
		t.Fatal(err, skipped)
	}
	index, err := EncodeIndex(entries, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{}
	files := http.StripPrefix("/repo/", http.FileServer(http.Dir(dir)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimPrefix(r.URL.Path, "/repo/"))
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		s.mu.Unlock()
		if s.spoil != nil && s.spoil(w, r) {
			return
		}
		if strings.HasSuffix(r.URL.Path, IndexFileName) {
			w.Header().Set("ETag", `"`+digestOf(index)+`"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(index))
			return
		}
		files.ServeHTTP(w, r)
	})
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

// configured is a home with one repository.
func configured(t *testing.T, r Repository) Home {
	t.Helper()
	home := Home{filepath.Join(t.TempDir(), "home")}
	err := home.Change(context.Background(), func(l *Repositories) error {
		l.Context = r.Name
		return l.Add(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func find(t *testing.T, home Home, timeout time.Duration, r Request) (*Found, []string, error) {
	t.Helper()
	var warnings []string
	source := NewRemote(home, timeout, func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) })
	found, err := Chain{Local{Base: t.TempDir(), Names: true}, source}.Resolve(context.Background(), r)
	return found, warnings, errors.Join(err, source.Close())
}

// TestCache: what is known is not fetched again, and what was damaged is.
func TestCache(t *testing.T) {
	s := serve(t, false, map[string]map[string]string{"web": files("web")})
	home := configured(t, Repository{Name: "r", URL: s.URL + "/repo"})
	for i, tc := range []struct {
		reason string
		before func()
		want   []string
	}{
		{"all is new", func() {}, []string{"index.yaml", "web.tgz"}},
		{"the index is asked for, and has not changed", func() {}, []string{"index.yaml"}},
		{"a damaged archive is fetched again", func() { spoilFiles(t, home, "archives") }, []string{"index.yaml", "web.tgz"}},
		{"so is a damaged index", func() { spoilFiles(t, home, "index") }, []string{"index.yaml"}},
	} {
		tc.before()
		found, warnings, err := find(t, home, 0, Request{Name: "web"})
		if err != nil || found.Package.Operator.Name != "web" || len(warnings) > 0 {
			t.Fatalf("%d: %s: %v %v", i, tc.reason, err, warnings)
		}
		if diff := cmp.Diff(tc.want, s.seen()); diff != "" {
			t.Errorf("%d: %s: %s", i, tc.reason, diff)
		}
	}
	err := filepath.WalkDir(home.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v %v", name, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Forget("r"); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(home.Dir, "cache", "index", "*")); len(left) > 0 {
		t.Errorf("an index goes with its repository: %v", left)
	}
}

func spoilFiles(t *testing.T, home Home, kind string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(home.Dir, "cache", kind, "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(err, names)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte("{\"list\":-1}\nspoilt"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPrune: the oldest archives go.
func TestPrune(t *testing.T) {
	c := cache{t.TempDir()}
	for i, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(c.dir, "archives"), map[string]string{name: "12345"})
		when := time.Unix(int64(1e9+i), 0)
		if err := os.Chtimes(filepath.Join(c.dir, "archives", name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.prune(11); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(c.dir, "archives", "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "b" {
		t.Errorf("b and c fit: %v", left)
	}
}

// TestMalformedInput: whatever a server does, it ends, in bounds, and with its reason.
func TestMalformedInput(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	index := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, IndexFileName) {
				_, _ = w.Write([]byte(text))
				return true
			}
			return false
		}
	}
	archives := func(do func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".tgz") {
				do(w, r)
				return true
			}
			return false
		}
	}
	zeroDigest, other := strings.Repeat("00", 32), []byte(pack(t, files("web")))
	entry := "apiVersion: v1\nentries:\n  web:\n  - operatorVersion: 0.1.0\n    digest: '" + zeroDigest + "'\n    urls:\n    - %s\n"
	renamed := index(strings.NewReplacer("0.1.0", "0.2.0", zeroDigest, digestOf(other)).Replace(fmt.Sprintf(entry, "web.tgz")))
	zeros := make([]byte, 1<<20)
	for name, tc := range map[string]struct {
		reason, want string
		spoil        func(http.ResponseWriter, *http.Request) bool
	}{
		"HugeSaid": {"a size that is too large is not fetched", "more than the 16777216 allowed", archives(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999999")
			_, _ = w.Write(zeros)
		})},
		"Huge": {"nor one that is not said", "bytes allowed", archives(func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		})},
		"Slow": {"a server that never ends", "took longer than", func(w http.ResponseWriter, r *http.Request) bool {
			w.(http.Flusher).Flush()
			select {
			case <-stop:
			case <-r.Context().Done():
			}
			return true
		}},
		"Truncated": {"half an archive", "cut short", archives(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(zeros[:10])
		})},
		"Digest": {"another archive", "damaged or replaced", archives(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(pack(t, files("web", "evil"))))
		})},
		"Weaker": {"a redirect to plain http", "less safe", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return true
		}},
		"Scheme": {"a redirect to a file", "no http", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
			return true
		}},
		"Circle": {"a redirect to itself", "more than 5 redirects", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}},
		"File":     {"an index that names files of this disk", "cannot refer to files", index(fmt.Sprintf(entry, "file:///etc/passwd"))},
		"NoDigest": {"T35: an index without a digest", "has no digest of package web 0.1.0", index(strings.Replace(fmt.Sprintf(entry, plain.URL+"/web.tgz"), "    digest: '"+zeroDigest+"'\n", "", 1))},
		"Secrets":  {"an index with credentials in a URL", "holds credentials", index(fmt.Sprintf(entry, "https://me:hunter2@example.com/web.tgz"))},
		"Other": {"an index that calls a package another", "as the index says", func(w http.ResponseWriter, r *http.Request) bool {
			if !renamed(w, r) {
				_, _ = w.Write(other)
			}
			return true
		}},
		"NoURL":    {"an index without URLs", "no URL", index("apiVersion: v1\nentries:\n  web:\n  - operatorVersion: 0.1.0\n")},
		"Page":     {"a page", "no index of a repository", index("<html></html>")},
		"Modified": {"an answer that fits no question", "304", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(304); return true }},
		"Forbid":   {"no credentials", "repo add", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(401); return true }},
		"Gone":     {"an archive that is not there", "404", archives(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, true, map[string]map[string]string{"web": files("web")})
			s.spoil = tc.spoil
			home := configured(t, Repository{Name: "r", URL: s.URL + "/repo", CAFile: certificate(t, s)})
			timeout := 20 * time.Second
			if name == "Slow" {
				timeout = 200 * time.Millisecond
			}
			_, _, err := find(t, home, timeout, Request{Name: "web"})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if kept, _ := filepath.Glob(filepath.Join(home.Dir, "cache", "archives", "*")); len(kept) > 0 && name != "Other" { // that archive has its digest, and another name
				t.Errorf("%s: what is wrong is not kept: %v", tc.reason, kept)
			}
		})
	}
}

// certificate writes the certificate of a server.
func certificate(t *testing.T, s *served) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCredentials: they reach the repository and no other host; certificates must be known.
func TestCredentials(t *testing.T) {
	var leaked, reached atomic.Bool
	s := serve(t, true, map[string]map[string]string{"web": files("web")})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Store(true)
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "")
		_, _ = w.Write([]byte(pack(t, files("web"))))
	}))
	defer other.Close()
	ca := certificate(t, s)
	for name, tc := range map[string]struct {
		reason, want string
		repository   Repository
	}{
		"Basic":  {"user name and password", "Basic bWU6aHVudGVyMg==", Repository{Username: "me", Password: "hunter2", CAFile: ca}},
		"Bearer": {"a token", "Bearer hunter2", Repository{Token: "hunter2", CAFile: ca}},
		"None":   {"none", "", Repository{CAFile: ca}},
	} {
		r := tc.repository
		r.Name, r.URL = "r", s.URL+"/repo"
		s.auth = nil
		if _, _, err := find(t, configured(t, r), 0, Request{Name: "web"}); err != nil {
			t.Fatal(name, err)
		}
		for _, got := range s.auth {
			if got != tc.want {
				t.Errorf("%s: %s: sent %q", name, tc.reason, got)
			}
		}
		if text := fmt.Sprintf("%v %+v %#v %s", r, r, r, r); strings.Contains(text, "hunter2") {
			t.Errorf("%s: printed: %s", name, text)
		}
	}
	if _, _, err := find(t, configured(t, Repository{Name: "r", URL: s.URL + "/repo"}), 0, Request{Name: "web"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate is refused: %v", err)
	}
	loop := serve(t, false, map[string]map[string]string{"web": files("web")})
	loop.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return true
		}
		return false
	}
	home := configured(t, Repository{Name: "r", URL: loop.URL + "/repo", Token: "hunter2"})
	_, _, _ = find(t, home, 0, Request{Name: "web"})
	if leaked.Load() || !reached.Load() {
		t.Error("credentials were sent elsewhere")
	}
}

// TestChain: dependencies are found through all sources.
func TestChain(t *testing.T) {
	inside := files("outer", "./packages/inner", "leaf")
	for name, text := range files("inner", "leaf") {
		inside["packages/inner/"+name] = text
	}
	s := serve(t, false, map[string]map[string]string{
		"leaf": files("leaf"), "twig": files("twig"), "outer": inside, "escape": files("escape", "../../../../etc"), "a": files("a", "b"), "b": files("b", "a"),
	})
	s.spoil = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/repo/get" {
			r.URL.Path = "/repo/" + r.URL.Query().Get("f")
		}
		return false
	}
	home := configured(t, Repository{Name: "r", URL: s.URL + "/repo"})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "asking"), files("asking", s.URL+"/repo/get?f=leaf.tgz", s.URL+"/repo/get?f=twig.tgz"))
	write(t, filepath.Join(dir, "top"), files("top", "outer", s.URL+"/repo/leaf.tgz", "../side"))
	write(t, filepath.Join(dir, "side"), files("side"))
	write(t, dir, map[string]string{"here.tgz": pack(t, files("here", "../side", "outer", "leaf"))})
	write(t, filepath.Join(dir, "leaf"), map[string]string{"notes": "no package"})
	for name, tc := range map[string]struct {
		reason, want string
		request      Request
		packages     []string
	}{
		"Folder":  {"folder, repository, archive, URL", "", Request{Name: "./top"}, []string{"leaf", "inner", "outer", "side", "top"}},
		"Archive": {"an archive on this disk, a folder beside it, repository, archive", "", Request{Name: "here.tgz"}, []string{"side", "leaf", "inner", "outer", "here"}},
		"Name":    {"a folder that is no package does not hide one of the repository", "", Request{Name: "leaf"}, []string{"leaf"}},
		"Named":   {"a repository by name", "", Request{Name: "leaf", Repository: "r", OperatorVersion: "^0.1"}, []string{"leaf"}},
		"URL":     {"a URL", "", Request{Name: s.URL + "/repo/outer.tgz"}, []string{"leaf", "inner", "outer"}},
		"Query":   {"URLs that differ in what follows the ? only", "", Request{Name: "./asking"}, []string{"leaf", "twig", "asking"}},
		"Digest":  {"a URL with a digest that is another", "damaged", Request{Name: s.URL + "/repo/leaf.tgz#sha256=" + strings.Repeat("00", 32)}, nil},
		"Escape":  {"an archive from elsewhere names no files of this disk", "within its own archive", Request{Name: "escape"}, nil},
		"Circle":  {"circles through a repository", "cyclic package dependency", Request{Name: "a"}, nil},
		"Range":   {"a folder must have the version asked for", "which is not ^2", Request{Name: "./top", OperatorVersion: "^2"}, nil},
		"NoFit":   {"so must the repository", "--all-versions", Request{Name: "leaf", OperatorVersion: "^2"}, nil},
		"Nowhere": {"all places are named", "no such folder or archive: name the folder that holds operator.yaml, such as ./nothing, or a .tgz; repository r has no such package", Request{Name: "nothing"}, nil},
		"NoRepo":  {"repositories exist", `no repository "x"`, Request{Name: "leaf", Repository: "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			source := NewRemote(home, 0, nil)
			defer func() { _ = source.Close() }()
			chain := Chain{Local{Base: dir, Names: true}, source}
			found, err := chain.Resolve(context.Background(), tc.request)
			var got []string
			if err == nil {
				packages, e := chain.WithDependencies(context.Background(), found)
				err = e
				for _, p := range packages {
					got = append(got, p.Operator.Name)
				}
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.packages, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestNames checks which packages of a repository a text finds, which versions can be installed, and that a registry has no list.
func TestNames(t *testing.T) {
	s := serve(t, false, map[string]map[string]string{"web": files("web"), "Webhook": files("Webhook"), "db": files("db")})
	home := configured(t, Repository{Name: "r", URL: s.URL + "/repo"})
	source := NewRemote(home, 0, nil)
	defer func() { _ = source.Close() }()
	list, err := source.Repositories()
	if err != nil || len(list.Repositories) != 1 || list.Context != "r" {
		t.Fatal(list, err)
	}
	r := list.Repositories[0]
	for part, want := range map[string][]string{"": {"Webhook", "db", "web"}, "WEB": {"Webhook", "web"}, "none": {}, ".*": {}} {
		got, err := source.Names(t.Context(), r, part)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %s %v", part, diff, err)
		}
	}
	if got, err := source.Versions(t.Context(), r, "web"); err != nil || len(got) != 1 || got[0].Name != "web" {
		t.Errorf("the versions of web are %v, %v", got, err)
	}
	if got, err := source.Versions(t.Context(), r, "none"); err != nil || len(got) != 0 {
		t.Errorf("the versions of no package are %v, %v", got, err)
	}
	registry := Repository{Name: "l", URL: "layout:" + t.TempDir()}
	if _, err := source.Names(t.Context(), registry, ""); err == nil || !strings.Contains(err.Error(), "no list of packages") {
		t.Errorf("all names of a registry: %v", err)
	}
	if got, err := source.Names(t.Context(), registry, "web"); err != nil || len(got) != 1 {
		t.Errorf("a name of a registry: %v, %v", got, err)
	}
}

// TestAddress checks that the address of a repository has nothing in it that may be secret, also if the file was edited by hand.
func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"https://h/x":                       "https://h/x",
		"https://ann:hunter2@h/x?k=hunter2": "https://h/x",
		"oci://h:5000/x":                    "oci://h:5000/x",
		"oci://ann:hunter2@h/x":             "oci://h/x",
		"layout:/a/b":                       "layout:/a/b",
		"https://h/%zz":                     "an address that cannot be read",
	} {
		if got := (Repository{URL: url}).Address(); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// TestIndexBounds checks that the entries of one package, and its versions, are refused if they are too long.
func TestIndexBounds(t *testing.T) {
	long := strings.Repeat("x", MaxNameBytes+1)
	for reason, tc := range map[string]struct{ entries, want string }{
		"an operatorVersion": {"  - {name: web, operatorVersion: " + long + ", urls: [x]}\n", "entry 0 has a version of more than 253 bytes"},
		"an appVersion":      {"  - {name: web, operatorVersion: 1.0.0, appVersion: " + long + ", urls: [x]}\n", "entry 0 has a version of more than 253 bytes"},
		"all entries":        {strings.Repeat("  - {name: web, operatorVersion: 1.0.0, urls: [x], description: "+long+"}\n", 1+maxSection/len(long)), "more than the 8388608 allowed"},
	} {
		x, err := ParseIndex([]byte("apiVersion: v1\nentries:\n  web:\n" + tc.entries))
		if err != nil {
			t.Fatal(reason, err)
		}
		if _, err := x.Versions("web"); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "package web") {
			t.Errorf("%s: %.200v, want %q", reason, err, tc.want)
		}
	}
}

// TestTemplatesBound checks that a package is refused whose dependencies have more templates than a machine can hold.
func TestTemplatesBound(t *testing.T) {
	pkg := &operators.Package{Templates: map[string]string{"a.yaml": "a"}}
	pkg.Operator.Name = "web"
	done := 0
	w := &walk{state: map[string]int{}, size: maxTemplates, done: func(*Found, *operators.Package) error { done++; return nil }}
	if err := w.visit(t.Context(), &Found{Package: pkg, Origin: "x"}, nil); err == nil || !strings.Contains(err.Error(), "package web and what it depends on") || done > 0 {
		t.Errorf("%v, and %d packages are taken", err, done)
	}
	w = &walk{state: map[string]int{}, size: maxTemplates - 1, done: w.done}
	if err := w.visit(t.Context(), &Found{Package: pkg, Origin: "x"}, nil); err != nil || done != 1 {
		t.Errorf("%v, and %d packages are taken", err, done)
	}
}
