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

const (
	// mostMethods is how many methods a type has at most: one that has more does several things.
	mostMethods = 60
	// methodsFile lists the types that have more, each with their number. No line is added, and no number is raised.
	methodsFile = "testdata/methods.txt"
)

// TestMethods checks that no type has more methods than mostMethods, and that those of methodsFile have no more than before.
func TestMethods(t *testing.T) {
	found, err := countMethods("../..")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(methodsFile)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := parseCounts(methodsFile, string(data))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		lowerMethods(recorded, found)
	}
	for _, problem := range checkMethods(recorded, found) {
		t.Error(problem)
	}
	if !*update || t.Failed() {
		return
	}
	if err := os.WriteFile(methodsFile, []byte(formatCounts(recorded)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCheckMethods checks what counts as too many, and that the list may only shrink.
func TestCheckMethods(t *testing.T) {
	found := map[string]int{
		"pkg/a.small": 1, "pkg/a.most": 60, "pkg/a.more": 61, "pkg/a.same": 90, "pkg/a.grown": 91, "pkg/a.shrunk": 89, "pkg/a.split": 60,
	}
	recorded := map[string]int{"pkg/a.same": 90, "pkg/a.grown": 90, "pkg/a.shrunk": 90, "pkg/a.split": 90, "pkg/a.deleted": 70}
	want := []string{
		"pkg/a.deleted has 0 methods, and a type may have 60: delete its line in testdata/methods.txt",
		"pkg/a.grown has 91 methods, and 90 are recorded in testdata/methods.txt: split the type",
		"pkg/a.more has 61 methods, and a type may have 60: split the type",
		"pkg/a.shrunk has 89 methods, and 90 are recorded in testdata/methods.txt: go test ./test/layers -run TestMethods -update",
		"pkg/a.split has 60 methods, and a type may have 60: delete its line in testdata/methods.txt",
	}
	if got := checkMethods(recorded, found); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	lowerMethods(recorded, found)
	if want := map[string]int{"pkg/a.same": 90, "pkg/a.grown": 90, "pkg/a.shrunk": 89}; !maps.Equal(recorded, want) {
		t.Errorf("an update records %v, want %v: it lowers numbers, and neither raises nor adds any", recorded, want)
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
	if got := checkMethods(nil, found); !slices.Equal(got, want) {
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

// checkMethods returns the types that have too many methods, and the lines of methodsFile that are not true.
func checkMethods(recorded, found map[string]int) []string {
	var problems []string
	for name, n := range found {
		if _, known := recorded[name]; n > mostMethods && !known {
			problems = append(problems, fmt.Sprintf("%s has %d methods, and a type may have %d: split the type", name, n, mostMethods))
		}
	}
	for name, most := range recorded {
		switch n := found[name]; {
		case n <= mostMethods:
			problems = append(problems, fmt.Sprintf("%s has %d methods, and a type may have %d: delete its line in %s", name, n, mostMethods, methodsFile))
		case n > most:
			problems = append(problems, fmt.Sprintf("%s has %d methods, and %d are recorded in %s: split the type", name, n, most, methodsFile))
		case n < most:
			problems = append(problems, fmt.Sprintf("%s has %d methods, and %d are recorded in %s: go test ./test/layers -run TestMethods -update",
				name, n, most, methodsFile))
		}
	}
	slices.Sort(problems)
	return problems
}

// lowerMethods makes the record that of a tree, as far as it gets shorter by that.
func lowerMethods(recorded, found map[string]int) {
	for name, most := range recorded {
		recorded[name] = min(most, found[name])
		if recorded[name] <= mostMethods {
			delete(recorded, name)
		}
	}
}
