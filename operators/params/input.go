package params

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

// ReadFile reads a file of parameters, a YAML map of names to values of any type. Numbers keep the digits that are
// written. All mistakes are reported together, each with its line: a value that is null, a name that comes twice.
func ReadFile(data []byte) (map[string]string, error) {
	root, err := yamldoc.First(data)
	if err != nil {
		return nil, fmt.Errorf("reading parameters: %w", err)
	}
	values := map[string]string{}
	if root == nil {
		return values, nil
	}
	if text, scalar := yamldoc.Literal(root); scalar && text == "" {
		return values, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("reading parameters: line %d: expected a map of names to values, like `REPLICAS: 3`", root.Line)
	}
	var errs []error
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := readEntry(root.Content[i], root.Content[i+1], values, lines); err != nil {
			errs = append(errs, fmt.Errorf("reading parameters: %w", err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return values, nil
}

func readEntry(key, value *yaml.Node, values map[string]string, lines map[string]int) error {
	// As written: the parameter Y is no boolean.
	name, ok := yamldoc.Literal(key)
	if !ok || name == "" {
		return fmt.Errorf("line %d: a name of a parameter must be text", key.Line)
	}
	if first, ok := lines[name]; ok {
		return fmt.Errorf("line %d: parameter %q is set already in line %d: remove one of the two", key.Line, name, first)
	}
	lines[name] = key.Line
	text, null, err := yamldoc.Text(value)
	if err != nil {
		return fmt.Errorf("parameter %q: %w", name, err)
	}
	if null {
		return fmt.Errorf(`line %d: parameter %q is null: give a value, write "" for an empty one, or leave it out for the default`, key.Line,
			name)
	}
	values[name] = text
	return nil
}

// ParseFlag splits the value of a flag `-p NAME=VALUE` at its first `=`.
func ParseFlag(flag string) (name, value string, err error) {
	name, value, found := strings.Cut(flag, "=")
	switch {
	case !found:
		return "", "", fmt.Errorf("parameter %s has no value: write -p NAME=VALUE", text.Quote(flag, maxQuoted))
	case strings.TrimSpace(name) == "":
		return "", "", fmt.Errorf("parameter %s has no name: write -p NAME=VALUE", text.Quote(flag, maxQuoted))
	case value == "":
		return "", "", fmt.Errorf("parameter %q has an empty value: to set it to its default use --unset %s, to set it to the empty text write "+
			"%s: \"\" into a file and use -P", name, name, name)
	}
	return name, value, nil
}
