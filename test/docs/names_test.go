package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var (
	testName = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)`(?: \\(`([a-z/]+)`)?")
	// A page names the label of specs: `label x` (`folder`).
	labelName    = regexp.MustCompile("`label ([a-z0-9-]+)`(?: \\(`([a-z/]+)`)?")
	labels       = regexp.MustCompile(`\bLabel\(([^)]*)\)`)
	quoted       = regexp.MustCompile(`"([^"]+)"`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	fenced       = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```$")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	span         = regexp.MustCompile("`([^`]+)`")
	flagName     = regexp.MustCompile(`(^|[\s\[(])--([a-z][a-z-]+)`)
)

// all are the pages of docs/ and below, README.md, and the pages for contributors.
func all(t *testing.T) []string {
	t.Helper()
	below, err := filepath.Glob(filepath.Join(sourcetree.Root(), "docs", "*", "*.md"))
	env.Must(t, err)
	out := append(files(t), below...)
	for _, page := range []string{"SECURITY.md", "CONTRIBUTING.md", "KNOWN-ISSUES.md"} {
		out = append(out, filepath.Join(sourcetree.Root(), page))
	}
	return out
}

// TestPagesAreListed: each page is in the list of pages of the README.
func TestPagesAreListed(t *testing.T) {
	t.Parallel()
	readme := read(t, filepath.Join(sourcetree.Root(), "README.md"))
	for _, path := range all(t) {
		rel, err := filepath.Rel(sourcetree.Root(), path)
		env.Must(t, err)
		if rel = filepath.ToSlash(rel); rel != "README.md" && !strings.Contains(readme, "]("+rel+")") {
			t.Errorf("README.md has no link to %s", rel)
		}
	}
}

// tests are the folders that have a test function, by its name, and those that have a spec, by its labels.
func tests(t *testing.T) (functions, labeled map[string][]string) {
	t.Helper()
	functions, labeled = map[string][]string{}, map[string][]string{}
	env.Must(t, filepath.WalkDir(sourcetree.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		folder, _ := filepath.Rel(sourcetree.Root(), filepath.Dir(path))
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			functions[m[1]] = append(functions[m[1]], filepath.ToSlash(folder))
		}
		for _, list := range labels.FindAllStringSubmatch(string(text), -1) {
			for _, m := range quoted.FindAllStringSubmatch(list[1], -1) {
				labeled[m[1]] = append(labeled[m[1]], filepath.ToSlash(folder))
			}
		}
		return err
	}))
	return functions, labeled
}

// Each test and each label of specs that a page names is there, in the folder that the page names behind it.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	functions, labeled := tests(t)
	for _, path := range all(t) {
		text, page := read(t, path), filepath.Base(path)
		wantNamed(t, page, labelName.FindAllStringSubmatch(text, -1), labeled)
		if name(path) != "testing" { // its TestSteps and TestAsserts are kinds of files
			wantNamed(t, page, testName.FindAllStringSubmatch(text, -1), functions)
		}
	}
}

// wantNamed wants each name in one of its folders, or in the one that is named behind it.
func wantNamed(t *testing.T, page string, named [][]string, folders map[string][]string) {
	t.Helper()
	for _, m := range named {
		if found := folders[m[1]]; len(found) == 0 || m[2] != "" && !slices.Contains(found, m[2]) {
			t.Errorf("%s names %s, which is in %q", page, m[0], found)
		}
	}
}

// anchor is what a heading is linked by, as GitHub makes it.
func anchor(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, "`", ""))
	text = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, " ", "-")
}

// Links to files and headings of this repository lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, path := range all(t) {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(fenced.ReplaceAllString(read(t, path), ""), ""), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", filepath.Base(path), m[1])
				continue
			}
			if fragment == "" {
				continue
			}
			there := false
			for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, to), ""), -1) {
				there = there || anchor(h[1]) == fragment
			}
			if !there {
				t.Errorf("%s: the link %s leads to no heading", filepath.Base(path), m[1])
			}
		}
	}
}

