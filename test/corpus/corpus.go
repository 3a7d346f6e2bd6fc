// Package corpus finds the packages, suites and definitions by others that tests read and this project does not contain.
package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kudo.dev/kudo/test/sourcetree"
)

// Dir returns the folder of the corpus, or "" if there is none: the one that KUDO_TEST_CORPUS names, or else
// shared/corpus beside the project.
func Dir() string {
	dir := os.Getenv("KUDO_TEST_CORPUS")
	if dir == "" {
		dir = filepath.Join(sourcetree.Root(), "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// Require returns the folder of the corpus, and skips the test if there is none.
func Require(t testing.TB) string {
	t.Helper()
	dir := Dir()
	if dir == "" {
		t.Skip("the corpus of packages by others is absent: KUDO_TEST_CORPUS names its folder")
	}
	return dir
}

// Optional returns the folder of the corpus, or "" if there is none. A test shows that by a subtest that is skipped.
func Optional(t testing.TB) string {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Run("corpus", func(t *testing.T) { Require(t) })
	}
	return Dir()
}

// Name is the name of a subtest for a folder. Those of the corpus are below the subtest that Optional skips without a corpus, so that its skip
// excuses them.
func Name(folder string) string {
	if relative, err := filepath.Rel(Dir(), folder); Dir() != "" && err == nil && filepath.IsLocal(relative) {
		folder = filepath.Join("corpus", relative)
	}
	return filepath.ToSlash(folder)
}

// Folders returns the folders below root that hold a file with a name, in lexical order.
func Folders(t testing.TB, root, name string) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Fatalf("no folder below %s holds a file %s", root, name)
	}
	return folders
}
