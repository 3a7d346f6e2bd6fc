package cases

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/explore/karmada"
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
		case kind == karmada.Kind:
			c, more, err = karmada.ToConfig(fields)
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
