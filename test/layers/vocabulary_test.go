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

// retired are the words that comments, texts, pages, manifests and scripts must not use.
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
	"teach":          regexp.MustCompile(`(?i)\bteach(es|ing)?\b`),
	"fate":           regexp.MustCompile(`(?i)\bfates?\b`),
	"unrest":         regexp.MustCompile(`(?i)\bunrest\b`),
	"come to rest":   regexp.MustCompile(`(?i)\bcom(e|es|ing) to rest\b`),
	"a run goes on":  regexp.MustCompile(`(?i)\b(runs?|plans?)( that)? go(es)? on\b`),
	"our hands":      regexp.MustCompile(`(?i)\bour hands\b`),
	"is gone":        regexp.MustCompile(`(?i)\b(is|are) gone\b`),
}

// retiredNames are the words that names of code, files and folders must not have: those that no package has in its API.
var retiredNames = []string{
	"cure", "cured", "fate", "fates", "halted", "homeless", "nobody", "somebody", "taught", "teach", "teacher", "teachers", "teaching",
	"unaccounted", "unrest", "wake", "wakes", "woken",
}

// proseFiles are the endings of files all of whose text is read.
var proseFiles = []string{".md", ".yaml", ".yml", ".sh", ".lua", ".tpl", ".tmpl", ".html", "Makefile"}

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

// TestFindRetired checks that words are found in comments, texts, pages, manifests and scripts, and in names.
func TestFindRetired(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a/a.go":            "// a tells whether somebody is there.\npackage a\n\nvar one = \"nobody, once\\nmore\"\n",
		"a/b.md":            "It tells\nwhether.\n",
		"a/c.yaml":          "# A run goes\n# on.\n",
		"a/d.sh":            "# teaching\n",
		"a/Makefile":        "help: ## Come to rest.\n",
		"a/wake_test.go":    "package a\n\nfunc TestFate() { numUnrest, wakeful := 1, 2 }\n",
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
		`a/Makefile uses the retired "come to rest"`,
		`a/a.go uses the retired "nobody"`, `a/a.go uses the retired "somebody"`, `a/a.go uses the retired "tells whether"`,
		`a/b.md uses the retired "tells whether"`, `a/c.yaml uses the retired "a run goes on"`, `a/d.sh uses the retired "teach"`,
		`a/wake_test.go has a name with the retired "wake"`, `a/wake_test.go names TestFate with the retired "fate"`,
		`a/wake_test.go names numUnrest with the retired "unrest"`,
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
			found = append(found, retiredInPath(rel, name)...)
			if rel != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		found = append(found, retiredInPath(rel, name)...)
		goFile := strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated")
		prose := slices.ContainsFunc(proseFiles, func(end string) bool { return strings.HasSuffix(name, end) })
		// The page and the test of the vocabulary name the words that they retire.
		if !goFile && !prose || name == "vocabulary.md" || rel == "test/layers/vocabulary_test.go" {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := commentMark.ReplaceAllString(string(data), " ")
		if goFile {
			var names []string
			text, names = proseOf(data)
			for _, n := range names {
				for _, word := range retiredIn(n) {
					found = append(found, fmt.Sprintf("%s names %s with the retired %q", rel, n, word))
				}
			}
		}
		text = strings.Join(strings.Fields(text), " ")
		for _, word := range slices.Sorted(maps.Keys(retired)) {
			if retired[word].MatchString(text) {
				found = append(found, fmt.Sprintf("%s uses the retired %q", rel, word))
			}
		}
		return nil
	})
	return found, err
}

// commentMark begins a line of a comment in a manifest or a script.
var commentMark = regexp.MustCompile(`(?m)^\s*(#+|--)`)

// retiredInPath says which retired words the name of a file or folder has.
func retiredInPath(path, name string) (found []string) {
	for _, word := range retiredIn(name) {
		found = append(found, fmt.Sprintf("%s has a name with the retired %q", path, word))
	}
	return found
}

// wordOfName is a word of a name such as camelCase or snake_case.
var wordOfName = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]`)

// retiredIn returns the retired words in a name.
func retiredIn(name string) (found []string) {
	for _, word := range wordOfName.FindAllString(name, -1) {
		if word = strings.ToLower(word); slices.Contains(retiredNames, word) {
			found = append(found, word)
		}
	}
	return found
}

// proseOf returns the comments and texts of a Go file, and the names in its code.
func proseOf(source []byte) (prose string, names []string) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, scanner.ScanComments)
	var out strings.Builder
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			slices.Sort(names)
			return out.String(), slices.Compact(names)
		case token.IDENT:
			names = append(names, text)
		case token.COMMENT:
			out.WriteString(strings.TrimPrefix(text, "//") + " ")
		case token.STRING:
			out.WriteString(text + "\n")
		}
	}
}
