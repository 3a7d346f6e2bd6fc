package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostMethods is how many methods a type has at most: one that has more does several things.
const mostMethods = 60

// TestMethods checks that no type has more methods than mostMethods.
func TestMethods(t *testing.T) {
	found, err := countMethods("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkMethods(found) {
		t.Error(problem)
	}
}

// TestCountMethods counts the methods of a tree that has a type beyond the bound.
func TestCountMethods(t *testing.T) {
	dir := t.TempDir()
	methods := func(receiver string, from, to int) string {
		var out strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&out, "func (%s) m%d() {}\n", receiver, i)
		}
		return out.String()
	}
	for name, source := range map[string]string{
		"pkg/a/a.go":                     "package a\ntype wide struct{}\nfunc free() {}\n" + methods("w *wide", 0, 40),
		"pkg/a/b.go":                     "package a\n" + methods("wide", 40, 61),
		"pkg/a/a_test.go":                "package a\n" + methods("w *wide", 100, 120),
		"pkg/a/zz_generated.deepcopy.go": "package a\n" + methods("w *wide", 200, 220),
		"pkg/a/testdata/a.go":            "package a\n" + methods("w *wide", 300, 320),
		"pkg/b/b.go":                     "package b\ntype wide[T any] struct{}\ntype pair[K, V any] struct{}\n" + methods("w *wide[T]", 0, 2) + methods("p pair[K, V]", 0, 3),
		"cmd/m/go.mod":                   "module m\n",
		"cmd/m/m.go":                     "package m\n" + methods("w *wide", 0, 70),
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := countMethods(dir)
	if want := map[string]int{"pkg/a.wide": 61, "pkg/b.wide": 2, "pkg/b.pair": 3}; err != nil || !maps.Equal(found, want) {
		t.Fatalf("found %v, %v, want %v", found, err, want)
	}
	want := []string{"pkg/a.wide has 61 methods, and a type may have 60: split the type"}
	if got := checkMethods(found); !slices.Equal(got, want) {
		t.Errorf("a type beyond the bound: found %q, want %q", got, want)
	}
}

// countMethods returns how many methods each type of a tree has, with value and pointer receivers, by package and name. Tests and
// generated files do not count, nor does what an embedded type brings.
func countMethods(root string) (map[string]int, error) {
	sources, err := readSources(root)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, s := range sources {
		if s.test || strings.HasPrefix(path.Base(s.path), "zz_generated") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, s.path), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				found[s.pkg+"."+strings.TrimSuffix(receiverOf(f), ".")]++
			}
		}
	}
	return found, nil
}

// checkMethods returns the types that have too many methods.
func checkMethods(found map[string]int) []string {
	var problems []string
	for name, n := range found {
		if n > mostMethods {
			problems = append(problems, fmt.Sprintf("%s has %d methods, and a type may have %d: split the type", name, n, mostMethods))
		}
	}
	slices.Sort(problems)
	return problems
}
