package packages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/test/ocitest"
)

// packageDir writes a package, and returns its folder. The dependencies are the specs of KudoOperator tasks.
func packageDir(t *testing.T, name, version string, dependencies ...string) string {
	t.Helper()
	tasks, steps := "", "app"
	for i, d := range dependencies {
		tasks += fmt.Sprintf("- {name: d%d, kind: KudoOperator, spec: {%s}}\n", i, d)
		steps += fmt.Sprintf(", d%d", i)
	}
	dir := t.TempDir()
	operator := "apiVersion: kudo.dev/v1beta1\nname: " + name + "\noperatorVersion: " + version + "\nkubernetesVersion: 1.30.0\nmaintainers: [{name: Ann, email: ann@example.org}]\nurl: https://example.org\ntasks:\n" +
		"- {name: app, kind: Apply, spec: {resources: [app.yaml]}}\n" + tasks + "plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [" + steps + "]}]}]}}\n"
	for file, text := range map[string]string{"operator.yaml": operator, "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"} {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// home isolates a test from the files of the user.
func home(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
}

// flagsFor are the flags to reach servers with credentials.
func flagsFor(t *testing.T, r *ocitest.Registry) []string {
	return []string{"--registry-ca", ocitest.CAFile(t, r.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host())}
}

func run(t *testing.T, code int, flags []string, args ...string) (string, string) {
	t.Helper()
	return commandtest.Expect(t, New, code, "", slices.Concat([]string{"package"}, args, flags)...)
}

// TestPushAndPull checks S2, S8 and S9: what is pulled by tag, digest or range is what was pushed, byte for byte, and a tag is not moved.
func TestPushAndPull(t *testing.T) {
	home(t)
	r := ocitest.New(t, true)
	flags, base := flagsFor(t, r), "oci://"+r.Host()+"/kudo"
	references := map[string]string{}
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1"} {
		out, errs := run(t, 0, flags, "push", packageDir(t, "web", version), base)
		references[version] = strings.TrimSpace(out)
		if want := base + "/web:" + version + "@sha256:"; !strings.HasPrefix(out, want) || errs != "" {
			t.Errorf("push prints %q and %q, want %s", out, errs, want)
		}
	}
	dir := packageDir(t, "web", "1.0.0")
	archive := filepath.Join(t.TempDir(), "web-1.0.0.tgz")
	run(t, 0, nil, "create", dir, "-d", filepath.Dir(archive))
	if out, errs := run(t, 0, flags, "push", archive, base); strings.TrimSpace(out) != references["1.0.0"] ||
		errs != "Unchanged: "+references["1.0.0"]+" has this content already.\n" {
		t.Errorf("the archive of the folder is another artifact: %s%s", out, errs)
	}
	for _, tc := range []struct {
		reason, reference, want string
		args                    []string
	}{
		{"a tag", base + "/web:1.0.0", "1.0.0", nil},
		{"a digest", base + "/web@" + strings.Split(references["1.0.0"], "@")[1], "1.0.0", nil},
		{"both", references["1.1.0"], "1.1.0", nil},
		{"the highest", base + "/web", "2.0.0-rc.1", nil},
		{"a range", base + "/web", "1.1.0", []string{"--operator-version", "^1.0"}},
	} {
		target := t.TempDir()
		out, _ := run(t, 0, slices.Concat(flags, tc.args), "pull", tc.reference, "-d", target)
		if !strings.Contains(out, references[tc.want][strings.Index(references[tc.want], "@"):]) {
			t.Errorf("%s: %s is pulled, want %s", tc.reason, out, references[tc.want])
		}
		data, err := os.ReadFile(filepath.Join(target, "web-"+tc.want+".tgz"))
		if err != nil || r.Blob("kudo/web", digest.FromBytes(data).String()) == nil {
			t.Errorf("%s: the archive is no layer of the registry (%v)", tc.reason, err)
		}
	}
	before := r.Tags()
	changed := packageDir(t, "web", "1.0.0", "package: db")
	if _, errs := run(t, 1, flags, "push", changed, base); !strings.Contains(errs, "exists already") || !strings.Contains(errs, "--overwrite") || r.Tags()["kudo/web:1.0.0"] != before["kudo/web:1.0.0"] {
		t.Errorf("a tag is moved: %s", errs)
	}
	run(t, 0, append(flags, "--overwrite"), "push", changed, base)
	if _, errs := run(t, 1, flags, "pull", references["1.0.0"]); !strings.Contains(errs, "the tag was moved") {
		t.Errorf("tag and digest differ: %s", errs)
	}
	if _, errs := run(t, 1, flags, "pull", base+"/web", "--operator-version", "^7"); !strings.Contains(errs, "3 of its tags are versions, and none is operatorVersion ^7") {
		t.Errorf("no version fits: %s", errs)
	}
	if _, errs := run(t, 1, flags, "pull", base+"/none:1.0.0"); !strings.Contains(errs, "not found") {
		t.Errorf("no repository: %s", errs)
	}
	plain := ocitest.New(t, false)
	plain.Open = true
	run(t, 0, []string{"--plain-http"}, "push", dir, "oci://"+plain.Host()+"/kudo")
}

// TestPushChecks checks S8: what package verify refuses is not pushed, and usage is checked before a registry is asked.
func TestPushChecks(t *testing.T) {
	home(t)
	r := ocitest.New(t, false)
	r.Open = true
	flags, base := []string{"--plain-http"}, "oci://"+r.Host()+"/kudo"
	broken := packageDir(t, "web", "1.0.0")
	if err := os.Remove(filepath.Join(broken, "templates", "app.yaml")); err != nil {
		t.Fatal(err)
	}
	good := packageDir(t, "web", "1.0.0")
	for _, tc := range []struct {
		reason string
		code   int
		args   []string
		want   string
	}{
		{"a package that is invalid", 1, []string{"push", broken, base}, "package verification errors"},
		{"no package", 1, []string{"push", t.TempDir(), base}, "operator.yaml"},
		{"a long version (S4)", 1, []string{"push", packageDir(t, "web", "1.0.0-"+strings.Repeat("a", 130)), base}, "cannot be a tag"},
		{"a long version is not packed either (S4)", 1, []string{"create", packageDir(t, "web", "1.0.0-"+strings.Repeat("a", 130)), "-d", t.TempDir()}, "cannot be a tag"},
		{"no scheme", 1, []string{"push", good, r.Host() + "/kudo"}, "is no place such as"},
		{"a digest", 1, []string{"push", good, base + "@sha256:" + strings.Repeat("0", 64)}, "is no place such as"},
		{"credentials in the reference", 1, []string{"push", good, "oci://a:b@" + r.Host() + "/kudo"}, "is no place such as"},
		{"a tag that is none", 2, []string{"pull", base + "/web:a/../b c"}, "is no reference such as"},
		{"no package to pull", 2, []string{"pull", "oci://" + r.Host()}, "it names a registry and no package"},
		{"no digest", 2, []string{"pull", base + "/web@md5:1"}, "must be a digest"},
		{"an epoch that is none", 2, []string{"push", good, base}, "SOURCE_DATE_EPOCH"},
	} {
		if strings.Contains(tc.want, "EPOCH") {
			t.Setenv("SOURCE_DATE_EPOCH", "today")
		}
		args := tc.args
		if args[0] != "create" {
			args = append(args, flags...)
		}
		if _, errs := run(t, tc.code, nil, args...); !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s, want %q", tc.reason, errs, tc.want)
		}
		if requests, _ := r.Requests(); len(requests) > 0 {
			t.Errorf("%s: the registry was asked %q", tc.reason, requests)
		}
	}
}

