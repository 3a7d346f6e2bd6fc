package render_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/test/corpus"
)

// attacks are values that would change the structure of most templates that print them as they are.
var attacks = []string{
	"50m\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: evil\n---\n", "\n  a: b", "a\nevil: b", "a\n            evil: b", "\n- a", "\n          - a\n          - b",
	"{a: b}", "[a, b]", "a, evil: b", "a}", "]", "a #", "# a", "a # b\n  c: d", "*a", "&a b", "!!binary aGk=", "!a b", `a", "b`, `a' , 'b`, `"`, `'`, `\`, "a: b", "a:", "- a", "? a",
	"a\r  b: c", "a\r---\rb", "a\u0085  b: c", "a\u2028  b: c", "\t", "a\n\tb", "<<", "|", ">", "---", "...", "a\n...\nb", "a\n%YAML 1.1\n---\nb", "\n", "  ", "\ufeff", "a\nb\nc\n", "{{ .Name }}", "% a", "@a", "`a`", "~", "kind", "k: {{", "1e3", "a\\\n b",
}

// packages are those of the catalog and of the corpus, by path.
func packages(t testing.TB) map[string]*operators.Package {
	t.Helper()
	folders := corpus.Folders(t, filepath.Join("..", "catalog"), operators.OperatorFileName)
	if dir := corpus.Optional(t); dir != "" {
		folders = append(folders, corpus.Folders(t, dir, operators.OperatorFileName)...)
	}
	found := map[string]*operators.Package{}
	for _, folder := range folders {
		pkg, err := operators.Read(os.DirFS(folder))
		if err != nil {
			continue // a package that is meant to be wrong
		}
		found[corpus.Name(folder)] = pkg
	}
	return found
}

// variables are what the templates of a package see, with some values given.
func variables(pkg *operators.Package, given map[string]string) (render.Variables, error) {
	values := map[string]string{}
	for _, name := range params.Missing(pkg.Definitions(), nil) {
		values[name] = "1"
	}
	maps.Copy(values, given)
	resolved, err := params.Resolve(pkg.Definitions(), values)
	return render.Variables{OperatorName: pkg.Operator.Name, OperatorVersion: pkg.Operator.OperatorVersion, AppVersion: pkg.Operator.AppVersion,
		Name: "inst", Namespace: "ns", PlanName: "deploy", PhaseName: "main", StepName: "all", Params: resolved, Pipes: pkg.Pipes("inst")}, err
}

// use renders one use of a template, and returns the structure of what comes out.
func use(set *render.Set, u operators.Use, v render.Variables) (string, error) {
	return useNamed(set, u, v, func(string) bool { return false })
}

// useNamed is use, but some keys have no name: those that values make.
func useNamed(set *render.Set, u operators.Use, v render.Variables, made func(key string) bool) (string, error) {
	if u.Role == operators.Parameters {
		values, err := set.Parameters(u.Template, v)
		return fmt.Sprint(slices.Sorted(maps.Keys(values))), err
	}
	result, err := set.Objects(u.Template, v, render.WithoutNames())
	var b strings.Builder
	for _, object := range result.Objects {
		b.WriteString(object.GetAPIVersion() + "/" + object.GetKind())
		structure(&b, object.Object, made)
	}
	return b.String(), err
}

func structure(b *strings.Builder, value any, made func(key string) bool) {
	switch v := value.(type) {
	case map[string]any:
		var entries []string
		for key, item := range v {
			var entry strings.Builder
			if made(key) {
				key = "*"
			}
			entry.WriteString(key + ":")
			structure(&entry, item, made)
			entries = append(entries, entry.String())
		}
		slices.Sort(entries)
		b.WriteString("{" + strings.Join(entries, ",") + "}")
	case []any:
		b.WriteString("[")
		for _, item := range v {
			structure(b, item, made)
			b.WriteString(",")
		}
		b.WriteString("]")
	default:
		b.WriteString(".")
	}
}

// TestPackagesContained is T20 for all packages that are there: no template is refused with the defaults, and with an attack in a
// parameter of type string each is refused, or makes what a plain value makes.
func TestPackagesContained(t *testing.T) {
	for path, pkg := range packages(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			set := render.New(pkg.Templates)
			v, err := variables(pkg, nil)
			if err != nil {
				t.Fatal(err)
			}
			v.Namespace = "not plain, so that all is checked"
			for _, u := range pkg.Uses() {
				if _, err := use(set, u, v); err != nil && structural(err) {
					t.Errorf("refused with the defaults: %v", err)
				}
			}
			for _, def := range pkg.Definitions() {
				if def.Type != "" && def.Type != v1beta1.StringType {
					continue
				}
				attackParameter(t, pkg, set, def.Name)
			}
		})
	}
}

func structural(err error) bool {
	var e *render.Error
	return errors.As(err, &e) && e.Kind == render.StructureError
}

func attackParameter(t *testing.T, pkg *operators.Package, set *render.Set, name string) {
	helpers := ""
	for _, text := range pkg.Templates {
		if strings.Contains(text, "define") {
			helpers += text
		}
	}
	done := map[string]bool{}
	for _, u := range pkg.Uses() {
		if done[u.Template] || !strings.Contains(pkg.Templates[u.Template]+helpers, "."+name) {
			continue // it does not print the parameter
		}
		done[u.Template] = true
		plain := map[string]bool{}
		for _, value := range []string{"word", "1", "true", ""} {
			v, _ := variables(pkg, map[string]string{name: value})
			if s, err := use(set, u, v); err == nil {
				plain[s] = true
			}
		}
		for _, attack := range attacks {
			v, _ := variables(pkg, map[string]string{name: attack})
			if s, err := use(set, u, v); err == nil && len(plain) > 0 && !plain[s] {
				t.Errorf("template %s: %q in %s slipped through: %s", u.Template, attack, name, s)
			}
		}
	}
}
