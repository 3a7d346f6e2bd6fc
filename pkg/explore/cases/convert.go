package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/operators/yamldoc"
)

// NotConfigError says that a file holds objects of another kind than Config.
type NotConfigError struct {
	// Place is the file and line.
	Place string
	// Kind that was found; it may be empty.
	Kind string
}

// Error names the place and the kind.
func (e *NotConfigError) Error() string {
	return fmt.Sprintf("%s: kind %q: want a Config (%s) or a ResourceInterpreterCustomization", e.Place, e.Kind, v1alpha1.GroupVersion)
}

// ReadConfigs reads the Configs of a file. ResourceInterpreterCustomizations of Karmada (config.karmada.io/v1alpha1)
// are converted; the warnings say which of their scripts have no counterpart. Unknown fields are errors.
func ReadConfigs(file string, text []byte) (configs []v1alpha1.Config, warnings []string, err error) {
	roots, err := yamldoc.Split(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, root := range roots {
		place := fmt.Sprintf("%s:%d", file, root.Line)
		value, _, err := yamldoc.Value(root)
		if err == nil {
			value, err = yamldoc.JSON(value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", place, err)
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, nil, &NotConfigError{Place: place}
		}
		kind, _ := fields["kind"].(string)
		apiVersion, _ := fields["apiVersion"].(string)
		var c v1alpha1.Config
		var more []string
		switch {
		case kind == "Config" && apiVersion == v1alpha1.GroupVersion.String():
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &c, true)
		case kind == "ResourceInterpreterCustomization":
			c, more, err = Convert(fields)
		default:
			return nil, nil, &NotConfigError{Place: place, Kind: kind}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", place, err)
		}
		for _, w := range more {
			warnings = append(warnings, place+": "+w)
		}
		configs = append(configs, c)
	}
	return configs, warnings, nil
}

// Convert turns a ResourceInterpreterCustomization into a Config. It warns of scripts that kudo has no operation for.
//
// Source: https://karmada.io/docs/userguide/globalview/customizing-resource-interpreter/
func Convert(fields map[string]any) (v1alpha1.Config, []string, error) {
	c := v1alpha1.Config{}
	c.APIVersion, c.Kind = v1alpha1.GroupVersion.String(), "Config"
	metadata, _ := fields["metadata"].(map[string]any)
	c.Name, _ = metadata["name"].(string)
	if c.Name == "" {
		return c, nil, fmt.Errorf("metadata.name is missing")
	}
	spec, _ := fields["spec"].(map[string]any)
	target, _ := spec["target"].(map[string]any)
	e := v1alpha1.Exploration{}
	e.APIVersion, _ = target["apiVersion"].(string)
	e.Kind, _ = target["kind"].(string)
	if e.APIVersion == "" || e.Kind == "" {
		return c, nil, fmt.Errorf("spec.target must have apiVersion and kind")
	}
	customizations, ok := spec["customizations"].(map[string]any)
	if !ok {
		return c, nil, fmt.Errorf("spec.customizations is missing")
	}
	slots := map[string]*string{
		"retention": &e.RetainingLua, "replicaResource": &e.ReplicaLua, "componentResource": &e.ComponentsLua,
		"replicaRevision":  &e.ReplicaRevisingLua,
		"statusReflection": &e.StatusLua, "statusAggregation": &e.StatusAggregatingLua,
		"healthInterpretation": &e.HealthLua, "dependencyInterpretation": &e.DependenciesLua,
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(customizations)) {
		rule, _ := customizations[name].(map[string]any)
		script, isText := rule["luaScript"].(string)
		slot := slots[name]
		switch {
		case slot == nil:
			warnings = append(warnings, fmt.Sprintf("spec.customizations.%s is left out: kudo has no such operation", name))
		case !isText:
			return c, nil, fmt.Errorf("spec.customizations.%s.luaScript must be a text", name)
		case strings.TrimSpace(script) != "":
			*slot = script
		}
	}
	c.Spec.Explorations = []v1alpha1.Exploration{e}
	return c, warnings, nil
}
