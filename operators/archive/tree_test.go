package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// unpacked is a small tree that was read from an archive.
func unpacked(t *testing.T) fs.FS {
	t.Helper()
	fsys, err := Read(bytes.NewReader(pack(t, file("b", "22"), file("d/z", "1"), file("d/a", ""), file("d/m/x", "333"), file("a", "1"))),
		Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// TestTreeErrors checks the operation, the path and the cause of each error of a tree.
func TestTreeErrors(t *testing.T) {
	fsys := unpacked(t)
	open := func(name string) error { _, err := fsys.Open(name); return err }
	read := func(name string) error { _, err := fs.ReadFile(fsys, name); return err }
	list := func(name string) error { _, err := fs.ReadDir(fsys, name); return err }
	stat := func(name string) error { _, err := fs.Stat(fsys, name); return err }
	for name, tc := range map[string]struct {
		do    func(string) error
		path  string
		op    string
		cause error
	}{
		"OpenAbsent":   {open, "x", "open", fs.ErrNotExist},
		"OpenBelow":    {open, "b/x", "open", fs.ErrNotExist},
		"OpenAbsolute": {open, "/b", "open", fs.ErrInvalid},
		"OpenParent":   {open, "d/../b", "open", fs.ErrInvalid},
		"OpenDot":      {open, "./b", "open", fs.ErrInvalid},
		"OpenSlash":    {open, "d/", "open", fs.ErrInvalid},
		"OpenEmpty":    {open, "", "open", fs.ErrInvalid},
		"OpenCase":     {open, "B", "open", fs.ErrNotExist},
		"ReadAbsent":   {read, "d/x", "read", fs.ErrNotExist},
		"ReadFolder":   {read, "d", "read", fs.ErrInvalid},
		"ReadInvalid":  {read, "../b", "read", fs.ErrInvalid},
		"ListAbsent":   {list, "x", "readdir", fs.ErrNotExist},
		"ListFile":     {list, "b", "readdir", fs.ErrInvalid},
		"ListInvalid":  {list, "d//m", "readdir", fs.ErrInvalid},
		"StatAbsent":   {stat, "d/m/y", "stat", fs.ErrNotExist},
		"StatInvalid":  {stat, "d/.", "stat", fs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(tc.path)
			var at *fs.PathError
			if !errors.As(err, &at) || at.Op != tc.op || at.Path != tc.path || !errors.Is(err, tc.cause) {
				t.Errorf("error %v, want %s %s: %v", err, tc.op, tc.path, tc.cause)
			}
		})
	}
}

// TestTreeLists checks that folders list their entries by name, whatever the order of the archive is.
func TestTreeLists(t *testing.T) {
	fsys := unpacked(t)
	for folder, want := range map[string][]string{".": {"a", "b", "d/"}, "d": {"a", "m/", "z"}, "d/m": {"x"}} {
		entries, err := fs.ReadDir(fsys, folder)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			info, err := entry.Info()
			if err != nil || info.Name() != entry.Name() || info.IsDir() != entry.IsDir() || info.Mode().Type() != entry.Type() ||
				info.Sys() != nil || !info.ModTime().IsZero() {
				t.Errorf("%s: %v, %v", entry.Name(), info, err)
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", folder, diff)
		}
	}
	if info, err := fs.Stat(fsys, "d/m/x"); err != nil || info.Size() != 3 {
		t.Errorf("the size of a file: %v, %v", info, err)
	}
}

// TestTreeDoesNotChange checks that no caller can change a tree by what it is given.
func TestTreeDoesNotChange(t *testing.T) {
	fsys := unpacked(t)
	text, err := fs.ReadFile(fsys, "b")
	if err != nil {
		t.Fatal(err)
	}
	text[0] = 'X'
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	entries[0] = entries[2]
	folder, err := fsys.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := folder.(fs.ReadDirFile).ReadDir(-1)
	if err != nil {
		t.Fatal(err)
	}
	opened[0] = opened[2]
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "22", "d/a": "", "d/m/x": "333", "d/z": "1"}, contents(t, fsys)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOpenFolder checks that a folder is listed piece by piece, and cannot be read as a file.
func TestOpenFolder(t *testing.T) {
	opened, err := unpacked(t).Open("d")
	if err != nil {
		t.Fatal(err)
	}
	folder := opened.(fs.ReadDirFile)
	if info, err := folder.Stat(); err != nil || info.Name() != "d" || !info.IsDir() {
		t.Errorf("the folder: %v, %v", info, err)
	}
	if _, err := folder.Read(make([]byte, 1)); !errors.Is(err, fs.ErrInvalid) || err.Error() != "read d: invalid argument" {
		t.Errorf("a folder is no file: %v", err)
	}
	for _, step := range []struct {
		count int
		want  []string
		err   error
	}{{2, []string{"a", "m"}, nil}, {2, []string{"z"}, nil}, {2, nil, io.EOF}, {-1, nil, nil}, {0, nil, nil}, {1, nil, io.EOF}} {
		entries, err := folder.ReadDir(step.count)
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if diff := cmp.Diff(step.want, got); diff != "" || !errors.Is(err, step.err) {
			t.Errorf("%d at most: error %v, -want +got:\n%s", step.count, err, diff)
		}
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenFile checks that a file can be read from any place of it, by two readers at once.
func TestOpenFile(t *testing.T) {
	fsys := unpacked(t)
	one, err := fsys.Open("d/m/x")
	if err != nil {
		t.Fatal(err)
	}
	two, err := fsys.Open("d/m/x")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 2)
	if n, err := io.ReadFull(one, first); n != 2 || err != nil {
		t.Error(n, err)
	}
	if rest, err := io.ReadAll(two); string(rest) != "333" || err != nil {
		t.Errorf("another reader begins at the beginning: %q, %v", rest, err)
	}
	if at, err := one.(io.Seeker).Seek(0, io.SeekStart); at != 0 || err != nil {
		t.Error(at, err)
	}
	if all, err := io.ReadAll(one); string(all) != "333" || err != nil {
		t.Errorf("after Seek: %q, %v", all, err)
	}
	if info, err := one.Stat(); err != nil || info.Name() != "x" || info.Size() != 3 || info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
}

// TestEmptyTree checks that an archive without entries is an empty folder.
func TestEmptyTree(t *testing.T) {
	fsys, err := Read(bytes.NewReader(pack(t)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys); err != nil {
		t.Error(err)
	}
	if entries, err := fs.ReadDir(fsys, "."); len(entries) != 0 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}
