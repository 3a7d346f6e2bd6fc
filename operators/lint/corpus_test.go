package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kudo.dev/kudo/operators"
)

// TestCorpus: what KUDO's verifier calls valid, is valid.
func TestCorpus(t *testing.T) {
	roots := []string{filepath.Join("..", "catalog")}
	corpus := os.Getenv("KUDO_TEST_CORPUS")
	if corpus == "" {
		corpus = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(corpus); err == nil {
		roots = append(roots, corpus)
	} else {
		t.Run("others", func(t *testing.T) { t.Skip("the packages by others are not there: set KUDO_TEST_CORPUS") })
	}
	found := 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != operators.OperatorFileName {
				return err
			}
			found++
			t.Run(filepath.ToSlash(filepath.Dir(path)), func(t *testing.T) {
				pkg, err := operators.Read(os.DirFS(filepath.Dir(path)))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range Lint(pkg).Errors {
					t.Error(f)
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 3 {
		t.Errorf("only %d packages were found", found)
	}
}
