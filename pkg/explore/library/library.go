// Package library is the layer of package explore that comes with kudo: rules for kinds of well-known projects, each
// written from the project's API documentation.
//
// A rule is a Lua script in kinds/<group>/<version>/<Kind>/customizations.yaml; its cases, with what is expected, lie in
// testdata beside it. Crossplane's kinds, which anybody defines, go by their shape: see crossplane.go. In hub/ are the rules for Instances
// that only a hub has, in the same form.
package library

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/karmada"
	"kudo.dev/kudo/pkg/explore/lua"
)

//go:embed kinds/*/*/*/customizations.yaml
var files embed.FS

// Layer answers for the kinds that have a rule. It is safe for concurrent use.
type Layer struct {
	host    *lua.Host
	scripts map[subject]*lua.Script
}

// subject is what a script answers.
type subject struct {
	kind      schema.GroupVersionKind
	operation explore.Operation
}

var _ explore.Explorer = &Layer{}

// New compiles the scripts. An error names the file: it is a fault of the build, not of the surroundings.
func New(host *lua.Host) (*Layer, error) {
	configs, err := Configs()
	if err != nil {
		return nil, err
	}
	return compile(host, configs)
}

// compile makes the layer of some rules.
func compile(host *lua.Host, configs []v1alpha1.Config) (*Layer, error) {
	l := &Layer{host: host, scripts: map[subject]*lua.Script{}}
	for i := range configs {
		if err := l.load(&configs[i]); err != nil {
			return nil, fmt.Errorf("bundled rules %s: %w", configs[i].Name, err)
		}
	}
	return l, nil
}

// load compiles the scripts of a rule. Versions that have the same fields share them.
func (l *Layer) load(c *v1alpha1.Config) error {
	for operation, source := range karmada.Scripts(&c.Spec.Explorations[0]) {
		script, err := lua.Compile(operation, source)
		if err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
		for _, e := range c.Spec.Explorations {
			at := subject{schema.FromAPIVersionAndKind(e.APIVersion, e.Kind), operation}
			if l.scripts[at] != nil {
				return fmt.Errorf("%s of %s has two rules", operation, at.kind)
			}
			l.scripts[at] = script
		}
	}
	return nil
}

// Layer is explore.Library.
func (l *Layer) Layer() explore.Layer { return explore.Library }

// Explore runs the script of the object's kind and version.
func (l *Layer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	kind := r.Object.GroupVersionKind()
	script := l.scripts[subject{kind, r.Operation}]
	if script == nil {
		answer, known := composed(r)
		return answer, known, nil
	}
	who := kind.GroupKind().String()
	answer, err := l.host.Run(ctx, script, r)
	if err != nil {
		return explore.Answer{}, false, r.NewUnknown(explore.Library, who, err)
	}
	answer.Who = who
	return answer, true, nil
}

// Configs returns the rules as Configs, one for each kind, in order. A Config has an exploration for each version of its kind.
func Configs() ([]v1alpha1.Config, error) { return configsOf(files, "kinds") }

// configsOf returns the rules of the files below a folder.
func configsOf(tree fs.FS, folder string) ([]v1alpha1.Config, error) {
	names, err := fs.Glob(tree, folder+"/*/*/*/customizations.yaml")
	if err != nil {
		return nil, err
	}
	var configs []v1alpha1.Config
	for _, name := range names {
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		config, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("bundled rules %s: %w", path.Dir(name), err)
		}
		configs = append(configs, config)
	}
	return configs, nil
}

// parse reads the file of a rule. What a rule must not have is an error.
func parse(data []byte) (v1alpha1.Config, error) {
	var rule map[string]any
	if err := yaml.UnmarshalStrict(data, &rule); err != nil {
		return v1alpha1.Config{}, err
	}
	config, warnings, err := karmada.ToConfig(rule)
	if err != nil {
		return config, err
	}
	if len(warnings) > 0 {
		return config, errors.New(warnings[0])
	}
	first := config.Spec.Explorations[0]
	kind := schema.FromAPIVersionAndKind(first.APIVersion, first.Kind)
	for _, version := range alsoServed(kind) {
		other := first
		other.APIVersion = kind.Group + "/" + version
		config.Spec.Explorations = append(config.Spec.Explorations, other)
	}
	return config, nil
}

// Kinds are those that have a rule, in order, in all versions.
func (l *Layer) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for at := range l.scripts {
		if !slices.Contains(kinds, at.kind) {
			kinds = append(kinds, at.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmpKind(a, b) })
	return kinds
}
