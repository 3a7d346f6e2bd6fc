// Package library is the layer of package explore that comes with kudo: rules for kinds of well-known projects, each
// written from the project's API documentation.
//
// A rule is a Lua script in kinds/<group>/<version>/<Kind>/customizations.yaml; its cases, with what is expected, lie in
// testdata beside it. Crossplane's kinds, which anybody defines, go by their shape: see crossplane.go.
package library

import (
	"context"
	"embed"
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
	l := &Layer{host: host, scripts: map[subject]*lua.Script{}}
	names, err := fs.Glob(files, "kinds/*/*/*/customizations.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := l.load(data); err != nil {
			return nil, fmt.Errorf("bundled rules %s: %w", path.Dir(name), err)
		}
	}
	return l, nil
}

// customization is a rule's file: Karmada's ResourceInterpreterCustomization, as far as it is used here.
type customization struct {
	Spec struct {
		Target struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		} `json:"target"`
		Customizations map[string]struct {
			LuaScript string `json:"luaScript"`
		} `json:"customizations"`
	} `json:"spec"`
}

// load compiles the scripts of one kind, in all versions that have the same fields.
func (l *Layer) load(data []byte) error {
	var rule customization
	if err := yaml.UnmarshalStrict(data, &struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   any    `json:"metadata"`
		*customization
	}{customization: &rule}); err != nil {
		return err
	}
	kind := schema.FromAPIVersionAndKind(rule.Spec.Target.APIVersion, rule.Spec.Target.Kind)
	for key, source := range rule.Spec.Customizations {
		operation, known := karmada.OperationOf(key)
		if !known {
			return fmt.Errorf("customizations.%s is unknown", key)
		}
		script, err := lua.Compile(operation, source.LuaScript)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		for _, version := range append([]string{kind.Version}, alsoServed(kind)...) {
			at := subject{kind.GroupKind().WithVersion(version), operation}
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

// Configs returns the rules as Configs, one for each kind and version, in order.
func Configs() ([]v1alpha1.Config, error) {
	names, err := fs.Glob(files, "kinds/*/*/*/customizations.yaml")
	if err != nil {
		return nil, err
	}
	var configs []v1alpha1.Config
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var rule map[string]any
		if err := yaml.Unmarshal(data, &rule); err != nil {
			return nil, fmt.Errorf("bundled rules %s: %w", path.Dir(name), err)
		}
		config, _, err := karmada.ToConfig(rule)
		if err != nil {
			return nil, fmt.Errorf("bundled rules %s: %w", path.Dir(name), err)
		}
		kind := schema.FromAPIVersionAndKind(config.Spec.Explorations[0].APIVersion, config.Spec.Explorations[0].Kind)
		for _, version := range append([]string{kind.Version}, alsoServed(kind)...) {
			other := config.DeepCopy()
			other.Spec.Explorations[0].APIVersion = kind.Group + "/" + version
			configs = append(configs, *other)
		}
	}
	return configs, nil
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
