package testsuite

import (
	"fmt"
	"reflect"
	"sort"

	"kudo.dev/kudo/pkg/text"
)

// Difference is one place in which a live object is not as expected.
type Difference struct {
	// Path of the field, as in `.spec.replicas`.
	Path string
	// Want and Have are the values; Missing is set if there is none.
	Want, Have any
	Missing    bool
	// Length is set for lists of different lengths.
	Length bool
}

// String is a line for people.
func (d Difference) String() string {
	if d.Missing {
		return fmt.Sprintf("%s: want %s, is missing", d.Path, show(d.Want))
	}
	if w, ok := d.Want.([]any); ok && d.Length {
		h, _ := d.Have.([]any)
		return fmt.Sprintf("%s: want a list of %d, have one of %d: want %s, have %s", d.Path, len(w), len(h), show(d.Want), show(d.Have))
	}
	return fmt.Sprintf("%s: want %s, have %s", d.Path, show(d.Want), show(d.Have))
}

// maxShown bounds a value in a message, in bytes.
const maxShown = 200

func show(value any) string { return text.JSON(value, maxShown) }

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
		if !ok {
			return []Difference{{Path: path, Want: want, Have: have}}
		}
		if len(h) != len(w) {
			return []Difference{{Path: path, Want: want, Have: have, Length: true}}
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
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return x == y
		}
	}
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

// distance is how far an object is from what is expected: what is missing weighs more than what differs.
func distance(differences []Difference) int {
	n := 0
	for _, d := range differences {
		if n++; d.Missing {
			n += leaves(d.Want)
		}
	}
	return n
}

func leaves(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			n += leaves(item)
		}
	case []any:
		for _, item := range v {
			n += leaves(item)
		}
	default:
		return 1
	}
	return n
}
