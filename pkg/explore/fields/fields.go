// Package fields keeps the values of live objects that lists of JSONPaths name.
package fields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Path is a parsed JSONPath of the kind that retention knows: keys, indexes and [*].
type Path struct {
	text  string
	steps []step
}

// step goes to an entry: of a map by key, of a list by index, or (all) to each of a list.
type step struct {
	key   string
	index int
	kind  kind
}

type kind int

const (
	byKey kind = iota
	byIndex
	all
)

// String is the path as it was written.
func (p Path) String() string { return p.text }

// protected are the fields of each object that are not retained, since they are the object's identity.
var protected = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid"}

// Parse reads a path such as {.spec.replicas}, {.spec.template.spec.containers[*].resources} or
// {.metadata.annotations['example.org/key']}; the braces, and the dot in front, may be left out. Whatever would match
// in more than one way is refused: .., filters, slices, unions and expressions.
func Parse(text string) (Path, error) {
	path := Path{text: text}
	rest := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		if rest, ok = strings.CutSuffix(inner, "}"); !ok {
			return path, fmt.Errorf("field %q: there is no closing brace", text)
		}
	}
	rest = strings.TrimPrefix(strings.TrimSpace(rest), "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	for rest != "" {
		next, s, err := parseStep(rest)
		if err != nil {
			return path, fmt.Errorf("field %q: %w", text, err)
		}
		path.steps, rest = append(path.steps, s), next
	}
	var names []string
	for _, s := range path.steps {
		names = append(names, s.key)
	}
	switch name := strings.Join(names, "."); {
	case len(path.steps) == 0:
		return path, fmt.Errorf("field %q names no field: write one such as {.spec.replicas}", text)
	case path.steps[0].kind != byKey:
		return path, fmt.Errorf("field %q: an object is no list", text)
	case slices.Contains(protected, name), name == "metadata":
		return path, fmt.Errorf("field %q is part of an object's identity: name fields below spec, or labels and annotations", text)
	}
	return path, nil
}

// ParseValue reads a path that names one value at most: Parse without [*].
func ParseValue(text string) (Path, error) {
	path, err := Parse(text)
	if err == nil && slices.ContainsFunc(path.steps, func(s step) bool { return s.kind == all }) {
		err = fmt.Errorf("field %q: [*] would match more than one value: write an index, such as [0]", text)
	}
	return path, err
}

// Get returns the value that a path of ParseValue names, and reports whether it is there. The value is not copied.
func (p Path) Get(object map[string]any) (any, bool) {
	var value any = object
	for _, s := range p.steps {
		switch s.kind {
		case byKey:
			fields, _ := value.(map[string]any)
			next, found := fields[s.key]
			if !found {
				return nil, false
			}
			value = next
		case byIndex:
			list, _ := value.([]any)
			if s.index >= len(list) {
				return nil, false
			}
			value = list[s.index]
		case all:
			return nil, false
		}
	}
	return value, true
}

// parseStep reads one step, and returns what follows.
func parseStep(text string) (string, step, error) {
	switch {
	case strings.HasPrefix(text, ".."):
		return "", step{}, fmt.Errorf("\"..\" would match at any depth: write the whole path")
	case strings.HasPrefix(text, ".["):
		return parseStep(text[1:])
	case text[0] == '.':
		return parseKey(text[1:])
	case text[0] == '[':
		return parseBracket(text[1:])
	}
	return "", step{}, fmt.Errorf("unexpected %q", text)
}

func parseKey(text string) (string, step, error) {
	var key strings.Builder
	i := 0
	for i < len(text) && text[i] != '.' && text[i] != '[' {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		} else if strings.IndexByte("{}]()'\"@?*, ", text[i]) >= 0 {
			return "", step{}, fmt.Errorf("unexpected %q: put keys of such characters in brackets, as ['key']", text[i:i+1])
		}
		key.WriteByte(text[i])
		i++
	}
	if key.Len() == 0 {
		return "", step{}, fmt.Errorf("a key is missing after \".\"")
	}
	return text[i:], step{key: key.String()}, nil
}

func parseBracket(text string) (string, step, error) {
	if text != "" && (text[0] == '\'' || text[0] == '"') {
		key, rest, ok := strings.Cut(text[1:], text[:1]+"]")
		if !ok || key == "" || strings.ContainsAny(key, `'"`) {
			return "", step{}, fmt.Errorf("[%s is no key in quotes and a closing bracket", text)
		}
		return rest, step{key: key}, nil
	}
	inner, rest, ok := strings.Cut(text, "]")
	if !ok {
		return "", step{}, fmt.Errorf("there is no closing bracket")
	}
	if inner == "*" {
		return rest, step{kind: all}, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 || strconv.Itoa(index) != inner {
		return "", step{}, fmt.Errorf("[%s] is no key in quotes, index or *: filters, slices and unions are not allowed", inner)
	}
	return rest, step{index: index, kind: byIndex}, nil
}

// Retain returns the desired object with the values that the observed one has in some paths. What the observed object
// does not have stays as it is desired. Neither argument is changed.
func Retain(paths []Path, desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	result := desired.DeepCopy()
	for _, p := range paths {
		if merged, changed := merge(result.Object, observed.Object, p.steps, ""); changed {
			result.Object, _ = merged.(map[string]any)
		}
	}
	return result
}

// merge returns what a value becomes, and whether it is another.
func merge(desired, observed any, steps []step, name string) (any, bool) {
	if len(steps) == 0 {
		return runtime.DeepCopyJSONValue(observed), true
	}
	switch s := steps[0]; s.kind {
	case byKey:
		return mergeKey(desired, observed, s.key, steps[1:])
	case byIndex:
		from, isList := observed.([]any)
		into, alike := desired.([]any)
		if !isList || !alike || s.index >= len(from) || s.index >= len(into) {
			return desired, false
		}
		merged, changed := merge(into[s.index], from[s.index], steps[1:], "")
		if changed {
			into[s.index] = merged
		}
		return into, changed
	}
	from, isList := observed.([]any)
	into, alike := desired.([]any)
	if !isList || !alike {
		return desired, false
	}
	return mergeAll(into, from, steps[1:], name)
}

func mergeKey(desired, observed any, key string, steps []step) (any, bool) {
	from, ok := observed.(map[string]any)
	if !ok {
		return desired, false
	}
	child, there := from[key]
	into, isMap := desired.(map[string]any)
	if !there || !isMap && desired != nil {
		return desired, false
	}
	merged, changed := merge(into[key], child, steps, key)
	if !changed {
		return desired, false
	}
	if into == nil {
		into = map[string]any{}
	}
	into[key] = merged
	return into, true
}

// mergeAll pairs the entries of two lists. Without a key to pair them by, the observed list is kept as a whole.
func mergeAll(desired, observed []any, steps []step, name string) (any, bool) {
	keys := keysOf(name, desired, observed)
	if keys == nil {
		return runtime.DeepCopyJSONValue(observed), true
	}
	live := map[string]any{}
	for _, entry := range observed {
		live[identify(entry, keys)] = entry
	}
	changed := false
	for i, entry := range desired {
		from, there := live[identify(entry, keys)]
		if !there {
			continue
		}
		if merged, is := merge(entry, from, steps, ""); is {
			desired[i], changed = merged, true
		}
	}
	return desired, changed
}