// TestTables: each row of a table has as many cells as its head, or the page shows another table than its text.
func TestTables(t *testing.T) {
	t.Parallel()
	bar := regexp.MustCompile(`(^|[^\\])\|`)
	for _, path := range all(t) {
		cells := 0
		for _, line := range strings.Split(fenced.ReplaceAllString(read(t, path), ""), "\n") {
			found := len(bar.FindAllString(line, -1))
			switch {
			case !strings.HasPrefix(line, "|"):
				cells = 0
			case cells == 0:
				cells = found
			case found != cells || !strings.HasSuffix(line, "|"):
				t.Errorf("%s: this row has %d cells, and the head of its table %d:\n%s", filepath.Base(path), found-1, cells-1, line)
			}
		}
	}
}

// TestConflicts wants no page with both sides of a merge.
func TestConflicts(t *testing.T) {
	t.Parallel()
	marker := regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>)( |$)`)
	for _, path := range all(t) {
		if m := marker.FindString(read(t, path)); m != "" {
			t.Errorf("%s: a line begins with %q", filepath.Base(path), m)
		}
	}
}

// helps are the help texts of commands.
type helps struct {
	sync.Mutex
	texts map[string]string
}

// of returns the help of the longest command that words begin with.
func (h *helps) of(program string, words []string) string {
	h.Lock()
	defer h.Unlock()
	var path []string
	for _, word := range words {
		if !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) || len(path) == 3 {
			break
		}
		path = append(path, word)
	}
	key := program + " " + strings.Join(path, " ")
	if _, known := h.texts[key]; !known {
		out, _ := exec.Command(filepath.Join(suite.Bin, program), append(path, "--help")...).CombinedOutput()
		if program == "kubectl-kudo" {
			common, _ := exec.Command(filepath.Join(suite.Bin, program), "options").CombinedOutput()
			out = append(out, common...)
		}
		h.texts[key] = string(out)
	}
	return h.texts[key]
}

// Flags that pages name with a command, in the text or in blocks that are not run, are flags of it.
func TestFlags(t *testing.T) {
	t.Parallel()
	help := &helps{texts: map[string]string{}}
	for _, path := range files(t) {
		text := read(t, path)
		var commands []string
		for _, m := range span.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			commands = append(commands, m[1])
		}
		parts, err := parse(text)
		env.Must(t, err)
		for _, p := range parts {
			if p.kind == skipped {
				commands = append(commands, strings.Split(p.text, "\n")...)
			}
		}
		for _, command := range commands {
			program, rest := "kubectl-kudo", ""
			switch at := strings.TrimPrefix(command, "$ "); {
			case strings.HasPrefix(at, "kubectl kudo "):
				rest = strings.TrimPrefix(at, "kubectl kudo ")
			case strings.HasPrefix(at, "kudo-local "):
				program, rest = "kudo-local", strings.TrimPrefix(at, "kudo-local ")
			default:
				continue
			}
			rest, _, _ = strings.Cut(strings.ReplaceAll(rest, `\|`, "|"), " | ")
			for _, flag := range flagName.FindAllStringSubmatch(rest, -1) {
				if text := help.of(program, strings.Fields(rest)); !strings.Contains(text, "--"+flag[2]) {
					t.Errorf("%s: %q: there is no flag --%s", filepath.Base(path), command, flag[2])
				}
			}
		}
	}
}

// TestCatalogSurvives: the README of each package of the catalog says that its plans survive a manager that dies, as "make each-write"
// shows.
func TestCatalogSurvives(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(sourcetree.Root(), "operators", "catalog", "*", "README.md"))
	env.Must(t, err)
	if len(pages) == 0 {
		t.Fatal("the catalog has no README")
	}
	line := regexp.MustCompile("Its plans survive the death of kudo's manager after each of its [1-9][0-9]* writes")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		env.Must(t, err)
		if !line.Match(text) {
			t.Errorf("%s lacks the line that kubectl kudo test --fault each-write prints", page)
		}
	}
}
