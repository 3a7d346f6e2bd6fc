package helmrelease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/yamldoc"
)

// What a release may hold in all: in its manifest, its hooks and the folder crds of its chart together.
const (
	// maxObjects is the number of objects.
	maxObjects = 2000
	// maxValues is the number of values, with those that aliases repeat.
	maxValues = 2_000_000
	// maxText is how many bytes the objects take as text, roughly. An alias repeats a long text as well as a short one.
	maxText = 2 * MaxContent
)

// budget counts what the objects of a release take. The bounds of yamldoc are those of one document, of which a release has many.
type budget struct {
	objects, values, text int
}

// take counts a value at a depth of its document, and returns an error beyond the bounds. A line of a template begins with two spaces
// for each level.
func (b *budget) take(value any, depth int) error {
	b.values++
	b.text += 2 * depth
	switch v := value.(type) {
	case string:
		b.text += len(v)
	case []any:
		for _, item := range v {
			if err := b.take(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			b.text += len(key)
			if err := b.take(item, depth+1); err != nil {
				return err
			}
		}
	}
	switch {
	case b.values > maxValues:
		return fmt.Errorf("the release has more than %d values once aliases are expanded", maxValues)
	case b.text > maxText:
		return fmt.Errorf("the objects of the release take more than %d bytes once aliases are expanded", maxText)
	}
	return nil
}

// parseObjects returns the objects of a manifest in its order, with those of lists in place of the lists.
func (b *budget) parseObjects(what, manifest string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for root, err := range yamldoc.Documents(manifest) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		value, _, err := yamldoc.Value(root)
		if err == nil {
			err = b.take(value, 1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if value == nil {
			continue
		}
		if out, err = b.appendObjects(out, value); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return out, nil
}

// appendObjects appends an object, or those of a list.
func (b *budget) appendObjects(to []*unstructured.Unstructured, value any) ([]*unstructured.Unstructured, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("document %d is no object", len(to)+1)
	}
	obj := &unstructured.Unstructured{Object: fields}
	if items, isList := fields["items"].([]any); isList && strings.HasSuffix(obj.GetKind(), "List") {
		for _, item := range items {
			var err error
			if to, err = b.appendObjects(to, item); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
		return nil, fmt.Errorf("object %d (%s %s) lacks its apiVersion, kind or name", len(to)+1, obj.GetKind(), obj.GetName())
	}
	if b.objects++; b.objects > maxObjects {
		return nil, fmt.Errorf("the release has more than %d objects", maxObjects)
	}
	return append(to, obj), nil
}

// decodeList decodes a list of JSON one entry at a time, and refuses more entries than a limit before it decodes them: an entry
// takes many times the bytes of its text.
func decodeList[T any](data []byte, limit int, what string) ([]T, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	begin, err := decoder.Token()
	if err != nil || begin == nil {
		return nil, err
	}
	if begin != json.Delim('[') {
		return nil, fmt.Errorf("%s are no list", what)
	}
	var out []T
	for decoder.More() {
		if len(out) == limit {
			return nil, fmt.Errorf("more than %d %s", limit, what)
		}
		var entry T
		if err := decoder.Decode(&entry); err != nil {
			return nil, err
		}
		out = append(out, entry)
	}
	return out, nil
}