// TestCopy checks S11: packages and their dependencies survive registry, folder and second registry with the same digests.
func TestCopy(t *testing.T) {
	home(t)
	first, second := ocitest.New(t, true), ocitest.New(t, true)
	from, to := "oci://"+first.Host()+"/kudo", "oci://"+second.Host()+"/mirror/deep"
	run(t, 0, flagsFor(t, first), "push", packageDir(t, "db", "1.0.0"), from)
	run(t, 0, flagsFor(t, first), "push", packageDir(t, "db", "2.0.0"), from)
	run(t, 0, flagsFor(t, first), "push", packageDir(t, "web", "3.0.0", "package: db, operatorVersion: ^1", "package: '"+from+"/db:2.0.0'"), from)
	t.Chdir(t.TempDir())
	out, errs := run(t, 0, flagsFor(t, first), "copy", "--with-dependencies", from+"/web", "layout:offline")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "layout:offline/web:3.0.0@sha256:") {
		t.Errorf("copied: %s", out)
	}
	if !strings.Contains(errs, "task d1 of package web names "+from+"/db:2.0.0") {
		t.Errorf("that a task names the first registry is not said: %s", errs)
	}
	first.Close()
	run(t, 0, flagsFor(t, second), "copy", "layout:offline", to)
	for tag, want := range first.Tags() {
		if got := second.Tags()[strings.Replace(tag, "kudo/", "mirror/deep/", 1)]; got != want {
			t.Errorf("%s has the digest %s, want %s", tag, got, want)
		}
	}
	run(t, 0, flagsFor(t, second), "pull", to+"/web", "-d", "again", "--layout")
	run(t, 0, nil, "pull", "layout:again/web:3.0.0", "-d", "again")
	if out, _ := run(t, 0, nil, "list", "plans", "layout:again/web"); !strings.Contains(out, "deploy") {
		t.Errorf("a package in a folder is not found: %s", out)
	}
	if _, errs := run(t, 1, nil, "copy", "--with-dependencies", "layout:again/web", "layout:third"); !strings.Contains(errs, "dependency of task") {
		t.Errorf("a dependency that is not there: %s", errs)
	}
}

