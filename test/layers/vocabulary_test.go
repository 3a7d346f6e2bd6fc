package layers

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are the words that comments, texts and pages must not use.
var retired = map[string]*regexp.Regexp{
	"tells whether":  regexp.MustCompile(`(?i)\btells? whether\b`),
	"somebody":       regexp.MustCompile(`(?i)\bsomebody`),
	"nobody":         regexp.MustCompile(`(?i)\bnobody`),
	"once more":      regexp.MustCompile(`(?i)\bonce more\b`),
	"yet to":         regexp.MustCompile(`(?i)\byet to\b`),
	"sees to it":     regexp.MustCompile(`(?i)\bsees? to it\b`),
	"at rest":        regexp.MustCompile(`(?i)\bat rest\b`),
	"let go":         regexp.MustCompile(`(?i)\b(lets?|letting)( it| them| him| her)? go\b`),
	"cannot be told": regexp.MustCompile(`(?i)\bcannot (tell|be told)\b`),
	"wake":           regexp.MustCompile(`(?i)\b(wakes?|woken)\b`),
	"teacher":        regexp.MustCompile(`(?i)\b(teachers?|taught)\b`),
	"for good":       regexp.MustCompile(`(?i)\bfor good\b`),
	"look again":     regexp.MustCompile(`(?i)\blook(s|ed|ing)?( at)?( it| them)? again\b`),
	"cure":           regexp.MustCompile(`(?i)\bcur(es?|ed|ing)\b`),
	"teach":          regexp.MustCompile(`(?i)\bteach(es)?\b`),
	"our hands":      regexp.MustCompile(`(?i)\bour hands\b`),
	"is gone":        regexp.MustCompile(`(?i)\b(is|are) gone\b`),
}

// TestVocabulary checks that the tree uses no retired word.
func TestVocabulary(t *testing.T) {
	found, err := findRetired("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range found {
		t.Errorf("%s: docs/design/vocabulary.md has the word to use", use)
	}
}

// TestFindRetired checks that words are found in comments, texts and pages, and not in code.
func TestFindRetired(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a/a.go":            "// a tells whether somebody is there.\npackage a\n\nvar nobody = \"nobody, once\\nmore\"\n",
		"a/b.md":            "It tells\nwhether.\n",
		"a/testdata/a.go":   "// somebody\npackage a\n",
		"b/zz_generated.go": "// nobody\npackage b\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := findRetired(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a/a.go uses the retired "nobody"`, `a/a.go uses the retired "somebody"`, `a/a.go uses the retired "tells whether"`,
		`a/b.md uses the retired "tells whether"`,
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// findRetired says which files use which retired words.
func findRetired(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		name := d.Name()
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		goFile := strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated")
		// The page and the test of the vocabulary name the words that they retire.
		if !goFile && !strings.HasSuffix(name, ".md") || name == "vocabulary.md" || rel == "test/layers/vocabulary_test.go" {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		prose := string(data)
		if goFile {
			prose = proseOf(data)
		}
		prose = strings.Join(strings.Fields(prose), " ")
		for _, word := range slices.Sorted(maps.Keys(retired)) {
			if retired[word].MatchString(prose) {
				found = append(found, fmt.Sprintf("%s uses the retired %q", rel, word))
			}
		}
		return nil
	})
	return found, err
}

// proseOf returns the comments and texts of a Go file.
func proseOf(source []byte) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, scanner.ScanComments)
	var out strings.Builder
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			return out.String()
		case token.COMMENT:
			out.WriteString(strings.TrimPrefix(text, "//") + " ")
		case token.STRING:
			out.WriteString(text + "\n")
		}
	}
}
