package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPack checks R9: entries are sorted, belong to user 0 and have the commit's time, so that the same content gives the same bytes.
func TestPack(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	entries := func() map[string]entry {
		folder := t.TempDir()
		for _, name := range []string{"b", "a"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("content of "+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return map[string]entry{"z/b": {filepath.Join(folder, "b"), 0o755}, "a": {filepath.Join(folder, "a"), 0o644}}
	}
	for name, pack := range map[string]func(io.Writer, map[string]entry, time.Time) error{"tar": packTar, "zip": packZip} {
		var first, second bytes.Buffer
		if err := errors.Join(pack(&first, entries(), at), pack(&second, entries(), at)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two archives of the same files differ", name)
		}
		var names []string
		switch name {
		case "tar":
			for r := tar.NewReader(&first); ; {
				header, err := r.Next()
				if err != nil {
					break
				}
				names = append(names, header.Name)
				if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || !header.ModTime.Equal(at) {
					t.Errorf("%s: %+v", header.Name, header)
				}
			}
		case "zip":
			r, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range r.File {
				names = append(names, file.Name)
				if !file.Modified.Equal(at) || (file.Name == "z/b") != (file.Mode().Perm() == 0o755) {
					t.Errorf("%s: %v, mode %s", file.Name, file.Modified, file.Mode())
				}
			}
		}
		if !slices.Equal(names, []string{"a", "z/b"}) {
			t.Errorf("%s: entries %v", name, names)
		}
	}
}