// TestCopyFolder checks S11: what a folder holds is copied after what it depends on, each package once and with one upload, and a second copy
// changes nothing and says so. The folder of one package stands for that package.
func TestCopyFolder(t *testing.T) {
	home(t)
	r := ocitest.New(t, true)
	base, flags := "oci://"+r.Host()+"/kudo", flagsFor(t, r)
	t.Chdir(t.TempDir())
	for _, dir := range []string{packageDir(t, "app", "1.0.0", "package: web"), packageDir(t, "web", "1.0.0", "package: db"), packageDir(t, "db", "1.0.0")} {
		run(t, 0, nil, "push", dir, "layout:offline")
	}
	run(t, 0, nil, "push", packageDir(t, "inner", "1.0.0"), "layout:offline/web")
	for i, args := range [][]string{{"copy", "layout:offline", base}, {"copy", "--with-dependencies", "layout:offline", base + "/mirror"}, {"copy", "layout:offline", base}} {
		r.Requests()
		out, errs := run(t, 0, flags, args...)
		var names []string
		for line := range strings.Lines(out) {
			names = append(names, strings.TrimPrefix(line[:strings.Index(line, ":1.0.0@")], args[len(args)-1]+"/"))
		}
		if want := []string{"db", "web", "app"}; !slices.Equal(names, want) {
			t.Errorf("%q copies %q, want %q", args, names, want)
		}
		if _, uploads := r.Requests(); i < 2 && (uploads != 9 || errs != "") || i == 2 && (uploads != 0 || strings.Count(errs, "has this content already.") != 3) {
			t.Errorf("%q: %d uploads, and %s", args, uploads, errs)
		}
	}
	if out, errs := run(t, 0, nil, "copy", "layout:offline/web", "layout:one"); !strings.HasPrefix(out, "layout:one/web:1.0.0@") || strings.Count(out, "\n") != 1 || errs != "" {
		t.Errorf("the folder of a package: %s%s", out, errs)
	}
	run(t, 0, nil, "push", packageDir(t, "db", "1.0.0", "package: other"), "layout:offline", "--overwrite")
	if _, errs := run(t, 0, nil, "copy", "layout:offline", "layout:two"); !strings.Contains(errs, "is left out, since it has no tag of a version") {
		t.Errorf("what is not copied is not said: %s", errs)
	}
}

// TestCopyConflict checks that two packages of one name and version do not replace one another within a copy.
func TestCopyConflict(t *testing.T) {
	home(t)
	t.Chdir(t.TempDir())
	r := ocitest.New(t, true)
	flags, base := flagsFor(t, r), "oci://"+r.Host()+"/"
	run(t, 0, flags, "push", packageDir(t, "cache", "1.0.0"), base+"a")
	run(t, 0, flags, "push", packageDir(t, "db", "1.0.0"), base+"a")
	run(t, 0, flags, "push", packageDir(t, "db", "1.0.0", "package: '"+base+"a/cache'"), base+"b")
	run(t, 0, flags, "push", packageDir(t, "web", "1.0.0", "package: db", "package: '"+base+"b/db'"), base+"a")
	_, errs := run(t, 1, flags, "copy", "--with-dependencies", "--overwrite", base+"a/web", "layout:c")
	if !strings.Contains(errs, "has the same name and version and another content") {
		t.Errorf("%s", errs)
	}
}

