package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	for _, content := range []string{"first", "second, which is longer", ""} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("read %q (%v), want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode(), err)
	}
	if err := Write(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v (%v), want 0644", info.Mode(), err)
	}
	assertNames(t, dir, "token")
}

// TestWriteFails checks that what cannot be written whole leaves the file and its folder as they were.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.yaml")
	if err := Write(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is full")
	err := WriteFunc(path, 0o644, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "write "+path) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the file holds %q (%v), want the old content", got, err)
	}
	assertNames(t, dir, "index.yaml")
	missing := filepath.Join(dir, "none", "a")
	if err := Write(missing, nil, 0o644); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("the error is %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "folder"), nil, 0o644); err == nil {
		t.Error("a folder was replaced by a file")
	}
	assertNames(t, dir, "folder", "index.yaml")
}

// TestWriteIn checks that a file within a root is replaced as a whole, and that links do not lead the writer out of the root.
func TestWriteIn(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for link, target := range map[string]string{"away": outside, "file": filepath.Join(outside, "file")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ reason, name, content, want string }{
		{"a new file", "folder/a", "first", ""},
		{"a file that is there", "folder/a", "second", ""},
		{"a link, which is replaced", "file", "third", ""},
		{"a file below a link", "away/a", "x", filepath.Join(dir, "away/a")},
		{"a path that leads out", "../a", "x", "path escapes"},
		{"a folder", "folder", "x", "write " + filepath.Join(dir, "folder")},
	} {
		err := WriteIn(root, tc.name, []byte(tc.content), 0o640)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if info, errStat := root.Lstat(tc.name); err == nil && (errStat != nil || info.Mode() != 0o640) {
			t.Errorf("%s: %v (%v)", tc.reason, info, errStat)
		}
		if got, errRead := root.ReadFile(tc.name); err == nil && (errRead != nil || string(got) != tc.content) {
			t.Errorf("%s: the file holds %q (%v)", tc.reason, got, errRead)
		}
	}
	assertNames(t, outside)
	assertNames(t, dir, "away", "file", "folder")
	assertNames(t, filepath.Join(dir, "folder"), "a")
}

func assertNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %q, want %q", names, want)
	}
}

// TestMoveFolder checks that a folder is moved as a whole, and not over what is there.
func TestMoveFolder(t *testing.T) {
	dir := t.TempDir()
	folder, target := filepath.Join(dir, "temporary"), filepath.Join(dir, "bundle")
	for _, name := range []string{folder, target} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Write(filepath.Join(name, "of"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := MoveFolder(folder, target); err == nil || !strings.Contains(err.Error(), "write "+target) {
		t.Errorf("the error over a folder that is there is %v", err)
	}
	assertNames(t, dir, "bundle", "temporary")
	if err := os.RemoveAll(target); err != nil {
		t.Fatal(err)
	}
	if err := MoveFolder(folder, target); err != nil {
		t.Fatal(err)
	}
	assertNames(t, dir, "bundle")
	if got, err := os.ReadFile(filepath.Join(target, "of")); err != nil || string(got) != folder {
		t.Errorf("the moved folder holds %q (%v)", got, err)
	}
}
