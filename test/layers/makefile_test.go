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

var (
	makeVariable = regexp.MustCompile(`(?m)^([A-Z_]+) :?= (.*)$`)
	makeUse      = regexp.MustCompile(`\$\(([A-Z_]+)\)`)
	// testPattern is a pattern of go test, and the rest of its line, which ends with the folders.
	testPattern = regexp.MustCompile(`(?m)go test.* -(?:run|skip) '?([^' ]+)'?(.*)$`)
	testFunc    = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestMakefilePatterns checks that the patterns of tests in the Makefile match some test: go test exits with 0 if none runs.
func TestMakefilePatterns(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	problems, patterns, err := checkPatterns("../..", string(text))
	if err != nil {
		t.Fatal(err)
	}
	if patterns < 3 {
		t.Errorf("the Makefile has %d patterns only", patterns)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestCheckPatterns checks that each part of a pattern must match.
func TestCheckPatterns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("package a\n\nfunc TestOne(t *testing.T) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const makefile = "EACH = One|Two\na:\n\t@go test -run '$(EACH)' .\n\t@A=b go test -v -skip One .\n\tgo test -run '^$$' -bench . .\n\tgo test -run Three . || exit\n"
	got, patterns, err := checkPatterns(dir, makefile)
	want := []string{"the Makefile runs Two in [.], where no test has that name", "the Makefile runs Three in [.], where no test has that name"}
	if err != nil || patterns != 3 || !slices.Equal(got, want) {
		t.Errorf("found %q of %d patterns (%v), want %q of 3", got, patterns, err, want)
	}
}

// checkPatterns returns the alternatives of patterns that match no test of their folders, and how many patterns there are. A pattern that is
// to match nothing, for benchmarks, does not count.
func checkPatterns(root, makefile string) (problems []string, patterns int, err error) {
	variables := map[string]string{}
	for _, v := range makeVariable.FindAllStringSubmatch(makefile, -1) {
		variables[v[1]] = v[2]
	}
	makefile = makeUse.ReplaceAllStringFunc(makefile, func(use string) string { return variables[makeUse.FindStringSubmatch(use)[1]] })
	for _, p := range testPattern.FindAllStringSubmatch(makefile, -1) {
		if p[1] == "^$$" {
			continue
		}
		patterns++
		var folders, tests []string
		for word := range strings.FieldsSeq(p[2]) {
			if word == "." || strings.HasPrefix(word, "./") {
				folders = append(folders, word)
			}
		}
		for _, folder := range folders {
			found, err := testsOf(filepath.Join(root, folder))
			if err != nil {
				return nil, 0, err
			}
			tests = append(tests, found...)
		}
		for alternative := range strings.SplitSeq(p[1], "|") {
			name, err := regexp.Compile(alternative)
			if err != nil {
				return nil, 0, err
			}
			if !slices.ContainsFunc(tests, name.MatchString) {
				problems = append(problems, fmt.Sprintf("the Makefile runs %s in %v, where no test has that name", alternative, folders))
			}
		}
	}
	return problems, patterns, nil
}

// testsOf returns the names of the tests in a folder.
func testsOf(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	return names, nil
}