// TestPullTarget checks that pull replaces nothing unasked but the same archive: a target that cannot be read is not taken for none.
func TestPullTarget(t *testing.T) {
	home(t)
	r, a := registryOf(t)
	flags, reference := flagsFor(t, r), "oci://"+r.Host()+"/kudo/web"
	for _, tc := range []struct {
		reason string
		put    func(target string) error
		want   string
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"the same", func(target string) error { return os.WriteFile(target, a.Archive, 0o600) }, ""},
		{"another content", func(target string) error { return os.WriteFile(target, nil, 0o600) }, "exists already, with another content: use --overwrite"},
		{"a link to nothing", func(target string) error { return os.Symlink("none", target) }, "exists already, with another content: use --overwrite"},
		{"a folder", func(target string) error { return os.Mkdir(target, 0o755) }, "exists already, with another content"},
		{"what cannot be reached", func(target string) error { return os.WriteFile(filepath.Dir(target)+"/file", nil, 0o600) }, "Error: compare "},
	} {
		dir := t.TempDir()
		target := filepath.Join(dir, "web-1.0.0.tgz")
		if err := tc.put(target); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(target)
		code := 0
		if tc.want != "" {
			code = 1
		}
		if strings.HasPrefix(tc.reason, "what cannot") {
			dir = filepath.Join(dir, "file")
		}
		_, errs := run(t, code, flags, "pull", reference, "-d", dir)
		if !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s, want %q", tc.reason, errs, tc.want)
		}
		if after, err := os.Lstat(target); code == 1 && before != nil && (err != nil || !os.SameFile(before, after)) {
			t.Errorf("%s: it is replaced (%v)", tc.reason, err)
		}
	}
}

