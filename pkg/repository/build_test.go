package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators/archive"
)

// versioned are the files of a package of a version.
func versioned(name, version string) map[string]string {
	content := files(name)
	content["operator.yaml"] = strings.Replace(content["operator.yaml"], "operatorVersion: 0.1.0", "operatorVersion: "+version, 1)
	return content
}

// TestBuild checks which files become entries, where their URLs point to, and that a broken archive does not hide others.
func TestBuild(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	folder := fstest.MapFS{
		"a.tgz": file(pack(t, versioned("web", "1.0.0"))), "old/b c.tar.gz": file(pack(t, versioned("web", "0.9.0"))),
		"db.tgz": file(pack(t, files("db"))), "folder.tgz/readme": file("a folder"), "notes.txt": file("no archive"),
		"broken.tgz": file("no archive"), "empty.tgz": file(pack(t, map[string]string{"readme": ""})),
		"huge.tgz": file(strings.Repeat("\x00", int(archive.DefaultLimits().Compressed)+1)),
	}
	for base, want := range map[string]map[string][]string{
		"":                {"web": {"1.0.0 a.tgz", "0.9.0 old/b%20c.tar.gz"}, "db": {"0.1.0 db.tgz"}},
		"https://h/repo/": {"web": {"1.0.0 https://h/repo/a.tgz", "0.9.0 https://h/repo/old/b%20c.tar.gz"}, "db": {"0.1.0 https://h/repo/db.tgz"}},
	} {
		entries, skipped, err := Build(folder, base)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for name, list := range entries {
			for _, e := range list {
				got[name] = append(got[name], e.OperatorVersion+" "+strings.Join(e.URLs, " "))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("base %q (-want +got):\n%s", base, diff)
		}
		var names []string
		for _, err := range skipped {
			name, _, _ := strings.Cut(err.Error(), ": ")
			names = append(names, name)
		}
		if diff := cmp.Diff([]string{"broken.tgz", "empty.tgz", "huge.tgz"}, names); diff != "" {
			t.Errorf("what is skipped, in the order of names (-want +got):\n%s", diff)
		}
		if want := fmt.Sprintf("huge.tgz: has more than the %d bytes allowed", archive.DefaultLimits().Compressed); skipped[2].Error() != want {
			t.Errorf("got %v, want %s", skipped[2], want)
		}
		if digest := entries["db"][0].Digest; digest != digestOf(folder["db.tgz"].Data) {
			t.Errorf("the digest of db.tgz is %s", digest)
		}
	}
}

// brokenFolder fails to open one file.
type brokenFolder struct {
	fs.FS
	name string
}

func (b brokenFolder) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.FS.Open(name)
}

// TestBuildFails checks that one version in two archives is an error, and that an archive that cannot be opened is skipped.
func TestBuildFails(t *testing.T) {
	packed := &fstest.MapFile{Data: []byte(pack(t, files("web")))}
	_, _, err := Build(fstest.MapFS{"b.tgz": packed, "a/web.tgz": packed}, "")
	const want = "a/web.tgz and b.tgz hold the same version of package web: delete one, or raise operatorVersion"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	entries, skipped, err := Build(brokenFolder{fstest.MapFS{"a.tgz": packed, "b.tgz": packed}, "a.tgz"}, "")
	if err != nil || len(entries["web"]) != 1 || len(skipped) != 1 || !errors.Is(skipped[0], fs.ErrPermission) {
		t.Errorf("%v, %v, %v", entries, skipped, err)
	}
	if _, _, err := Build(brokenFolder{fstest.MapFS{"a.tgz": packed}, "."}, ""); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a folder that cannot be read is not an empty one: %v", err)
	}
}

// TestMerge checks that the first index goes before the other where both have a version, and that a merge twice is one.
func TestMerge(t *testing.T) {
	entry := func(app, operator, url string) Entry {
		return Entry{Name: "web", AppVersion: app, OperatorVersion: operator, URLs: []string{url}}
	}
	other := map[string][]Entry{
		"web": {entry("", "1.0.0", "second"), entry("1.0.0", "1.0.0", "app"), entry("", "1.1.0", "newer"), entry("", "1.1.0", "twice")},
		"db":  {entry("", "1.0.0", "db")},
	}
	before := map[string][]Entry{"web": slices.Clone(other["web"]), "db": slices.Clone(other["db"])}
	into := map[string][]Entry{"web": {entry("", "1.0.0", "first")}, "cache": {entry("", "1.0.0", "cache")}}
	want := map[string][]Entry{
		"web":   {entry("", "1.0.0", "first"), entry("1.0.0", "1.0.0", "app"), entry("", "1.1.0", "newer")},
		"cache": {entry("", "1.0.0", "cache")}, "db": {entry("", "1.0.0", "db")},
	}
	for _, reason := range []string{"a merge", "the same merge again"} {
		if Merge(into, other); cmp.Diff(want, into) != "" {
			t.Errorf("%s (-want +got):\n%s", reason, cmp.Diff(want, into))
		}
	}
	if diff := cmp.Diff(before, other); diff != "" {
		t.Errorf("the other index was changed:\n%s", diff)
	}
}
