package layers

import (
	"flag"
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

var update = flag.Bool("update", false, "lower the counts in testdata/vocabulary.txt, and raise those in testdata/density.txt, to those of the tree")

// retired are words that comments, texts and pages do not use, with the reason or the word to use.
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
	"is gone":        regexp.MustCompile(`(?i)\b(is|are) gone\b`),
}

// retiredWordsFile lists how often each folder still uses each retired word. No number in it may grow.
const retiredWordsFile = "testdata/vocabulary.txt"

// TestVocabulary checks that retired words become fewer.
func TestVocabulary(t *testing.T) {
	found, err := countRetired("../..")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	data, err := os.ReadFile(retiredWordsFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		n := 0
		if _, err := fmt.Sscan(fields[len(fields)-1], &n); err != nil || len(fields) != 3 {
			t.Fatalf("%s: the line %q is not folder, word, number", retiredWordsFile, line)
		}
		recorded[fields[0]+"\t"+fields[1]] = n
	}
	stale := false
	for _, key := range slices.Sorted(maps.Keys(found)) {
		folder, word, _ := strings.Cut(key, "\t")
		switch n := recorded[key]; {
		case found[key] > n:
			t.Errorf("%s uses the retired %q %d times, and %d are recorded: docs/design/vocabulary.md has the word to use", folder, word, found[key], n)
		case found[key] < n:
			stale = true
		}
	}
	for key := range recorded {
		stale = stale || found[key] == 0
	}
	switch {
	case *update && !t.Failed():
		var out strings.Builder
		for _, key := range slices.Sorted(maps.Keys(found)) {
			fmt.Fprintf(&out, "%s\t%d\n", key, found[key])
		}
		if err := os.WriteFile(retiredWordsFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	case stale:
		t.Errorf("retired words became fewer: record it with go test ./test/layers -run TestVocabulary -update")
	}
}

// TestCountRetired checks that words are found in comments, texts and pages, and not in code.
func TestCountRetired(t *testing.T) {
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
	found, err := countRetired(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a\ttells whether": 2, "a\tsomebody": 1, "a\tnobody": 1}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// countRetired counts retired words by "folder<tab>word".
func countRetired(root string) (map[string]int, error) {
	found := map[string]int{}
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
		for word, pattern := range retired {
			if n := len(pattern.FindAllString(prose, -1)); n > 0 {
				found[filepath.ToSlash(filepath.Dir(rel))+"\t"+word] += n
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
