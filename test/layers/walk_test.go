package layers

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walkRow is a row of "The way of a parameter": a layer, a package, a function or a method, a text, and the pure functions that decide.
var walkRow = regexp.MustCompile("(?m)^\\| (\\d) \\| `([a-z/0-9]+)` \\| `([A-Za-z.]+)` \\|[^|]*\\|([^|]*)\\|$")

// decider is a pure function of the last column.
var decider = regexp.MustCompile("`([a-z/]+)\\.([A-Za-z.]+)`")

// TestWalk checks that the functions exist that docs/design/architecture.md goes through, on the layer that the page names, and that the
// walk enters each layer once on the way down and once on the way up.
func TestWalk(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := walkRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("the page goes through %d functions only", len(rows))
	}
	var layers []string
	for _, row := range rows {
		checkDeclared(t, row[2], row[3], row[1])
		if len(layers) == 0 || layers[len(layers)-1] != row[1] {
			layers = append(layers, row[1])
		}
		for _, d := range decider.FindAllStringSubmatch(row[4], -1) {
			checkDeclared(t, d[1], d[2], "1")
		}
	}
	if got := strings.Join(layers, " "); got != "4 3 2 3 4" {
		t.Errorf("the walk enters the layers %s: each once on the way down, and once on the way up", got)
	}
}

// checkDeclared wants a package of a layer to declare a name.
func checkDeclared(t *testing.T, pkg, name, layer string) {
	t.Helper()
	if got, _ := tree.level(pkg); layer != string(rune('0'+got)) {
		t.Errorf("%s is of layer %d, not %s", pkg, got, layer)
	}
	declared, err := namesOf(filepath.Join("..", "..", pkg))
	if err != nil {
		t.Fatal(err)
	}
	if !declared[name] {
		t.Errorf("%s declares no %s", pkg, name)
	}
}

// exerciseAnswer is a row of "Where a change belongs", and treeRow one of "The tree".
var (
	exerciseAnswer = regexp.MustCompile("(?m)^\\| [^|`]*(?:`[^`]*`[^|`]*)*\\| (`[a-z/]+`.*) \\|$")
	treeRow        = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|")
	packagePath    = regexp.MustCompile("`([a-z0-9/]+)`")
)

// TestExercise checks that the exercise has ten changes, and that each package of an answer stands in the tree of the page.
func TestExercise(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, exercise, _ := strings.Cut(string(page), "## Where a change belongs")
	exercise, _, _ = strings.Cut(exercise, "\n## ")
	paths := treePaths(string(page))
	answers := exerciseAnswer.FindAllStringSubmatch(exercise, -1)
	if len(answers) != 10 {
		t.Errorf("the exercise has %d changes, not 10", len(answers))
	}
	for _, answer := range answers {
		for _, path := range packagePath.FindAllStringSubmatch(answer[1], -1) {
			if !slices.Contains(paths, path[1]) {
				t.Errorf("the tree has no row for %s, which the exercise asks for", path[1])
			}
		}
	}
}

// treePaths returns the paths that have a row of their own in "The tree".
func treePaths(page string) (paths []string) {
	_, rows, _ := strings.Cut(page, "## The tree")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for _, row := range treeRow.FindAllStringSubmatch(rows, -1) {
		paths = append(paths, row[1])
	}
	return paths
}

// rowsOfSeveral are the rows of the tree that describe what is below their path.
var rowsOfSeveral = []string{"cmd", "test", "pkg/explore", "pkg/controllers", "pkg/crdtarball"}

// TestTreeOfPage checks that "The tree" describes each package, and names none that does not exist.
func TestTreeOfPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkTreeOfPage(treePaths(string(page)), sources) {
		t.Error(problem)
	}
}

// TestCheckTreeOfPage checks that a package without a row is found, and a row without a package.
func TestCheckTreeOfPage(t *testing.T) {
	sources := []source{file("pkg/a/a.go"), file("pkg/a/inner/a.go"), file("test/b/b_test.go"), file("hack/c/c.go")}
	got := checkTreeOfPage([]string{"pkg/a", "pkg/z", "test"}, sources)
	want := []string{"the tree has a row for pkg/z, where no package is", "the tree has no row for the package pkg/a/inner"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// checkTreeOfPage compares the rows of the tree with the packages. Tools of development in hack have no rows.
func checkTreeOfPage(rows []string, sources []source) (problems []string) {
	for _, row := range rows {
		if !slices.ContainsFunc(sources, func(s source) bool { return below(s.pkg, row) }) && row != "operators/catalog" {
			problems = append(problems, fmt.Sprintf("the tree has a row for %s, where no package is", row))
		}
	}
	for _, s := range sources {
		if !slices.Contains(rows, s.pkg) && !belowAny(s.pkg, rowsOfSeveral) && !below(s.pkg, "hack") {
			problems = append(problems, fmt.Sprintf("the tree has no row for the package %s", s.pkg))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}
