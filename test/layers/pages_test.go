package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileSuffix is that of a file, whose name looks like a symbol.
var fileSuffix = regexp.MustCompile(`^(go|json|md|txt|yaml)$`)

// symbol is a name of code in a page: `Type.Member` or `package.Name`.
var symbol = regexp.MustCompile("`([A-Za-z]\\w+)\\.([A-Za-z]\\w+)`")

// TestPagesNameSymbols checks that the code that the pages of docs/design name exists.
func TestPagesNameSymbols(t *testing.T) {
	const root = "../.."
	members, packages := map[string]bool{}, map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(dir string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && strings.HasPrefix(name, ".") || name == "dist" || name == "testdata" {
			return filepath.SkipDir
		}
		declared, err := namesOf(dir)
		pkg := filepath.Base(dir)
		if len(declared) > 0 && packages[pkg] == nil {
			packages[pkg] = map[string]bool{}
		}
		for name := range declared {
			members[name] = true
			packages[pkg][name[strings.LastIndexByte(name, '.')+1:]] = true // a page may leave the receiver out
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "design", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range symbol.FindAllStringSubmatch(string(text), -1) {
			of, name := found[1], found[2]
			isType := of[0] >= 'A' && of[0] <= 'Z'
			isPackage := packages[of] != nil
			if fileSuffix.MatchString(name) {
				continue
			}
			if isType && !members[of+"."+name] || isPackage && !packages[of][name] {
				t.Errorf("%s names %s, which no package declares", filepath.Base(page), found[0])
			}
		}
	}
}
