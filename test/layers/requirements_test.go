package layers

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	requirementRow = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \| [^|]+ \|$`)
	code           = regexp.MustCompile(`\b[CDGKPRSTU][1-9][0-9]?\b`)
	codeRange      = regexp.MustCompile(`\b([CDGKPRSTU])([1-9][0-9]?) to ([CDGKPRSTU])([1-9][0-9]?)\b`)
	// codesOfName are the codes in front of a name, with what follows them, and what stands in parentheses.
	codesOfName = regexp.MustCompile("^[\"`][A-Z]\\d+((, | and | to )[A-Z]\\d+)*[\"`:]|\\([^()]*\\)")
)

// TestRequirements checks that the page has one row for each code that a test names, and none for a code that nothing names.
func TestRequirements(t *testing.T) {
	const page = "docs/design/requirements.md"
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	rows, used := map[string]int{}, map[string]bool{}
	for _, row := range requirementRow.FindAllStringSubmatch(string(text), -1) {
		rows[row[1]]++
	}
	err = filepath.WalkDir("../..", func(file string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, goFile := d.Name(), strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "requirements_test.go")
		switch {
		case d.IsDir() && file != "../.." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "testdata"}, name)):
			return filepath.SkipDir
		case d.IsDir(), name == "requirements.md", !goFile && !slices.ContainsFunc(proseFiles, func(end string) bool { return strings.HasSuffix(name, end) }):
			return nil
		}
		data, err := os.ReadFile(file)
		named, others := code.FindAllString(string(data), -1), []string(nil)
		if goFile {
			named, others = codesOf(data)
		}
		for i, c := range slices.Concat(named, others) {
			used[c] = true
			isNew := i < len(named) && !slices.Contains(named[:i], c) && c != "C1" // C1 is a set of control characters
			if isNew && rows[c] == 0 && strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s names %s, which has no row in %s: add one that says what must hold", file, c, page)
			}
		}
		return err
	})
	if err != nil || len(rows) < 150 {
		t.Errorf("%s has %d rows only: %v", page, len(rows), err)
	}
	for c, n := range rows {
		if n > 1 || !used[c] {
			t.Errorf("%s has a row for %s that is a duplicate, or whose code no test and no other page names: delete the row", page, c)
		}
	}
}

// TestCodesOf checks in which forms comments and names have codes.
func TestCodesOf(t *testing.T) {
	const source = "// TestA (U4 to U6) is P27, not P256.\npackage a\n\nvar _ = []string{\"R23: one\", `U3, U12: two`, \"S3 bucket\", \"a (C64, C66)\", \"a T1\"}\n"
	named, others := codesOf([]byte(source))
	want, rest := []string{"U4", "U6", "P27", "U4", "U5", "U6", "R23", "U3", "U12", "C64", "C66"}, []string{"S3", "T1"}
	if !slices.Equal(named, want) || !slices.Equal(slices.DeleteFunc(others, func(c string) bool { return slices.Contains(want, c) }), rest) {
		t.Errorf("found %q and %q, want %q and %q", named, others, want, rest)
	}
}

// codesOf returns the codes that comments and names of a Go file have in the forms of codes, and all words of its texts like codes.
func codesOf(source []byte) (named, others []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, scanner.ScanComments)
	for _, tok, text := s.Scan(); tok != token.EOF; _, tok, text = s.Scan() {
		if tok == token.STRING {
			others = append(others, code.FindAllString(text, -1)...)
			text = strings.Join(codesOfName.FindAllString(text, -1), " ")
		} else if tok != token.COMMENT {
			continue
		}
		named = append(named, code.FindAllString(text, -1)...)
		for _, r := range codeRange.FindAllStringSubmatch(text, -1) {
			first, _ := strconv.Atoi(r[2])
			for last, _ := strconv.Atoi(r[4]); first <= last && r[1] == r[3]; first++ {
				named = append(named, r[1]+strconv.Itoa(first))
			}
		}
	}
	return named, others
}
