package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// structures are the functions that build lists and maps. They bound the whole of what they build, since a
// map that holds another one twice, and so on, is small in memory and endless in print; and they keep an order where
// sprig takes that of a Go map, which is random.
var structures = func() template.FuncMap {
	of := sprig.TxtFuncMap()
	result := template.FuncMap{
		"keys": func(dicts ...map[string]any) []string {
			names := []string{}
			for _, dict := range dicts {
				names = append(names, slices.Sorted(maps.Keys(dict))...)
			}
			return names
		},
		"values": func(dict map[string]any) []any {
			values := []any{}
			for _, key := range slices.Sorted(maps.Keys(dict)) {
				values = append(values, dict[key])
			}
			return values
		},
	}
	for _, name := range []string{"list", "tuple", "dict", "set", "append", "push", "mustAppend", "mustPush", "prepend", "mustPrepend",
		"concat", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite", "pluck", "chunk", "mustChunk"} {
		result[name] = boundArguments{of[name]}
	}
	join := of["join"].(func(string, any) string)
	result["join"] = boundArguments{func(separator string, list any) string {
		if items := reflect.ValueOf(list); items.Kind() == reflect.Slice {
			product(items.Len(), len(separator)) // it stands between all items
		}
		return join(separator, list)
	}}
	for _, name := range []string{"cat", "quote", "squote", "toString", "toStrings", "deepCopy", "mustDeepCopy", "sortAlpha"} {
		result[name] = boundArguments{of[name]}
	}
	return result
}()

// size is about the bytes of a value with all that it holds. It stops counting beyond the bound, and refuses a map that holds itself.
func size(value any, depth int) int {
	if depth > yamldoc.MaxDepth {
		panic(bound("a value is nested deeper than %d levels", yamldoc.MaxDepth))
	}
	const each = 16
	total := each
	switch v := value.(type) {
	case nil, bool, int, int64, float64:
	case string:
		total += len(v)
	case []string:
		for _, item := range v {
			total += each + len(item)
		}
	case []any:
		for _, item := range v {
			if total += size(item, depth+1); total > MaxValue {
				return total
			}
		}
	case map[string]any:
		for key, item := range v {
			if total += len(key) + size(item, depth+1); total > MaxValue {
				return total
			}
		}
	default:
		total += sizeOther(reflect.ValueOf(value), depth)
	}
	return total
}

// sizeOther is size for the types that few functions make.
func sizeOther(v reflect.Value, depth int) int {
	total := 0
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if total += size(v.Index(i).Interface(), depth+1); total > MaxValue {
				return total
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if total += len(fmt.Sprint(key)) + size(v.MapIndex(key).Interface(), depth+1); total > MaxValue {
				return total
			}
		}
	case reflect.String:
		total = v.Len()
	}
	return total
}
