package karmada

import (
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// at returns a field of an object, or nil if it is absent.
func at(object map[string]any, fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil {
		return nil
	}
	return value
}

func textAt(object map[string]any, fields ...string) string {
	out, _ := at(object, fields...).(string)
	return out
}

func list(value any) []any {
	out, _ := value.([]any)
	return out
}

// integer returns a whole number of JSON.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) < 1<<53
	}
	return 0, false
}

// conditionOf returns a condition of an object, or nil.
func conditionOf(object map[string]any, kind string) map[string]any {
	for _, element := range list(at(object, "status", "conditions")) {
		if condition, _ := element.(map[string]any); textAt(condition, "type") == kind {
			return condition
		}
	}
	return nil
}

// bindingInstance returns the Instance that a ResourceBinding is for. The name is "" if it is for another kind.
func bindingInstance(binding *unstructured.Unstructured) types.NamespacedName {
	version, err := schema.ParseGroupVersion(textAt(binding.Object, "spec", "resource", "apiVersion"))
	if err != nil || version.Group != v1beta1.GroupVersion.Group || textAt(binding.Object, "spec", "resource", "kind") != instanceKind {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: binding.GetNamespace(), Name: textAt(binding.Object, "spec", "resource", "name")}
}

// normal returns a JSON value without its empty parts, and with one type for numbers, so that equal meanings are equal values.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if field = normal(field); field != nil {
				out[key] = field
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, 0, len(v))
		for _, element := range v {
			out = append(out, normal(element))
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	if n, ok := integer(value); ok {
		return n
	}
	return value
}

// covers reports whether a live value has each field that is wanted. Others may have set more fields, and lists must be equal.
func covers(live, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(normal(live), normal(want))
	}
	object, _ := live.(map[string]any)
	for key, field := range fields {
		if !covers(object[key], field) {
			return false
		}
	}
	return true
}
