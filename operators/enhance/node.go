package enhance

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MalformedError says which field of a rendered object is not what it has to be. Retrying does not help: the
// template has to be mended.
type MalformedError struct {
	// Object is the kind and name of the object.
	Object string
	// Field is the path of the field; empty if it is about the object as a whole.
	Field string
	// Problem says what is wrong with it.
	Problem string
}

// Error names the object, the field and the problem.
func (e *MalformedError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s %s", e.Object, e.Problem)
	}
	return fmt.Sprintf("%s: %s %s", e.Object, e.Field, e.Problem)
}

// describe names an object by kind and name, for errors.
func describe(object *unstructured.Unstructured) string {
	kind, name := object.GetKind(), object.GetName()
	if kind == "" {
		kind = "object without a kind"
	}
	if name == "" {
		return kind + " without a name"
	}
	return kind + " " + name
}

// node is a map within an object, with what is needed to name it in an error.
type node struct {
	object *unstructured.Unstructured
	path   string
	fields map[string]any
}

// missing says what becomes of a map that is not there.
type missing int

const (
	refuse missing = iota
	create
)

func rootOf(object *unstructured.Unstructured) node {
	return node{object: object, fields: object.Object}
}

func (n node) pathOf(field string) string { return join(n.path, field) }

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func (n node) malformed(field, format string, args ...any) error {
	return &MalformedError{Object: describe(n.object), Field: n.pathOf(field), Problem: fmt.Sprintf(format, args...)}
}

// child returns the map in a field. A null counts as missing.
func (n node) child(field string, ifMissing missing) (node, error) {
	switch value := n.fields[field].(type) {
	case map[string]any:
		if value != nil {
			return node{n.object, n.pathOf(field), value}, nil
		}
	case nil:
	default:
		return node{}, n.malformed(field, "must be a map, not %s", typeName(value))
	}
	if ifMissing == refuse {
		return node{}, n.malformed(field, "is missing")
	}
	fields := map[string]any{}
	n.fields[field] = fields
	return node{n.object, n.pathOf(field), fields}, nil
}

// list returns the maps of a list; none if the field is missing.
func (n node) list(field string) ([]node, error) {
	var items []any
	switch value := n.fields[field].(type) {
	case []any:
		items = value
	case nil:
	default:
		return nil, n.malformed(field, "must be a list, not %s", typeName(value))
	}
	nodes := make([]node, 0, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		fields, ok := item.(map[string]any)
		if !ok || fields == nil {
			return nil, n.malformed(at, "must be a map, not %s", typeName(item))
		}
		nodes = append(nodes, node{n.object, n.pathOf(at), fields})
	}
	return nodes, nil
}

// text returns the string in a field; "" if it is missing.
func (n node) text(field string) (string, error) {
	switch value := n.fields[field].(type) {
	case string:
		return value, nil
	case nil:
		return "", nil
	default:
		return "", n.malformed(field, "must be a string, not %s", typeName(value))
	}
}

// setStrings adds entries to a map of strings, such as labels.
func (n node) setStrings(field string, values map[string]string) error {
	target, err := n.child(field, create)
	if err != nil {
		return err
	}
	for key, value := range target.fields {
		if value == nil {
			target.fields[key] = "" // as the API server reads it: a parameter without a value
		}
	}
	if bad, ok := firstNonString(target.fields); ok {
		return target.malformed(bad, "must be a string, not %s: put it in quotes", typeName(target.fields[bad]))
	}
	for key, value := range values {
		target.fields[key] = value
	}
	return nil
}

// firstNonString returns the first key, by name, whose value is not a string.
func firstNonString(fields map[string]any) (string, bool) {
	first, found := "", false
	for key, value := range fields {
		if _, ok := value.(string); !ok && (!found || key < first) {
			first, found = key, true
		}
	}
	return first, found
}

// setController puts the Instance into the ownerReferences, unless the object is to be kept, and keeps the others, but no other controller.
func (n node) setController(ctx Context, isKept bool) error {
	refs, err := n.list("ownerReferences")
	if err != nil {
		return err
	}
	kept := make([]any, 0, len(refs)+1)
	for _, ref := range refs {
		if isInstance(ref, ctx) {
			continue
		}
		if isController, _ := ref.fields["controller"].(bool); isController {
			return &MalformedError{Object: describe(n.object), Field: ref.path,
				Problem: "names a controller, but an object of a plan is controlled by its Instance"}
		}
		kept = append(kept, ref.fields)
	}
	if !isKept {
		kept = append(kept, ctx.controller())
	}
	if n.fields["ownerReferences"] = kept; len(kept) == 0 {
		delete(n.fields, "ownerReferences")
	}
	return nil
}

// isInstance reports whether a reference is to our Instance, be it of an earlier life.
func isInstance(ref node, ctx Context) bool {
	apiVersion, _ := ref.fields["apiVersion"].(string)
	group, _ := schema.ParseGroupVersion(apiVersion)
	return group.Group == instanceKind.Group && ref.fields["kind"] == instanceKind.Kind &&
		ref.fields["name"] == ctx.Instance.Name
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case int, int32, int64, float32, float64:
		return "a number"
	default:
		return fmt.Sprintf("%T", value)
	}
}
