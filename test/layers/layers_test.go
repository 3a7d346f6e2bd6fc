package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vague are names that say nothing about what a package does.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "shared"}

// source is a Go file of a tree, with what it imports.
type source struct {
	path, pkg string
	imports   []string
	test      bool
}

// readSources reads the Go files of a tree without those of other modules, of testdata and of hidden folders.
func readSources(root string) ([]source, error) {
	var out []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (isModule(file) || strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "dist" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go")}
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			s.imports = append(s.imports, name)
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// below reports whether name is prefix, or a path below it.
func below(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}

func belowAny(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return below(name, p) })
}

// matches reports whether a package is the one that a side of an edge names.
func matches(pkg, side string) bool {
	if parent, ok := strings.CutSuffix(side, "/*"); ok {
		return strings.HasPrefix(pkg, parent+"/")
	}
	return pkg == side
}

// level returns the level of a package, and the prefix that gives it; the prefix is empty if there is none.
func (r rules) level(pkg string) (int, string) {
	best := ""
	for prefix := range r.levels {
		if below(pkg, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return r.levels[best], best
}

// checker collects the violations of a tree, and which rules it has needed.
type checker struct {
	rules
	problems []string
	used     map[string]bool
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// allows reports whether edges hold one from a package to another.
func (c *checker) allows(kind string, edges map[string][]string, from, to string) bool {
	found := false
	for side, targets := range edges {
		if !matches(from, side) {
			continue
		}
		for _, target := range targets {
			if matches(to, target) {
				found, c.used[edge(kind, side, target)] = true, true
			}
		}
	}
	return found
}

func edge(kind, from, to string) string { return kind + " " + from + " → " + to }

// check returns what is wrong in a tree of sources.
func (r rules) check(sources []source) []string {
	c := &checker{rules: r, used: map[string]bool{}}
	tested := map[string]bool{}
	for _, s := range sources {
		tested[s.pkg] = tested[s.pkg] || s.test
		level, prefix := c.level(s.pkg)
		if prefix == "" {
			c.problem("%s: no level covers the package: choose one in this test and in docs/design/architecture.md", s.path)
			continue
		}
		c.used["level "+prefix] = true
		for _, name := range s.imports {
			c.checkImport(s, level, name)
		}
	}
	c.checkPackages(tested)
	c.checkRules(tested)
	slices.Sort(c.problems)
	return slices.Compact(c.problems)
}

func (c *checker) checkImport(s source, level int, name string) {
	if level == pureLevel && !s.test && belowAny(name, c.impure) && !belowAny(name, c.exceptions) {
		c.problem("%s imports %s: packages of level %d are pure", s.path, name, pureLevel)
	}
	to, ours := strings.CutPrefix(name, module+"/")
	if !ours {
		return
	}
	target, prefix := c.level(to)
	switch {
	case prefix == "":
		c.problem("%s imports %s, which no level covers", s.path, name)
	case belowAny(s.pkg, c.isolated) && !s.test && !belowAny(to, c.isolated):
		c.problem("%s imports %s: the package imports nothing of this module but packages of its kind", s.path, name)
	case !s.test && !c.isNarrowEnough(s.pkg, to):
		c.problem("%s imports %s: of this module, the package imports %s only", s.path, name, strings.Join(c.narrow[s.pkg], ", "))
	case target == testLevel && level != testLevel && (!s.test || !belowAny(to, c.fixtures)):
		c.problem("%s imports %s: only _test.go files import test, and of it only %s", s.path, name, strings.Join(c.fixtures, ", "))
	case target == testLevel, target < level, to == s.pkg:
	case target > level:
		c.problem("%s (level %d) imports %s (level %d): imports point down", s.path, level, name, target)
	case c.allows("edge", c.edges, s.pkg, to), s.test && c.allows("test edge", c.testEdges, s.pkg, to):
	default:
		c.problem("%s imports %s of the same level %d, and no edge allows it", s.path, name, level)
	}
}

// isNarrowEnough reports whether a package may import another, if it is a narrow one.
func (c *checker) isNarrowEnough(pkg, to string) bool {
	allowed, narrow := c.narrow[pkg]
	if slices.Contains(allowed, to) {
		c.used[edge("narrow", pkg, to)] = true
	}
	return !narrow || slices.Contains(allowed, to)
}

func (c *checker) checkPackages(tested map[string]bool) {
	for pkg, has := range tested {
		if slices.Contains(vague, path.Base(pkg)) {
			c.problem("%s: the name of the package does not say what it does", pkg)
		}
		_, listed := c.untested[pkg]
		switch {
		case !has && !listed:
			c.problem("%s has no _test.go file: write one, or list the package with a reason", pkg)
		case has && listed:
			c.problem("%s has a _test.go file and is listed as without: delete the line", pkg)
		}
	}
}

// checkRules finds the rules that nothing in the tree needs.
func (c *checker) checkRules(packages map[string]bool) {
	for prefix := range c.levels {
		if !c.used["level "+prefix] {
			c.problem("no package is of level prefix %s: delete the rule", prefix)
		}
	}
	for kind, edges := range map[string]map[string][]string{"edge": c.edges, "test edge": c.testEdges, "narrow": c.narrow} {
		for from, targets := range edges {
			for _, to := range targets {
				if name := edge(kind, from, to); !c.used[name] {
					c.problem("no import needs the %s: delete the rule", name)
				}
			}
		}
	}
	for _, listed := range [][]string{c.isolated, c.fixtures, slices.Collect(maps.Keys(c.untested))} {
		for _, pkg := range listed {
			if _, exists := packages[pkg]; !exists {
				c.problem("there is no package %s: delete the rule", pkg)
			}
		}
	}
}

// TestTree checks this module.
func TestTree(t *testing.T) {
	sources, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range tree.check(sources) {
		t.Error(problem)
	}
}

// file returns a source of a package; a name that ends with _test.go makes it a test.
func file(name string, imports ...string) source {
	return source{path: name, pkg: path.Dir(name), imports: imports, test: strings.HasSuffix(name, "_test.go")}
}

// TestRules checks that each rule finds what breaks it.
func TestRules(t *testing.T) {
	r := rules{
		levels:     map[string]int{"apis": 0, "operators": 1, "pkg/apply": 2, "pkg/share": 2, "pkg/crdcompat": 2, "pkg/cli": 4, "test": testLevel},
		edges:      map[string][]string{"pkg/share": {"pkg/apply"}},
		testEdges:  map[string][]string{"pkg/apply": {"pkg/crdcompat"}},
		impure:     []string{"k8s.io/client-go", "net", "os"},
		exceptions: []string{"net/url"},
		isolated:   []string{"pkg/crdcompat"},
		narrow:     map[string][]string{"pkg/cli": {"pkg/apply", "pkg/share"}},
		fixtures:   []string{"test/gen"},
		untested:   map[string]string{"apis": "types"},
	}
	good := []source{
		file("apis/types.go", "time"),
		file("operators/operators.go", "net/url", module+"/apis"), file("operators/operators_test.go", "os"),
		file("pkg/apply/apply.go", "os", module+"/operators"), file("pkg/apply/apply_test.go", module+"/test/gen", module+"/pkg/crdcompat"),
		file("pkg/share/share.go", module+"/pkg/apply"), file("pkg/share/share_test.go"),
		file("pkg/crdcompat/crdcompat.go"), file("pkg/crdcompat/crdcompat_test.go", module+"/test/gen"),
		file("pkg/cli/cli.go", module+"/pkg/share", module+"/pkg/apply"), file("pkg/cli/cli_test.go"),
		file("test/gen/gen.go", module+"/apis"), file("test/gen/gen_test.go", module+"/pkg/cli"),
	}
	if problems := r.check(good); len(problems) > 0 {
		t.Fatalf("the tree without a violation has some: %s", strings.Join(problems, "\n"))
	}
	cases := []struct {
		reason string
		added  source
		absent string // the source that the tree does not have
		want   string
	}{
		{"a lower level imports a higher one", file("pkg/apply/a.go", module+"/pkg/cli"), "", "pkg/apply/a.go (level 2) imports kudo.dev/kudo/pkg/cli (level 4): imports point down"},
		{"two packages of a level, without an edge", file("pkg/apply/a.go", module+"/pkg/share"), "", "pkg/apply/a.go imports kudo.dev/kudo/pkg/share of the same level 2, and no edge allows it"},
		{"an edge is for a package, and not for those below it", file("pkg/share/inner/a.go", module+"/pkg/apply"), "", "pkg/share/inner/a.go imports kudo.dev/kudo/pkg/apply of the same level 2, and no edge allows it"},
		{"a package below an impure one is impure", file("operators/a.go", "k8s.io/client-go/kubernetes"), "", "operators/a.go imports k8s.io/client-go/kubernetes: packages of level 1 are pure"},
		{"a package next to an exception is impure", file("operators/a.go", "net/http"), "", "operators/a.go imports net/http: packages of level 1 are pure"},
		{"an isolated package imports this module", file("pkg/crdcompat/a.go", module+"/apis"), "", "pkg/crdcompat/a.go imports kudo.dev/kudo/apis: the package imports nothing of this module but packages of its kind"},
		{"a narrow package imports more than is listed", file("pkg/cli/a.go", module+"/apis"), "", "pkg/cli/a.go imports kudo.dev/kudo/apis: of this module, the package imports pkg/apply, pkg/share only"},
		{"a narrow package does not need what is listed", source{}, "pkg/cli/cli.go", "no import needs the narrow pkg/cli → pkg/apply: delete the rule"},
		{"code that is no test imports fixtures", file("pkg/apply/a.go", module+"/test/gen"), "", "pkg/apply/a.go imports kudo.dev/kudo/test/gen: only _test.go files import test, and of it only test/gen"},
		{"a unit test imports more of test than fixtures", file("pkg/apply/a_test.go", module+"/test/env"), "", "pkg/apply/a_test.go imports kudo.dev/kudo/test/env: only _test.go files import test, and of it only test/gen"},
		{"a package that no level covers", file("pkg/other/a.go"), "", "pkg/other/a.go: no level covers the package: choose one in this test and in docs/design/architecture.md"},
		{"an import that no level covers", file("pkg/cli/a.go", module+"/pkg/other"), "", "pkg/cli/a.go imports kudo.dev/kudo/pkg/other, which no level covers"},
		{"a package without tests", source{}, "pkg/apply/apply_test.go", "pkg/apply has no _test.go file: write one, or list the package with a reason"},
		{"a package that has tests by now", file("apis/a_test.go"), "", "apis has a _test.go file and is listed as without: delete the line"},
		{"a listed package that is deleted", source{}, "apis/types.go", "there is no package apis: delete the rule"},
		{"a name that says nothing", file("pkg/cli/util/a.go"), "", "pkg/cli/util: the name of the package does not say what it does"},
		{"an edge that no import needs", source{}, "pkg/share/share.go", "no import needs the edge pkg/share → pkg/apply: delete the rule"},
		{"code that is no test imports by an edge of tests", file("pkg/apply/a.go", module+"/pkg/crdcompat"), "", "pkg/apply/a.go imports kudo.dev/kudo/pkg/crdcompat of the same level 2, and no edge allows it"},
		{"an edge of tests that no test needs", source{}, "pkg/apply/apply_test.go", "no import needs the test edge pkg/apply → pkg/crdcompat: delete the rule"},
		{"a level of no package", source{}, "pkg/cli", "no package is of level prefix pkg/cli: delete the rule"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			bad := slices.DeleteFunc(slices.Clone(good), func(s source) bool { return tc.absent != "" && below(s.path, tc.absent) })
			if tc.added.path != "" {
				bad = append(bad, tc.added)
			}
			if problems := r.check(bad); !slices.Contains(problems, tc.want) {
				t.Errorf("found %q, want %q", problems, tc.want)
			}
		})
	}
}
