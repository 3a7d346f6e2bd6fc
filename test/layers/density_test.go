package layers

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "raise the numbers in testdata/density.txt to those of the tree")

// densityFile lists, for each package below operators, plans and pkg, how many lines of tests it has for each hundred lines of
// code. No number in it may fall by more than densitySlack.
const densityFile = "testdata/density.txt"

// densitySlack allows code that suites on a control plane test to be written without a unit test in the same commit.
const densitySlack = 3

// tested are the folders whose packages have unit tests.
var tested = []string{"operators", "plans", "pkg"}

// TestDensity checks that packages keep their unit tests as they grow.
func TestDensity(t *testing.T) {
	found, err := measureDensities("../..")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(densityFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	recorded, err := parseCounts(densityFile, string(data))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		for pkg, n := range found {
			recorded[pkg] = max(n, recorded[pkg])
		}
	}
	for _, problem := range checkDensities(recorded, found) {
		t.Error(problem)
	}
	if !*update || t.Failed() {
		return
	}
	if err := os.WriteFile(densityFile, []byte(formatCounts(recorded)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCheckDensities checks what counts as a fall, and that the list knows the packages.
func TestCheckDensities(t *testing.T) {
	recorded, err := parseCounts(densityFile, "pkg/a\t100\npkg/b\t80\npkg/c\t60\npkg/gone\t10\n")
	if err != nil {
		t.Fatal(err)
	}
	got := checkDensities(recorded, map[string]int{"pkg/a": 96, "pkg/b": 77, "pkg/c": 90, "pkg/new": 0})
	want := []string{
		"pkg/a has 96 lines of tests for each hundred lines of code, and 100 are recorded in testdata/density.txt: test what was added",
		"there is no package pkg/gone: delete its line in testdata/density.txt",
		"pkg/new has 0 lines of tests for each hundred lines of code, and none are recorded in testdata/density.txt: write tests, " +
			"then go test ./test/layers -run TestDensity -update",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{"pkg/a\n", "pkg/a 100\n", "pkg/a\tx\n", "pkg/a\t1\t2\n"} {
		if _, err := parseCounts(densityFile, bad); err == nil {
			t.Errorf("the line %q is read", bad)
		}
	}
}

// TestMeasureDensities checks which files count as code and which as tests.
func TestMeasureDensities(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]int{
		"pkg/a/a.go": 10, "pkg/a/a_test.go": 5, "pkg/a/zz_generated.deepcopy.go": 100, "pkg/a/testdata/b.go": 100, "pkg/a/c.md": 100,
		"pkg/a/b/b.go": 3, "pkg/only/x_test.go": 7, "cmd/m/main.go": 9, "operators/o.go": 4, "operators/o_test.go": 8,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.Repeat([]byte("x\n"), lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "plans"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := measureDensities(dir)
	want := map[string]int{"pkg/a": 50, "pkg/a/b": 0, "operators": 200}
	if err != nil || !maps.Equal(found, want) {
		t.Errorf("found %v, %v, want %v", found, err, want)
	}
}

// checkDensities returns what has fallen, packages without a line, and lines without a package.
func checkDensities(recorded, found map[string]int) []string {
	var problems []string
	for _, pkg := range slices.Sorted(maps.Keys(recorded)) {
		switch n, exists := found[pkg]; {
		case !exists:
			problems = append(problems, fmt.Sprintf("there is no package %s: delete its line in %s", pkg, densityFile))
		case n < recorded[pkg]-densitySlack:
			problems = append(problems, fmt.Sprintf("%s has %d lines of tests for each hundred lines of code, and %d are recorded in %s: test what was added",
				pkg, n, recorded[pkg], densityFile))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		if _, known := recorded[pkg]; !known {
			problems = append(problems, fmt.Sprintf("%s has %d lines of tests for each hundred lines of code, and none are recorded in %s: write tests, "+
				"then go test ./test/layers -run TestDensity -update", pkg, found[pkg], densityFile))
		}
	}
	return problems
}

// parseCounts reads lines of a name and a number from the text of a file.
func parseCounts(file, text string) (map[string]int, error) {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n := 0
		if _, err := fmt.Sscanf(number+"\n", "%d\n", &n); err != nil {
			return nil, fmt.Errorf("%s: the line %q is not name, number", file, line)
		}
		out[name] = n
	}
	return out, nil
}

// formatCounts writes the lines that parseCounts reads, by name.
func formatCounts(counts map[string]int) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "%s\t%d\n", name, counts[name])
	}
	return out.String()
}

// measureDensities counts the lines of tests for each hundred lines of code, by package, without generated files and testdata.
func measureDensities(root string) (map[string]int, error) {
	code, tests := map[string]int{}, map[string]int{}
	for _, folder := range tested {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "testdata" || isModule(file) {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(file, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
				return nil
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			lines := code
			if strings.HasSuffix(file, "_test.go") {
				lines = tests
			}
			lines[path.Dir(filepath.ToSlash(rel))] += bytes.Count(data, []byte("\n"))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := map[string]int{}
	for pkg, lines := range code {
		out[pkg] = 100 * tests[pkg] / lines
	}
	return out, nil
}
