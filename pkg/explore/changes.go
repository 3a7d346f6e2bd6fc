package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Change is one path in which two objects differ.
type Change struct {
	// Path, as .spec.ports[0].nodePort.
	Path string
	// From and To are the values; nil for none.
	From, To any
}

// String is `path: from -> to`, with values as JSON.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s -> %s", c.Path, valueText(c.From), valueText(c.To))
}

func valueText(value any) string {
	if value == nil {
		return "(none)"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// Changes lists the paths in which two JSON values differ, in order. What Equal takes for equal does not differ; lists
// of different lengths differ as a whole.
func Changes(from, to any) []Change { return changes("", from, to) }

func changes(path string, from, to any) []Change {
	if Equal(from, to) {
		return nil
	}
	a, isMap := from.(map[string]any)
	b, bothMaps := to.(map[string]any)
	if isMap && bothMaps {
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		var found []Change
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			found = append(found, changes(path+"."+key, a[key], b[key])...)
		}
		return found
	}
	x, isList := from.([]any)
	y, bothLists := to.([]any)
	if isList && bothLists && len(x) == len(y) {
		var found []Change
		for i := range x {
			found = append(found, changes(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])...)
		}
		return found
	}
	return []Change{{path, from, to}}
}
