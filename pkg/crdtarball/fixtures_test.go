package crdtarball

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"
)

// item is an entry of a tar, with its text.
type item struct {
	tar.Header
	text string
}

func file(name, text string) item {
	return item{tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(text))}, text}
}

func folder(name string) item {
	return item{tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir}, ""}
}

func link(name, to string) item {
	return item{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
}

// pack makes a tarball.
func pack(t testing.TB, items ...item) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := tar.NewWriter(&out)
	for _, i := range items {
		if err := packed.WriteHeader(&i.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(packed, i.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return gzipped(t, out.Bytes())
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	if _, err := zipped.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarOf(t testing.TB, archive []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// crd is the text of a CustomResourceDefinition, named `<plural>.<group>`.
func crd(name string) string {
	plural, group, _ := strings.Cut(name, ".")
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + name + `
spec:
  group: ` + group + `
  names: {plural: ` + plural + `, singular: ` + plural + `x, kind: K` + plural + `}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object}}}
`
}

// tarball is a small good tarball, of CustomResourceDefinitions of these names.
func tarball(t testing.TB, names ...string) []byte {
	t.Helper()
	var items []item
	for _, name := range names {
		items = append(items, file("crds/"+name+".yaml", crd(name)))
	}
	return pack(t, append(items, file("LICENSE", "free"))...)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// leftovers lists what is in a cache folder beside entries and locks.
func leftovers(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !isKey(e.Name()) && !strings.HasPrefix(e.Name(), lockPrefix) && !strings.HasPrefix(e.Name(), usePrefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// checkNothing wants a cache folder without entries and leftovers.
func checkNothing(t *testing.T, dir string) {
	t.Helper()
	entries, err := openCache(t, dir).List()
	if err != nil || len(entries) != 0 || leftovers(t, dir) != nil {
		t.Errorf("entries %v, left over %v, %v", entries, leftovers(t, dir), err)
	}
}
