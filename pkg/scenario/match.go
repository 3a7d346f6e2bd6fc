package scenario

import (
	"fmt"
	"reflect"
	"sort"
)

// Difference is one place in which a live object is not as expected.
type Difference struct {
	// Path of the field, as in `.spec.replicas`.
	Path string
	// Want and Have are the values; Missing is set if there is none.
	Want, Have any
	Missing    bool
}

// String is a line for people.
func (d Difference) String() string {
	if d.Missing {
		return fmt.Sprintf("%s: want %s, is missing", d.Path, show(d.Want))
	}
	return fmt.Sprintf("%s: want %s, have %s", d.Path, show(d.Want), show(d.Have))
}

// maxShown bounds a value in a message, in bytes.
const maxShown = 200

func show(value any) string {
	text := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return text
}

// Differences lists where a live value does not contain what is expected: maps may hold more; lists must have the same
// length, and each item contains the expected one at its place, as in kuttl.
func Differences(want, have any, path string) []Difference {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return []Difference{{Path: path, Want: want, Have: have}}
		}
		keys := make([]string, 0, len(w))
		for key := range w {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		var out []Difference
		for _, key := range keys {
			value, found := h[key]
			if !found {
				out = append(out, Difference{Path: path + "." + key, Want: w[key], Missing: true})
				continue
			}
			out = append(out, Differences(w[key], value, path+"."+key)...)
		}
		return out
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return []Difference{{Path: path, Want: want, Have: have}}
		}
		var out []Difference
		for i := range w {
			out = append(out, Differences(w[i], h[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return out
	}
	if !same(want, have) {
		return []Difference{{Path: path, Want: want, Have: have}}
	}
	return nil
}

// same compares scalars; numbers by value, whether they were read as integers or not.
func same(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
