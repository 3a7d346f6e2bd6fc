package lint

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/test/corpus"
)

var update = flag.Bool("update", false, "write testdata/warnings.txt")

// warningsFile lists the warnings of each package that is known: its folder, a colon, and a warning. A package without warnings has a line
// that ends with the colon.
const warningsFile = "testdata/warnings.txt"

// TestCorpus: what KUDO's verifier calls valid, is valid, with the warnings that are recorded. Packages that are not recorded may have any.
func TestCorpus(t *testing.T) {
	found := lintFolders(t, "catalog", filepath.Join("..", "catalog"))
	if dir := corpus.Optional(t); dir != "" {
		found = append(found, lintFolders(t, "corpus", dir)...)
	}
	if *update {
		if err := os.WriteFile(warningsFile, []byte(strings.Join(found, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(warningsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	with := func(lines []string, others []string) []string { // those of packages that the others have, too
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			folder, _, _ := strings.Cut(line, ":")
			return !slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(other, folder+":") })
		})
	}
	if diff := cmp.Diff(with(want, found), with(found, want)); diff != "" {
		t.Errorf("the warnings differ from %s (-update writes it): -want +got:\n%s", warningsFile, diff)
	}
}

// lintFolders wants no errors of the packages below root, and returns their warnings as lines of the file.
func lintFolders(t *testing.T, name, root string) (lines []string) {
	for _, folder := range corpus.Folders(t, root, operators.OperatorFileName) {
		t.Run(corpus.Name(folder), func(t *testing.T) {
			pkg, err := operators.Read(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			findings := Lint(pkg)
			for _, f := range findings.Errors {
				t.Error(f)
			}
			relative, err := filepath.Rel(root, folder)
			if err != nil {
				t.Fatal(err)
			}
			line := name + "/" + filepath.ToSlash(relative) + ":"
			if len(findings.Warnings) == 0 {
				lines = append(lines, line)
			}
			for _, f := range findings.Warnings {
				lines = append(lines, line+" "+f.String())
			}
		})
	}
	return lines
}
