// Package layers checks that imports point down, as docs/design/architecture.md draws it.
package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "kudo.dev/kudo"

// layers from the bottom up; a package imports from lower ones only. The longest prefix decides.
var layers = []struct {
	prefix string
	level  int
}{
	{"apis", 0},
	{"manifests", 0},
	{"operators", 1},
	{"plans", 1},
	{"pkg/keyring", 1},
	{"pkg/apply", 2}, {"pkg/health", 2}, {"pkg/history", 2}, {"pkg/repository", 2}, {"pkg/conditions", 2}, {"pkg/podexec", 2}, {"pkg/crds", 2}, {"pkg/settings", 2}, {"pkg/share", 2}, {"pkg/sources", 2}, {"pkg/explore", 2},
	{"pkg/runner", 3}, {"pkg/rights", 3}, {"pkg/admission", 3}, {"pkg/install", 3}, {"pkg/scenario", 3}, {"pkg/diagnostics", 3},
	{"pkg/controllers", 4}, {"pkg/cli", 4},
	{"cmd", 5},
	{"test", 6},
}

// allowed are the imports inside a layer: within one tree, and those that the design names.
func allowed(from, to string) bool {
	tree := func(p string) string {
		parts := strings.SplitN(p, "/", 3)
		if parts[0] == "pkg" && len(parts) > 1 {
			return parts[0] + "/" + parts[1]
		}
		return parts[0]
	}
	return tree(from) == tree(to) || between[[2]string{tree(from), tree(to)}]
}

// between are imports from one tree of a layer to another.
var between = map[[2]string]bool{
	{"pkg/share", "pkg/apply"}: true,
	{"pkg/crds", "pkg/share"}:  true,
}

// pure packages touch no cluster, network, disk, clock or log.
var impure = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net", "net/http", "os", "os/exec", "log", "log/slog", "github.com/go-logr/logr", "math/rand", "math/rand/v2"}

func level(pkg string) (int, bool) {
	best, found := -1, ""
	for _, l := range layers {
		if (pkg == l.prefix || strings.HasPrefix(pkg, l.prefix+"/")) && len(l.prefix) > len(found) {
			best, found = l.level, l.prefix
		}
	}
	return best, best >= 0
}

func TestImportsPointDown(t *testing.T) {
	root := "../.."
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (rel == "cmd/kudo-local" || strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		check(t, file, path.Dir(rel), strings.HasSuffix(file, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, file, pkg string, test bool) {
	t.Helper()
	from, known := level(pkg)
	if !known {
		t.Errorf("%s: no rule covers the package: decide on its layer in this test and in docs/design/architecture.md", pkg)
		return
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range parsed.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if from == 1 && !test {
			for _, bad := range impure {
				if name == bad {
					t.Errorf("%s imports %s: packages below operators and plans are pure", file, name)
				}
			}
		}
		to, ours := strings.CutPrefix(name, module+"/")
		if !ours {
			continue
		}
		target, known := level(to)
		switch {
		case !known:
			t.Errorf("%s imports %s, which no rule covers", file, name)
		case target == 6 && from != 6:
			t.Errorf("%s imports %s: nothing imports test", file, name)
		case target > from, target == from && from != 6 && !allowed(pkg, to):
			t.Errorf("%s (layer %d) imports %s (layer %d): imports point down", file, from, name, target)
		}
	}
}
