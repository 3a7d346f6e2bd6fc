package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"kudo.dev/kudo/test/env"
)

var (
	testName     = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)`(?: \\(`([a-z/]+)`)?")
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	fenced       = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```$")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	span         = regexp.MustCompile("`([^`]+)`")
	flagName     = regexp.MustCompile(`(^|[\s\[(])--([a-z][a-z-]+)`)
)

// all are the pages of docs/ and below, and README.md.
func all(t *testing.T) []string {
	t.Helper()
	design, err := filepath.Glob(filepath.Join(env.Root(), "docs", "design", "*.md"))
	env.Must(t, err)
	return append(files(t), design...)
}

// tests are the folders that have a test function, by its name.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	env.Must(t, filepath.WalkDir(env.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		folder, _ := filepath.Rel(env.Root(), filepath.Dir(path))
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = append(found[m[1]], filepath.ToSlash(folder))
		}
		return err
	}))
	return found
}

// Each test that a page names is there, in the folder that the page names behind it.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	functions := tests(t)
	for _, path := range all(t) {
		if name(path) == "testing" {
			continue // its TestSteps and TestAsserts are kinds of files
		}
		for _, m := range testName.FindAllStringSubmatch(read(t, path), -1) {
			folders := functions[m[1]]
			there := m[2] == "" && len(folders) > 0
			for _, folder := range folders {
				there = there || folder == m[2]
			}
			if !there {
				t.Errorf("%s names %s, which is in %q", filepath.Base(path), m[0], folders)
			}
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
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, path), ""), -1) {
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
