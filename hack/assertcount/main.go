// Command assertcount compares the tests of folders with those of a revision: how many assertions their sources hold, and how many
// leaf tests test/counts.txt records for them. It fails where there are fewer.
//
//	assertcount REVISION FOLDER...
//
// An assertion is a call that can fail a test: of an Error or Fatal method, of gomega, or of a function that is given the test.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module     = "kudo.dev/kudo/"
	countsFile = "test/counts.txt"
)

// wrappers are functions that check their arguments. Calls of them count. Assertions in their bodies do not, since a function of package
// env may replace the copy of a suite.
var wrappers = []string{"must", "contains", "eventually", "await", "kudo"}

// namers are functions that return a name or a path. They have the test as an argument although they do not fail it.
var namers = []string{"newFleet", "unique", "testdata"}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: assertcount REVISION FOLDER...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "assertcount:", err)
		os.Exit(1)
	}
}

func run(revision string, folders []string, out io.Writer) error {
	before, err := git("show", revision+":"+countsFile)
	if err != nil {
		return err
	}
	after, err := os.ReadFile(countsFile)
	if err != nil {
		return err
	}
	var problems []error
	for _, folder := range folders {
		old, err := sourcesAt(revision, folder)
		if err != nil {
			return err
		}
		current, err := sources(folder)
		if err != nil {
			return err
		}
		is, err := countAll(current)
		if err != nil {
			return err
		}
		was, err := countAll(old)
		if err != nil {
			return err
		}
		testsWere, testsAre := recorded(before, folder), recorded(string(after), folder)
		fmt.Fprintf(out, "%s: assertions %d → %d, leaf tests %d → %d\n", folder, was, is, testsWere, testsAre)
		if is < was || testsAre < testsWere {
			problems = append(problems, fmt.Errorf("%s has fewer assertions or tests than at %s", folder, revision))
		}
	}
	return errors.Join(problems...)
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// sourcesAt returns the texts of the test files of a folder at a revision.
func sourcesAt(revision, folder string) ([]string, error) {
	names, err := git("ls-tree", "--name-only", revision, path.Clean(folder)+"/")
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range strings.Fields(names) {
		if strings.HasSuffix(name, "_test.go") {
			text, err := git("show", revision+":"+name)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// sources returns the texts of the test files of a folder.
func sources(folder string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

func countAll(texts []string) (int, error) {
	n := 0
	for _, text := range texts {
		found, err := count(text)
		if err != nil {
			return 0, err
		}
		n += found
	}
	return n, nil
}

// count returns how many assertions a source holds.
func count(text string) (int, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			return node.Recv != nil || !slices.Contains(wrappers, node.Name.Name)
		case *ast.CallExpr:
			if isAssertion(node) {
				n++
			}
		}
		return true
	})
	return n, nil
}

func isAssertion(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if slices.Contains([]string{"Expect", "Eventually", "Consistently", "Fail"}, f.Name) {
			return true
		}
		if slices.Contains(namers, f.Name) {
			return false
		}
	case *ast.SelectorExpr:
		if isTest(f.X) && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}, f.Sel.Name) {
			return true
		}
	}
	return slices.ContainsFunc(call.Args, isTest)
}

// isTest reports whether an expression is a test: t, a field t, or Ginkgo's.
func isTest(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "t"
	case *ast.SelectorExpr:
		return e.Sel.Name == "t"
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		return ok && f.Name == "GinkgoTB"
	}
	return false
}

// recorded returns how many leaf tests a file of counts has for a folder.
func recorded(counts, folder string) int {
	for line := range strings.Lines(counts) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == module+path.Clean(folder) {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	return 0
}
