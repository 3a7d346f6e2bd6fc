package repository

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/test/ocitest"
)

// depending are the files of a package with a KudoOperator task.
func depending(name, spec string) map[string]string {
	out := files(name)
	out["operator.yaml"] = strings.Replace(out["operator.yaml"], "tasks:", "tasks:\n- {name: dep, kind: KudoOperator, spec: {"+spec+"}}", 1)
	out["operator.yaml"] = strings.Replace(out["operator.yaml"], "tasks: [", "tasks: [dep, ", 1)
	return out
}

// source returns a source that reaches a registry with credentials.
func source(t *testing.T, home Home, options registry.Options) *Remote {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	s := NewRemote(home, 0, nil)
	s.Registry = options
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func rootsOf(t *testing.T, registries ...*ocitest.Registry) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	for _, r := range registries {
		roots.AddCert(r.Certificate())
	}
	return roots
}

// pushFiles pushes a package of files, and returns its reference.
func pushFiles(t *testing.T, s *Remote, base string, content map[string]string) Reference {
	t.Helper()
	a, err := artifact.New([]byte(pack(t, content)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Push(t.Context(), a, base, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRegistryRepository checks S10 and S15: a registry is a repository, whose credentials are those of repo add, and whose versions are its
// tags. A tag is resolved once, and the archive comes from the cache by its digest.
func TestRegistryRepository(t *testing.T) {
	r := ocitest.New(t, true)
	base := "oci://" + r.Host() + "/kudo"
	home := configured(t, Repository{Name: "ours", URL: base + "/", Username: ocitest.User, Password: ocitest.Password, CAFile: ocitest.CAFile(t, r.Server)})
	s := source(t, home, registry.Options{})
	pushFiles(t, s, base, files("web"))
	list, err := s.Repository("")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Versions(t.Context(), list, "web")
	if err != nil || len(entries) != 1 {
		t.Fatalf("versions %v, %v", entries, err)
	}
	if none, err := s.Versions(t.Context(), list, "none"); err != nil || len(none) > 0 {
		t.Errorf("a package that is not there has the versions %v, %v", none, err)
	}
	if _, err := s.Index(t.Context(), list); err == nil || !strings.Contains(err.Error(), "no list of packages") {
		t.Errorf("the index of a registry: %v", err)
	}
	chain := Chain{Local{Base: t.TempDir(), Names: true}, s}
	found, err := chain.Resolve(t.Context(), Request{Name: "web"})
	if err != nil || found.repository != "ours" || !strings.HasPrefix(found.Origin, base+"/web:") || !strings.Contains(found.Origin, "@sha256:") {
		t.Fatalf("found %+v, %v", found, err)
	}
	if _, err := chain.Resolve(t.Context(), Request{Name: "web", OperatorVersion: "^99"}); err == nil || !strings.Contains(err.Error(), "none is operatorVersion ^99") {
		t.Errorf("a range that fits nothing: %v", err)
	}
	r.Requests()
	if _, err := chain.Resolve(t.Context(), Request{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	if again, _ := r.Requests(); len(again) > 0 {
		t.Errorf("a tag is resolved a second time: %q", again)
	}
	if _, err := (Chain{source(t, home, registry.Options{})}).Resolve(t.Context(), Request{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	requests, _ := r.Requests()
	blobs := map[string]bool{} // a request is sent again with a token
	for _, q := range requests {
		if strings.Contains(q, "/blobs/") {
			blobs[q] = true
		}
	}
	if len(blobs) != 1 {
		t.Errorf("the config is fetched, and the archive comes from the cache: %q", requests)
	}
}

// TestRegistryDependencies checks S9 and S16: a dependency is beside the package that names it, or where its reference says, and a registry
// that only a dependency names gets neither the credentials nor the settings that a user gave for another one.
func TestRegistryDependencies(t *testing.T) {
	first, second := ocitest.New(t, true), ocitest.New(t, true)
	home := Home{filepath.Join(t.TempDir(), "home")}
	given := registry.Options{Username: ocitest.User, Password: ocitest.Password, Roots: rootsOf(t, first, second)}
	base, other := "oci://"+first.Host()+"/kudo", "oci://"+second.Host()+"/kudo"
	config := ocitest.ConfigFile(t, "", first.Host(), second.Host())
	s := source(t, home, registry.Options{ConfigFile: config, Roots: given.Roots})
	pushFiles(t, s, base, files("db"))
	pushFiles(t, s, other, files("cache"))
	near := pushFiles(t, s, base, depending("web", "package: db"))
	far := pushFiles(t, s, base, depending("shop", "package: '"+other+"/cache'"))
	disk := pushFiles(t, s, base, depending("thief", "package: 'layout:/etc/passwd/db'"))
	wrong := pushFiles(t, s, base, depending("late", "package: '"+base+"/db:latest', operatorVersion: ^99"))
	first.SetTag("kudo/db:latest", first.Blob("kudo/db", first.Tags()["kudo/db:"+near.Tag]))
	resolve := func(s *Remote, r Reference) ([]string, error) {
		chain := Chain{Local{Base: t.TempDir(), Names: true}, s}
		found, err := chain.Resolve(t.Context(), Request{Name: r.String()})
		if err != nil {
			return nil, err
		}
		var names []string
		packages, err := chain.WithDependencies(t.Context(), found)
		for _, p := range packages {
			names = append(names, p.Operator.Name)
		}
		return names, err
	}
	for _, tc := range []struct {
		reason string
		r      Reference
		want   []string
		err    string
	}{
		{"beside it", near, []string{"db", "web"}, ""},
		{"in another registry", far, []string{"cache", "shop"}, ""},
		{"on this disk", disk, nil, "a package from elsewhere cannot refer to files of this disk"},
		{"by a tag that has another version", wrong, nil, "is not operatorVersion ^99"},
	} {
		got, err := resolve(source(t, home, registry.Options{ConfigFile: config, Roots: given.Roots}), tc.r)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v %s", tc.reason, err, diff)
		}
	}
	plain, leak := ocitest.New(t, false), ""
	plain.Open = true
	second.Hostile = func(_ http.ResponseWriter, q *http.Request) bool {
		leak += q.Header.Get("Authorization")
		return false
	}
	open := source(t, home, registry.Options{PlainHTTP: true})
	shop := pushFiles(t, open, "oci://"+plain.Host()+"/kudo", depending("shop", "package: 'oci://"+plain.Host()+"/kudo/web'"))
	pushFiles(t, open, "oci://"+plain.Host()+"/kudo", files("web"))
	if got, err := resolve(open, shop); err != nil || len(got) != 2 {
		t.Errorf("without TLS, in the same registry: %v, %v", got, err)
	}
	elsewhere := pushFiles(t, open, "oci://"+plain.Host()+"/kudo", depending("foreign", "package: 'oci://"+strings.Replace(plain.Host(), "127.0.0.1", "localhost", 1)+"/kudo/web'"))
	plain.Requests()
	if _, err := resolve(open, elsewhere); err == nil || !strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		t.Errorf("--plain-http is for the registry that the user names: %v", err)
	}
	leak = ""
	mixed := source(t, home, registry.Options{Roots: given.Roots, ConfigFile: ocitest.ConfigFile(t, "", first.Host())})
	if _, err := resolve(mixed, far); err == nil {
		t.Error("a registry without credentials lets everybody read")
	}
	if strings.Contains(leak, base64.StdEncoding.EncodeToString([]byte(ocitest.User+":"+ocitest.Password))) {
		t.Errorf("the second registry got the credentials of the first: %s", leak)
	}
}

// TestValidateRegistry checks what repo add refuses of a registry.
func TestValidateRegistry(t *testing.T) {
	for _, tc := range []struct {
		reason string
		r      Repository
		want   string
	}{
		{"a registry", Repository{URL: "oci://r.example.org/kudo", Username: "a", Password: "b", TokenHosts: []string{"auth.example.org"}}, ""},
		{"a folder", Repository{URL: "layout:/srv/offline"}, ""},
		{"a folder with a secret", Repository{URL: "layout:/srv/offline", Token: "a"}, "takes no credentials"},
		{"no registry", Repository{URL: "oci://"}, "is no reference"},
		{"a user without a password", Repository{URL: "oci://r.example.org/kudo", Username: "a"}, "a user name requires a password"},
		{"token hosts of a web server", Repository{URL: "https://example.org", TokenHosts: []string{"a"}}, "only registries"},
	} {
		tc.r.Name = "r"
		if err := tc.r.Validate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestFolders is S11: a folder serves as a repository. Its versions can be listed, and a package in it finds its dependencies there.
func TestFolders(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	base := "layout:" + dir + "/offline"
	home := configured(t, Repository{Name: "air", URL: base})
	s := source(t, home, registry.Options{})
	db := pushFiles(t, s, base, files("db"))
	web := pushFiles(t, s, base, depending("web", "package: db, operatorVersion: ^0.1"))
	local := t.TempDir()
	write(t, filepath.Join(dir, "top"), depending("top", "package: 'layout:../offline/db:0.1.0'"))
	write(t, filepath.Join(dir, "strange"), depending("strange", "package: db"))
	all, err := s.FolderContent(t.Context(), base)
	if diff := cmp.Diff([]string{db.Repository() + ":0.1.0", web.Repository() + ":0.1.0"}, []string{all[0].String(), all[1].String()}); diff != "" || err != nil || len(all) != 2 {
		t.Errorf("content: %v %s", err, diff)
	}
	for _, none := range []string{"oci://r.example.org/kudo", base + "/web", base + "/none"} {
		if got, err := s.FolderContent(t.Context(), none); err != nil || len(got) > 0 {
			t.Errorf("%s holds the packages %v, %v", none, got, err)
		}
	}
	chain := Chain{Local{Base: local, Names: true}, s}
	for _, tc := range []struct {
		reason, name string
		want         []string
		err          string
	}{
		{"a reference", web.String(), []string{"db", "web"}, ""},
		{"a name in a repository", "web", []string{"db", "web"}, ""},
		{"a local package that names a folder by its relative path", filepath.Join(dir, "top"), []string{"db"}, "which is no registry: push it first"},
	} {
		found, err := chain.Resolve(t.Context(), Request{Name: tc.name})
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		packages, err := chain.WithDependencies(t.Context(), found)
		if err != nil || len(packages) != 2 {
			t.Errorf("%s: %d packages, %v", tc.reason, len(packages), err)
		}
		references, err := chain.References(t.Context(), found)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.err)
		}
		for i, r := range references {
			if r.Name != tc.want[i] || r.Digest == "" {
				t.Errorf("%s: reference %d is %s", tc.reason, i, r)
			}
		}
	}
	for reference, want := range map[string]string{
		base + "/none:1.0.0":             "not found",
		base + "/web:9.9.9":              "not found",
		base + "/web:0.1.0@" + zeros:     "the tag was moved",
		base + "/web@" + zeros:           "not found",
		base + "/db:latest":              "not found",
		"layout:" + dir + "/top:0.1.0":   "is no folder in OCI layout",
		"layout:" + dir + "/offline/web": "",
	} {
		if _, err := chain.Resolve(t.Context(), Request{Name: reference}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", reference, err, want)
		}
	}
}

// TestRegistryOptions checks S15 and S16: which options a registry gets, by who names it and what repo add was given for it.
func TestRegistryOptions(t *testing.T) {
	home := configured(t, Repository{Name: "ours", URL: "oci://r.example.org/kudo", Token: "t", TokenHosts: []string{"auth.example.org"}})
	s := source(t, home, registry.Options{})
	for _, tc := range []struct{ reason, reference, token string }{
		{"the repository", "oci://r.example.org/kudo/web", "t"},
		{"below it", "oci://r.example.org/kudo/deep/web", "t"},
		{"beside it", "oci://r.example.org/other/web", ""},
		{"a path that begins like it", "oci://r.example.org/kudos/web", ""},
		{"another port", "oci://r.example.org:5000/kudo/web", ""},
		{"another host", "oci://r.example.org.evil.example/kudo/web", ""},
	} {
		r, err := ParseReference(tc.reference)
		if err != nil {
			t.Fatal(err)
		}
		var o registry.Options
		if err := s.addRepositoryOptions(r, &o); err != nil || o.Token != tc.token || len(o.TokenHosts) > 0 != (tc.token != "") {
			t.Errorf("%s: token %q, hosts %q (%v)", tc.reason, o.Token, o.TokenHosts, err)
		}
	}
}

// TestPushRefuses checks S4 and S8: a push to a place that is none, and one that would move a tag, change nothing.
func TestPushRefuses(t *testing.T) {
	base := "layout:" + filepath.ToSlash(t.TempDir())
	s := source(t, Home{t.TempDir()}, registry.Options{})
	first := pushFiles(t, s, base, files("web"))
	other := files("web")
	other["templates/a.yaml"] = "a: b"
	a, err := artifact.New([]byte(pack(t, other)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ reason, base, want string }{
		{"a tag that has another digest", base, "exists already, and has the digest " + first.Digest.String()},
		{"no place", "web", "is no place"},
		{"a registry by http", "http://r.example.org/kudo", "is no place"},
		{"a registry whose name is none", "oci://r.example.org/Kudo", "is no reference"},
	} {
		if _, _, err := s.Push(t.Context(), a, tc.base, false); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	moved, _, err := s.Push(t.Context(), a, base, true)
	if err != nil || moved.Digest == first.Digest || moved.Tag != first.Tag {
		t.Errorf("with overwrite: %s, %v", moved, err)
	}
	moved.Tag = ""
	for _, r := range []Reference{moved, {Base: first.Base, Name: first.Name, Digest: first.Digest}} {
		if pulled, err := s.Pull(t.Context(), r, Versions{}); err != nil || pulled.Reference.Digest != r.Digest {
			t.Errorf("by its digest both are there: %v", err)
		}
	}
}

// endless has a package of each name, which depends on a further one.
type endless struct{ asked int }

func (e *endless) Find(_ context.Context, r Request, _ *Found) (*Found, error) {
	e.asked++
	content := fstest.MapFS{}
	for name, text := range depending(r.Name, "package: "+r.Name+"x") {
		content[name] = &fstest.MapFile{Data: []byte(text)}
	}
	pkg, err := operators.Read(content)
	return &Found{Package: pkg, Origin: r.Name}, err
}

// TestEndlessDependencies checks that a server that makes each package depend on a further one is left after a bounded number.
func TestEndlessDependencies(t *testing.T) {
	server := &endless{}
	found, err := server.Find(t.Context(), Request{Name: "p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Chain{server}.WithDependencies(t.Context(), found)
	if err == nil || !strings.Contains(err.Error(), "package p depends on more than 199 packages") || server.asked > maxPackages+1 {
		t.Errorf("after %d packages: %.200v", server.asked, err)
	}
}
