package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ginkgoPath = "github.com/onsi/ginkgo/v2"

// TestCorpusSkips checks that each test that reads the corpus may be skipped by test/skips.txt: "make test" passes without the corpus.
func TestCorpusSkips(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "skips.txt"))
	if err != nil {
		t.Fatal(err)
	}
	uses, err := corpusUses(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(uses) == 0 {
		t.Fatal("no test reads the corpus")
	}
	for _, use := range uses {
		if !slices.ContainsFunc(strings.Split(string(data), "\n"), func(line string) bool { return strings.HasPrefix(line, use) }) {
			t.Errorf("test/skips.txt has no line that begins with %q: the test skips where the corpus is absent", use)
		}
	}
}

// corpusUses returns the beginning of the line of test/skips.txt for each test that reads the corpus: its package and its name, and the
// package alone for a Ginkgo suite and for a function that several tests call.
func corpusUses(root string) ([]string, error) {
	sources, err := readSources(root)
	if err != nil {
		return nil, err
	}
	var uses []string
	for _, s := range sources {
		if !s.test || !slices.Contains(s.imports, module+"/test/corpus") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, s.path), nil, 0)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				selector, is := n.(*ast.SelectorExpr)
				if !is || fmt.Sprint(selector.X) != "corpus" {
					return true
				}
				suffix, reads := map[string]string{"Require": "", "Optional": "/corpus"}[selector.Sel.Name]
				if !reads {
					return true
				}
				use := module + "/" + s.pkg + " "
				if f, is := decl.(*ast.FuncDecl); is && strings.HasPrefix(f.Name.Name, "Test") && !slices.Contains(s.imports, ginkgoPath) {
					use += f.Name.Name + suffix + " "
				}
				uses = append(uses, use)
				return true
			})
		}
	}
	return uses, nil
}
