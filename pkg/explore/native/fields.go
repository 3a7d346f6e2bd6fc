package native

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

// keep copies the live value of a field, if it has one that is not empty.
func keep(into, from map[string]any, path ...string) error {
	value, found, err := unstructured.NestedFieldCopy(from, path...)
	if err != nil || !found || isBlank(value) {
		return err
	}
	return unstructured.SetNestedField(into, value, path...)
}

// fill is keep for fields that the desired object leaves empty.
func fill(into, from map[string]any, path ...string) error {
	value, found, err := unstructured.NestedFieldNoCopy(into, path...)
	if err != nil || found && !isBlank(value) {
		return err
	}
	return keep(into, from, path...)
}

// isBlank reports whether a value says nothing: the API server treats it as absent.
func isBlank(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// text is a string field; empty if there is none.
func text(object map[string]any, path ...string) (string, error) {
	value, _, err := unstructured.NestedString(object, path...)
	return value, err
}

// entries are the maps of a list. It shares them with the object. A list that is not one, or holds something else, is
// an error.
func entries(object map[string]any, path ...string) ([]map[string]any, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || value == nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%v is a %T, not a list", path, value)
	}
	all := make([]map[string]any, len(list))
	for i, entry := range list {
		if all[i], ok = entry.(map[string]any); !ok {
			return nil, fmt.Errorf("entry %d of %v is a %T, not a map", i, path, entry)
		}
	}
	return all, nil
}

// mergeByKey appends those live entries of a list whose key the desired list does not have. Keys may have any type, since
// no schema has checked the objects.
func mergeByKey(into, from map[string]any, key string, path ...string) error {
	desired, err := entries(into, path...)
	if err != nil {
		return err
	}
	live, err := entries(from, path...)
	if err != nil || len(live) == 0 {
		return err
	}
	united := make([]any, 0, len(desired)+len(live))
	for _, entry := range desired {
		united = append(united, entry)
	}
	for _, entry := range live {
		if !slices.ContainsFunc(desired, func(d map[string]any) bool { return explore.Equal(d[key], entry[key]) }) {
			united = append(united, (&unstructured.Unstructured{Object: entry}).DeepCopy().Object)
		}
	}
	return setList(into, united, path...)
}

// setList writes a list without copying it.
func setList(into map[string]any, list []any, path ...string) error {
	for _, key := range path[:len(path)-1] {
		child, ok := into[key].(map[string]any)
		if !ok {
			if into[key] != nil {
				return fmt.Errorf("%s of %v is a %T, not a map", key, path, into[key])
			}
			child = map[string]any{}
			into[key] = child
		}
		into = child
	}
	into[path[len(path)-1]] = list
	return nil
}

// number is a whole number, whatever decoder made it.
func number(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}