// TestPackChanged checks that a folder that changes between its check and its archive is not packed.
func TestPackChanged(t *testing.T) {
	for file, text := range map[string]string{
		"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters: [{name: A}]\n",
		"operator.yaml":      "",
		"templates/app.yaml": "a: b",
	} {
		dir := packageDir(t, "web", "1.0.0")
		found, err := repository.Resolve(t.Context(), dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := pack(dir, found.Package); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(file))
		if text == "" {
			old, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text = strings.Replace(string(old), "1.0.0", "1.0.1", 1)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := pack(dir, found.Package); err == nil || !strings.Contains(err.Error(), "another package than was checked") {
			t.Errorf("%s changes: %v", file, err)
		}
	}
}

// registryOf returns a registry with version 1.0.0 of package web, and its artifact.
func registryOf(t *testing.T) (*ocitest.Registry, *artifact.Artifact) {
	t.Helper()
	dir := t.TempDir()
	run(t, 0, nil, "create", packageDir(t, "web", "1.0.0"), "-d", dir)
	packed, err := os.ReadFile(filepath.Join(dir, "web-1.0.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := artifact.New(packed, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r := ocitest.New(t, true)
	r.SetTag("kudo/web:1.0.0", a.Manifest, a.Config, a.Archive)
	return r, a
}

// TestHostileArtifacts checks S1, S3, S4, S5 and S31: what is not exactly the package that the tag says is refused, with its reason, and
// nothing is written. Of what is refused by its manifest, nothing else is fetched.
func TestHostileArtifacts(t *testing.T) {
	home(t)
	edit := func(change func(m *ocispec.Manifest)) func(*testing.T, *ocitest.Registry, *artifact.Artifact) {
		return func(t *testing.T, r *ocitest.Registry, a *artifact.Artifact) {
			var m ocispec.Manifest
			if err := json.Unmarshal(a.Manifest, &m); err != nil {
				t.Fatal(err)
			}
			change(&m)
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			r.SetTag("kudo/web:1.0.0", text, a.Config, a.Archive)
		}
	}
	answer := func(part string, do func(w http.ResponseWriter, q *http.Request)) func(*testing.T, *ocitest.Registry, *artifact.Artifact) {
		return func(_ *testing.T, r *ocitest.Registry, _ *artifact.Artifact) {
			r.Hostile = func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, part) || q.Header.Get("Authorization") != "Bearer "+ocitest.Token {
					return false
				}
				do(w, q)
				return true
			}
		}
	}
	foreign := ocitest.NewForeigner(t)
	for _, tc := range []struct {
		reason    string
		change    func(*testing.T, *ocitest.Registry, *artifact.Artifact)
		reference string
		want      string
		blobs     bool
	}{
		{"an index of manifests", func(_ *testing.T, r *ocitest.Registry, a *artifact.Artifact) {
			r.SetTag("kudo/web:1.0.0", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+string(a.Descriptor().Digest)+`","size":1}]}`))
		}, ":1.0.0", "kudo/web:1.0.0 is no package: its type is application/vnd.oci.image.index.v1+json", false},
		{"another type", edit(func(m *ocispec.Manifest) { m.ArtifactType = "text/html" }), ":1.0.0", "kudo/web:1.0.0 is no package: its type is text/html", false},
		{"a second layer", edit(func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }), ":1.0.0", "has 2 layers", false},
		{"a foreign URL", edit(func(m *ocispec.Manifest) { m.Layers[0].URLs = []string{foreign.URL} }), ":1.0.0", "the content is at other URLs", false},
		{"embedded data that differs", edit(func(m *ocispec.Manifest) { m.Layers[0].Data = []byte("x") }), ":1.0.0", "the embedded data is not", false},
		{"a huge layer by its descriptor", edit(func(m *ocispec.Manifest) { m.Layers[0].Size = 1 << 40 }), ":1.0.0", "is not between 1 and", false},
		{"another digest algorithm", edit(func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.SHA512.FromString("x") }), ":1.0.0", "is no sha256 digest", false},
		{"a layer that is smaller than it says", edit(func(m *ocispec.Manifest) { m.Layers[0].Size++ }), ":1.0.0", "mismatch Content-Length", true},
		{"annotations of another package", edit(func(m *ocispec.Manifest) { m.Annotations[ocispec.AnnotationTitle] = "bank" }), ":1.0.0", `title says "bank"`, true},
		{"a version under the tag of another (S31)", func(_ *testing.T, r *ocitest.Registry, a *artifact.Artifact) {
			r.SetTag("kudo/web:2.0.0", a.Manifest, a.Config, a.Archive)
		}, ":2.0.0", "kudo/web:2.0.0 holds version 1.0.0: the tag was moved, or the push was wrong", true},
		{"an old version as the highest (S31)", func(_ *testing.T, r *ocitest.Registry, a *artifact.Artifact) {
			r.SetTag("kudo/web:9.9.9", a.Manifest, a.Config, a.Archive)
		}, "", "kudo/web:9.9.9 holds version 1.0.0", true},
		{"a package in the repository of another (S4)", func(_ *testing.T, r *ocitest.Registry, a *artifact.Artifact) {
			r.SetTag("kudo/bank:1.0.0", a.Manifest, a.Config, a.Archive)
		}, "/../bank:1.0.0", "holds package web: the last part of the path must be its name", true},
		{"a manifest with another digest", answer("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			w.Header().Set("Content-Length", "2")
			_, _ = w.Write([]byte("{}"))
		}), ":1.0.0", "mismatched digest", false},
		{"a manifest that is too large", answer("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			w.Header().Set("Content-Length", fmt.Sprint(artifact.MaxManifest+1))
			_, _ = w.Write(make([]byte, artifact.MaxManifest+1))
		}), ":1.0.0", "more than the 262144 allowed", false},
		{"an endless manifest", answer("/manifests/", func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			for q.Method == http.MethodGet {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}), ":1.0.0", "kudo/web:1.0.0: ", false},
		{"an endless layer", answer("/blobs/", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}), ":1.0.0", "read the blob sha256:", true},
		{"a page instead of an answer", answer("/manifests/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }), ":1.0.0", "is no package: its type is text/", false},
		{"tags without an end", answer("/tags/", func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/kudo/web/tags/list?last=%s1>; rel="next"`, q.URL.Query().Get("last")))
			_, _ = fmt.Fprintf(w, `{"tags":["1.0.0%s"]}`, strings.Repeat("1", len(q.URL.Query().Get("last"))))
		}), "", "exceeded 20 pages", false},
		{"tags in a circle", answer("/tags/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/kudo/web/tags/list?last=1>; rel="next"`)
			_, _ = w.Write([]byte(`{"tags":["1.0.0"]}`))
		}), "", "the pages of tags do not advance", false},
		{"too many tags", answer("/tags/", func(w http.ResponseWriter, _ *http.Request) {
			tags := make([]string, 10_001)
			for i := range tags {
				tags[i] = fmt.Sprint("1.0.", i)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags})
		}), "", "more than the 10000 tags", false},
		{"a huge page of tags", answer("/tags/", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(append([]byte(`{"tags":["`), bytes.Repeat([]byte("a"), 5<<20)...))
		}), "", "list tags: ", false},
		{"pages of tags on another host", answer("/tags/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<"+foreign.URL+`/v2/kudo/web/tags/list>; rel="next"`)
			_, _ = w.Write([]byte(`{"tags":["1.0.0"]}`))
		}), "", "list tags: ", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r, a := registryOf(t)
			tc.change(t, r, a)
			name := "kudo/web" + tc.reference
			if strings.HasPrefix(tc.reference, "/../") {
				name = "kudo/" + tc.reference[len("/../"):]
			}
			target := filepath.Join(t.TempDir(), "target")
			_, errs := run(t, 1, []string{"--registry-ca", ocitest.CAFile(t, r.Server, foreign.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host(), foreign.Listener.Addr().String())},
				"pull", "oci://"+r.Host()+"/"+name, "-d", target)
			if !strings.Contains(errs, tc.want) {
				t.Errorf("%s, want %q", errs, tc.want)
			}
			requests, _ := r.Requests()
			if asked := slices.ContainsFunc(requests, func(q string) bool { return strings.Contains(q, "/blobs/") }); asked != tc.blobs {
				t.Errorf("blobs were asked for: %t, in %q", asked, requests)
			}
			if _, err := os.Stat(target); err == nil {
				t.Error("something is written")
			}
		})
	}
	if seen := foreign.Seen(); len(seen) > 0 {
		t.Errorf("the foreign host was asked %q", seen)
	}
}

