package repository

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/test/ocitest"
)

// TestFolderContent checks S11: all versions of a folder are found, and what is not among them is named by a warning, so that a copy loses
// nothing silently. The folder of a package stands for that package, whatever else is in it.
func TestFolderContent(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	base := "layout:" + dir + "/offline"
	s := source(t, Home{t.TempDir()}, registry.Options{})
	var warnings []string
	s.warn = func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	moved := pushFiles(t, s, base, files("web"))
	other := files("web")
	other["templates/a.yaml"] = "a: b"
	a, err := artifact.New([]byte(pack(t, other)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	web, _, err := s.Push(t.Context(), a, base, true)
	if err != nil {
		t.Fatal(err)
	}
	db := pushFiles(t, s, base, files("db"))
	offline := filepath.Join(dir, "offline")
	edit := func(name string, change func(*ocispec.Index)) {
		var index ocispec.Index
		name = filepath.Join(offline, name, "index.json")
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &index)
		}
		if err == nil {
			change(&index)
			text, err = json.Marshal(index)
		}
		if err := errors.Join(err, os.WriteFile(name, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	edit("db", func(i *ocispec.Index) { // a further tag of the same manifest loses nothing
		d := i.Manifests[0]
		d.Annotations = map[string]string{ocispec.AnnotationRefName: "latest"}
		i.Manifests = append(i.Manifests, d)
	})
	pushFiles(t, s, "layout:"+offline+"/web", files("inner"))
	if err := errors.Join(os.Symlink("db", filepath.Join(offline, "link")), os.MkdirAll(filepath.Join(offline, "other", "deep"), 0o755),
		os.WriteFile(filepath.Join(offline, "README"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := s.FolderContent(t.Context(), base)
	db.Digest, web.Digest = "", ""
	if diff := cmp.Diff([]Reference{db, web}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	want := []string{
		filepath.Join(offline, "link") + " is left out, since it is a link: replace it by the folder that it leads to",
		filepath.Join(offline, "other") + " is left out, since it has no index.json",
		base + "/web@" + string(moved.Digest) + " is left out, since it has no tag of a version: name it by its digest",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings: %s", diff)
	}
	if got, err := s.FolderContent(t.Context(), base+"/web"); err != nil || len(got) > 0 {
		t.Errorf("the folder of a package holds %v (%v)", got, err)
	}
}

// TestSortByDependencies checks that each package comes after those that it depends on, once, and that a circle does not matter.
func TestSortByDependencies(t *testing.T) {
	base := "layout:" + filepath.ToSlash(t.TempDir())
	s := source(t, Home{t.TempDir()}, registry.Options{})
	var all []Reference
	for _, p := range []map[string]string{depending("app", "package: 'layout:elsewhere/web'"), files("base"), depending("db", "package: web"),
		depending("web", "package: db"), depending("zoo", "package: none")} {
		all = append(all, pushFiles(t, s, base, p))
	}
	got, err := s.SortByDependencies(t.Context(), all)
	var names []string
	for _, r := range got {
		if names = append(names, r.Name); r.Digest == "" || r.Tag != "0.1.0" {
			t.Errorf("%s has no digest or another tag", r)
		}
	}
	if want := []string{"db", "web", "app", "base", "zoo"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the order is %q, want %q (%v)", names, want, err)
	}
}

// TestPulledAgain checks that only the last artifact is kept in memory, and that another one is fetched again by its digest, from where it
// was found: a tag that moves while a command runs changes nothing, and the registry of a dependency gets no more settings than before.
func TestPulledAgain(t *testing.T) {
	r := ocitest.New(t, true)
	base := "oci://" + r.Host() + "/kudo"
	config := ocitest.ConfigFile(t, "", r.Host())
	s := source(t, Home{t.TempDir()}, registry.Options{ConfigFile: config, Roots: rootsOf(t, r)})
	web, db := pushFiles(t, s, base, files("web")), pushFiles(t, s, base, files("db"))
	web.Digest = ""
	first, err := s.pull(t.Context(), web, Versions{}, &Found{source: Reference{Base: "oci://other.example.org/kudo"}})
	if err != nil {
		t.Fatal(err)
	}
	pinned, kept := first.Reference, weak.Make(first)
	first = nil
	if _, err := s.Pull(t.Context(), db, Versions{}); err != nil {
		t.Fatal(err)
	}
	if runtime.GC(); kept.Value() != nil {
		t.Error("an artifact stays in memory after another one was pulled")
	}
	r.SetTag("kudo/web:"+web.Tag, r.Blob("kudo/db", string(db.Digest)))
	for _, again := range []Reference{web, pinned} {
		if got, err := s.Pull(t.Context(), again, Versions{}); err != nil || got.Reference != pinned {
			t.Errorf("%s is pulled again: %v", again, err)
		}
		if _, err := s.Pull(t.Context(), db, Versions{}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := s.resolved[resolvedKey(web, Versions{})], s.resolved[resolvedKey(pinned, Versions{})]; a.store == nil || a.store != b.store {
		t.Error("the artifact is fetched by other settings the second time")
	}
}

// TestPushAgain checks that a push of what is there writes nothing and says so, that it mends a folder that lacks a part, and that what has the
// tag is written again with overwrite.
func TestPushAgain(t *testing.T) {
	base := "layout:" + filepath.ToSlash(t.TempDir())
	s := source(t, Home{t.TempDir()}, registry.Options{})
	a, err := artifact.New([]byte(pack(t, files("web"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := artifact.ParseManifest(a.Manifest, a.Descriptor().MediaType)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimPrefix(base, layoutScheme), "web")
	for _, tc := range []struct {
		reason    string
		remove    string
		overwrite bool
		written   bool
	}{
		{"a new package", "", false, true},
		{"the same", "", false, false},
		{"the same, with overwrite", "", true, true},
		{"the same, without its archive", m.Layer.Digest.Encoded(), false, true},
		{"the same, without its config", m.Config.Digest.Encoded(), false, true},
		{"the same, with all parts", "", false, false},
	} {
		if tc.remove != "" {
			if err := os.Remove(filepath.Join(dir, "blobs", "sha256", tc.remove)); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := os.Stat(filepath.Join(dir, "index.json"))
		r, written, err := s.Push(t.Context(), a, base, tc.overwrite)
		if err != nil || written != tc.written || r.Digest != a.Descriptor().Digest {
			t.Errorf("%s: written %t as %s (%v)", tc.reason, written, r, err)
		}
		after, err := os.Stat(filepath.Join(dir, "index.json"))
		if err != nil || !tc.written && !os.SameFile(before, after) {
			t.Errorf("%s: the index is written (%v)", tc.reason, err)
		}
		if pulled, err := s.Pull(t.Context(), r, Versions{}); err != nil || pulled.Reference != r {
			t.Errorf("%s: pull: %v", tc.reason, err)
		}
	}
}
