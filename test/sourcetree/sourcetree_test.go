package sourcetree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRoot(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Dir(filepath.Dir(here)); Root() != want {
		t.Errorf("Root() = %s, want %s", Root(), want)
	}
	t.Chdir(t.TempDir())
	if want := filepath.Dir(filepath.Dir(here)); Root() != want {
		t.Errorf("Root() = %s after a change of the working directory, want %s", Root(), want)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	nested := filepath.Join(dir, "nested", "folder")
	if err := os.MkdirAll(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"go.mod": module + "\ngo 1.26\n", "nested/go.mod": "module kudo.dev/kudo/nested\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason, dir, want string
		err               error
	}{
		{reason: "the folder itself", dir: dir, want: dir},
		{reason: "another module below the root is passed over", dir: nested, want: dir},
		{reason: "no go.mod up to the root of the file system", dir: string(filepath.Separator)},
		{reason: "the working directory is not known", dir: dir, err: errors.New("deleted")},
	} {
		if got := find(tc.dir, tc.err); got != tc.want {
			t.Errorf("%s: find(%s) = %q, want %q", tc.reason, tc.dir, got, tc.want)
		}
	}
}
