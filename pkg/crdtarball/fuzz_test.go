package crdtarball

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// fuzzLimits are small, so that limits are met.
func fuzzLimits() Limits {
	return Limits{Compressed: 1 << 20, Unpacked: 1 << 20, File: 1 << 18, Entries: 50, Depth: 6, Name: 40, Documents: 1 << 18, Nodes: 20_000}
}

// FuzzExtract unpacks anything: nothing leaves the root, nothing but files and folders is made, the limits hold, and
// what is reported is what is there.
func FuzzExtract(f *testing.F) {
	f.Add(pack(f, file("crds/a.yaml", "a"), folder("crds"), file("./b.yaml", strings.Repeat("b", 5000))))
	f.Add(pack(f, link("l", "/etc/passwd"), file("l/x", "x")))
	f.Add(pack(f, file("../x", "x")))
	f.Add(pack(f, file("a", "x"), file("A", "y")))
	f.Add(tarOf(f, pack(f, file("a/b", "x"), file("a", "y"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, archive := range [][]byte{data, gzipped(t, data)} {
			outside := t.TempDir()
			inside := filepath.Join(outside, "root")
			if err := os.Mkdir(inside, 0o755); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(inside)
			if err != nil {
				t.Fatal(err)
			}
			limits := fuzzLimits()
			files, err := extract(bytes.NewReader(archive), root, limits)
			checkTree(t, outside, files, err == nil, limits)
			if err := root.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func checkTree(t *testing.T, outside string, files []unpackedFile, complete bool, limits Limits) {
	t.Helper()
	found, total := 0, int64(0)
	err := filepath.WalkDir(outside, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, _ := filepath.Rel(outside, name); rel != "." && rel != "root" && !strings.HasPrefix(rel, "root"+string(filepath.Separator)) {
			t.Errorf("%s was made outside of the root", rel)
		}
		if entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			t.Errorf("%s is no regular file: %s", name, info.Mode())
		}
		found++
		total += info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > limits.Unpacked || found > limits.Entries {
		t.Errorf("%d files of %d bytes were made", found, total)
	}
	if complete && found != len(files) {
		t.Errorf("%d files are there, %d were reported", found, len(files))
	}
}

// FuzzDocuments reads anything: what is accepted has only CustomResourceDefinitions of unique names, and can be copied
// and written as JSON.
func FuzzDocuments(f *testing.F) {
	f.Add(crd("a.example.org"))
	f.Add(crd("a.example.org") + "---\n" + crd("b.example.org"))
	f.Add("<!DOCTYPE html><html></html>")
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	f.Add("a: &a [1,1,1]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n")
	f.Add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := Documents(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, fuzzLimits())
		if err != nil {
			if objects != nil {
				t.Error("an error comes with objects")
			}
			return
		}
		names := map[string]bool{}
		for _, object := range objects {
			if object.GetAPIVersion() != crdVersion || object.GetKind() != crdKind || object.GetName() == "" || names[object.GetName()] {
				t.Errorf("accepted %s %s %q", object.GetAPIVersion(), object.GetKind(), object.GetName())
			}
			names[object.GetName()] = true
			if _, err := object.DeepCopy().MarshalJSON(); err != nil {
				t.Errorf("cannot be written: %v", err)
			}
		}
		if len(objects) == 0 {
			t.Error("accepted nothing")
		}
	})
}
