package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
)

// target is a template with a parameter that it prints.
type target struct {
	name   string
	render func(value string) (string, error)
	// plain are the structures that plain values make.
	plain map[string]bool
}

// isOfCorpus reports whether the template is of a package of the corpus.
func (o target) isOfCorpus() bool { return strings.HasPrefix(o.name, "corpus/") }

// attack checks that a value is refused, or makes the structure that a plain value makes.
func (o target) attack(t *testing.T, value string) {
	t.Helper()
	if got, err := o.render(value); err == nil && !o.plain[got] {
		t.Errorf("%s: %q slipped through: %s", o.name, value, got)
	}
}

// targets are all templates of the packages that are there, for each of their parameters of type string, and the shapes.
func targets(t testing.TB) (all []target) {
	add := func(name string, render func(string) (string, error)) {
		one := target{name, render, map[string]bool{}}
		for _, value := range []string{"word", "1", "true", "false", "", "0", "-1", "2"} {
			if s, err := render(value); err == nil {
				one.plain[s] = true
			}
		}
		if len(one.plain) > 0 {
			all = append(all, one)
		}
	}
	found := packages(t)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		pkg := found[path]
		set, done := render.New(pkg.Templates), map[string]bool{}
		for _, u := range pkg.Uses() {
			for _, def := range pkg.Definitions() {
				key := u.Template + " " + def.Name
				if done[key] || def.Type != "" && def.Type != v1beta1.StringType || !strings.Contains(pkg.Templates[u.Template], "."+def.Name) {
					continue
				}
				done[key] = true
				add(path+" "+key, func(value string) (string, error) {
					v, err := variables(pkg, map[string]string{def.Name: value})
					if err != nil {
						return "", err
					}
					return use(set, u, v)
				})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(render.Shapes)) {
		set := render.New(map[string]string{"t.yaml": render.Shapes[name], "_h.yaml": render.Helpers})
		add(name, func(value string) (string, error) {
			v := render.Variables{Name: "n", Namespace: "ns", Params: map[string]any{"V": value, "W": "w"}}
			return useNamed(set, operators.Use{Template: "t.yaml"}, v, func(string) bool { return makesKeys[name] })
		})
	}
	return all
}

// makesKeys are the shapes in which the value is a key, or part of one.
var makesKeys = map[string]bool{"Key": true, "KeyPart": true, "Prefix": true, "Top": true}

// FuzzContained is T20 and T23: a value is refused, or makes the structure that a plain value makes.
func FuzzContained(f *testing.F) {
	all := targets(f)
	names := slices.Sorted(maps.Keys(render.Hostile))
	for i := range all {
		if !all[i].isOfCorpus() {
			f.Add(uint16(i), render.Hostile[names[i%len(names)]])
		}
	}
	for i, name := range names {
		f.Add(uint16(len(all)-1-i%len(render.Shapes)), render.Hostile[name])
	}
	f.Fuzz(func(t *testing.T, which uint16, value string) {
		if !utf8.ValidString(value) || len(value) > 1000 {
			return // the API server takes no such text; long ones only take long
		}
		all[int(which)%len(all)].attack(t, value)
	})
}

// TestCorpusContained is T20 for the templates of the corpus, with the values that FuzzContained begins with for the others: the number of
// those is the same without a corpus.
func TestCorpusContained(t *testing.T) {
	names := slices.Sorted(maps.Keys(render.Hostile))
	for i, one := range targets(t) {
		if one.isOfCorpus() {
			t.Run(one.name, func(t *testing.T) { one.attack(t, render.Hostile[names[i%len(names)]]) })
		}
	}
}
