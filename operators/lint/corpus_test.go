package lint

import (
	"os"
	"path/filepath"
	"testing"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/test/corpus"
)

// TestCorpus: what KUDO's verifier calls valid, is valid.
func TestCorpus(t *testing.T) {
	folders := corpus.Folders(t, filepath.Join("..", "catalog"), operators.OperatorFileName)
	if dir := corpus.Optional(t); dir != "" {
		folders = append(folders, corpus.Folders(t, dir, operators.OperatorFileName)...)
	}
	for _, folder := range folders {
		t.Run(filepath.ToSlash(folder), func(t *testing.T) {
			pkg, err := operators.Read(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range Lint(pkg).Errors {
				t.Error(f)
			}
		})
	}
}
