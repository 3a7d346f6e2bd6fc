package layers

import (
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
	_, tree, _ := strings.Cut(string(page), "## The tree")
	tree, _, _ = strings.Cut(tree, "\n## ")
	var paths []string
	for _, row := range treeRow.FindAllStringSubmatch(tree, -1) {
		paths = append(paths, row[1])
	}
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