// TestHostileRegistry checks S16: the credentials of a registry reach no other host, and what it asks another host for is not asked.
func TestHostileRegistry(t *testing.T) {
	home(t)
	const authorized = "Bearer " + ocitest.Token
	for _, tc := range []struct {
		reason  string
		command string
		hostile func(w http.ResponseWriter, q *http.Request, foreign string) bool
		want    string
		code    int
		asked   bool
	}{
		{"a realm of another host", "pull", func(w http.ResponseWriter, q *http.Request, foreign string) bool {
			if q.URL.Path == "/token" || q.Header.Get("Authorization") == authorized {
				return false
			}
			ocitest.Challenge(w, foreign)
			return true
		}, "give --token-host", 1, false},
		{"a manifest elsewhere", "pull", func(w http.ResponseWriter, q *http.Request, foreign string) bool {
			return redirect(w, q, "/manifests/", authorized, foreign)
		}, "kudo/web:1.0.0", 1, true},
		{"a layer elsewhere", "pull", func(w http.ResponseWriter, q *http.Request, foreign string) bool {
			return redirect(w, q, "/blobs/", authorized, foreign)
		}, "kudo/web:1.0.0", 1, true},
		{"an upload that continues elsewhere", "push", func(w http.ResponseWriter, q *http.Request, foreign string) bool {
			if q.Method != http.MethodPost || q.Header.Get("Authorization") != authorized {
				return false
			}
			w.Header().Set("Location", foreign+"/upload")
			w.WriteHeader(http.StatusAccepted)
			return true
		}, "is on a different host", 1, false},
		{"an upload that is redirected", "push", func(w http.ResponseWriter, q *http.Request, foreign string) bool {
			return q.Method == http.MethodPut && redirect(w, q, "/manifests/", authorized, foreign)
		}, "another host", 1, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r, _ := registryOf(t)
			f := ocitest.NewForeigner(t)
			r.Hostile = func(w http.ResponseWriter, q *http.Request) bool { return tc.hostile(w, q, f.URL) }
			flags := []string{"--registry-ca", ocitest.CAFile(t, r.Server, f.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host(), f.Listener.Addr().String())}
			args := []string{"pull", "oci://" + r.Host() + "/kudo/web:1.0.0", "-d", t.TempDir()}
			if tc.command == "push" {
				args = []string{"push", packageDir(t, "web", "1.1.0"), "oci://" + r.Host() + "/kudo"}
			}
			_, errs := run(t, tc.code, flags, args...)
			if leaked := f.Leaked(); len(leaked) > 0 {
				t.Errorf("the foreign host saw %q in %q", leaked, f.Seen())
			}
			if asked := len(f.Seen()) > 0; asked != tc.asked {
				t.Errorf("the foreign host was asked %q", f.Seen())
			}
			if !strings.Contains(errs, tc.want) || strings.Contains(errs, ocitest.Password) {
				t.Errorf("%s, want %q", errs, tc.want)
			}
		})
	}
}

func redirect(w http.ResponseWriter, q *http.Request, part, authorized, foreign string) bool {
	if !strings.Contains(q.URL.Path, part) || q.Header.Get("Authorization") != authorized {
		return false
	}
	http.Redirect(w, q, foreign+"/x", http.StatusTemporaryRedirect)
	return true
}
