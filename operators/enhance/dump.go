package enhance

import (
	"encoding/base64"
	"math"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dump writes an object in the exact bytes whose digest KUDO takes: the YAML of yaml.v2, which orders keys its own
// way and folds long lines, of a struct around the sanitized fields.
func dump(object *unstructured.Unstructured) ([]byte, error) {
	fields, err := sanitize(object)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(struct {
		Object map[string]any `yaml:"object"`
	}{fields})
}

// sanitize returns a copy that holds only what a package says, so that a rendered object and its live counterpart
// agree: apiVersion and kind emptied, the server's metadata removed, lists and numbers of metadata emptied.
func sanitize(object *unstructured.Unstructured) (map[string]any, error) {
	copied, err := copyValue(rootOf(object), "", object.Object)
	if err != nil {
		return nil, err
	}
	kind := object.GroupVersionKind()
	fields := copied.(map[string]any)
	fields["apiVersion"], fields["kind"] = "", ""
	delete(fields, "status")

	root := node{object: object, fields: fields}
	metadata, err := root.child("metadata", create)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{
		"namespace", "resourceVersion", "uid", "selfLink", "generation", "generateName",
		"creationTimestamp", "deletionTimestamp", "clusterName",
	} {
		delete(metadata.fields, field)
	}
	metadata.fields["annotations"] = map[string]any{}
	for _, field := range []string{"finalizers", "managedFields", "ownerReferences"} {
		metadata.fields[field] = []any{}
	}
	for _, field := range []string{"deletionGracePeriodSeconds", "remainingItemCount"} {
		metadata.fields[field] = int64(0)
	}
	switch kind {
	case secretKind:
		normalizeSecret(fields)
	case configMapKind:
		normalizeConfigMap(fields)
	}
	return fields, nil
}

// normalizeSecret writes a Secret as the server keeps it: stringData encoded into data, and the type defaulted.
func normalizeSecret(fields map[string]any) {
	if fields["type"] == nil || fields["type"] == "" {
		fields["type"] = "Opaque"
	}
	normalizeBytes(fields, "data")
	if texts, ok := fields["stringData"].(map[string]any); ok {
		data, ok := fields["data"].(map[string]any)
		if !ok {
			data = map[string]any{}
		}
		for key, value := range texts {
			text, _ := value.(string)
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		fields["data"] = data
	}
	delete(fields, "stringData")
	dropEmpty(fields, "data")
}

func normalizeConfigMap(fields map[string]any) {
	normalizeNulls(fields, "data")
	normalizeBytes(fields, "binaryData")
	dropEmpty(fields, "data", "binaryData")
}

// normalizeBytes writes base64 as the server does, without the line breaks that a template may have.
func normalizeBytes(fields map[string]any, field string) {
	normalizeNulls(fields, field)
	data, _ := fields[field].(map[string]any)
	for key, value := range data {
		text, ok := value.(string)
		if !ok {
			continue
		}
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[key] = base64.StdEncoding.EncodeToString(decoded)
		}
	}
}

// normalizeNulls writes a key without a value as the server does: with an empty one.
func normalizeNulls(fields map[string]any, field string) {
	data, _ := fields[field].(map[string]any)
	for key, value := range data {
		if value == nil {
			data[key] = ""
		}
	}
}

// dropEmpty removes maps that the server does not keep, because they hold nothing.
func dropEmpty(fields map[string]any, names ...string) {
	for _, name := range names {
		if data, ok := fields[name].(map[string]any); fields[name] == nil || ok && len(data) == 0 {
			delete(fields, name)
		}
	}
}

// copyValue copies JSON values. Unlike runtime.DeepCopyJSON it takes every kind of number and does not panic; whole
// numbers come out as int64, so that it does not matter how the object was decoded.
func copyValue(at node, field string, value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, item := range value {
			var err error
			if copied[key], err = copyValue(at, join(field, key), item); err != nil {
				return nil, err
			}
		}
		return copied, nil
	case []any:
		copied := make([]any, 0, len(value))
		for _, item := range value {
			item, err := copyValue(at, field+"[]", item)
			if err != nil {
				return nil, err
			}
			copied = append(copied, item)
		}
		return copied, nil
	case nil, string, bool, int64:
		return value, nil
	case int:
		return int64(value), nil
	case int32:
		return int64(value), nil
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value), nil
		}
		return value, nil
	default:
		return nil, at.malformed(field, "is no JSON value, but %T", value)
	}
}
