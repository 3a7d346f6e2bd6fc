package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// walkRow is a row of "The way of a parameter": a layer, a package, and a function or a method.
var walkRow = regexp.MustCompile("(?m)^\\| (\\d) \\| `([a-z/0-9]+)` \\| `([A-Za-z.]+)` \\|")

// TestWalk checks that the functions exist that docs/design/architecture.md goes through, on the level that it names.
func TestWalk(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := walkRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("the page goes through %d functions only", len(rows))
	}
	for _, row := range rows {
		level, pkg, name := row[1], row[2], row[3]
		if got, _ := tree.level(pkg); level != string(rune('0'+got)) {
			t.Errorf("%s is of level %d, not %s", pkg, got, level)
		}
		declared, err := namesOf(filepath.Join("..", "..", pkg))
		if err != nil {
			t.Fatal(err)
		}
		if !declared[name] {
			t.Errorf("%s declares no %s", pkg, name)
		}
	}
}
