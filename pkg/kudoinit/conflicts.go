package kudoinit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Conflict is a field that someone else has set, and that init would set to another value.
type Conflict struct {
	// Object is its kind and name.
	Object string
	// Field is its path, such as spec.replicas.
	Field string
	// Live is its value, Wanted that of init, as YAML in one line; By is who has set it, by the name of the field manager.
	Live, Wanted, By string
	// Keep is the flag that keeps the live value; empty if there is none.
	Keep string
}

// Error implements error.
func (e *Conflict) Error() string {
	keep := ""
	if e.Keep != "" {
		keep = " Keep it: " + e.Keep + "."
	}
	return fmt.Sprintf("%s: %s is %s, set by %s; init would set %s.%s Take it: --force-conflicts", e.Object, e.Field, e.Live, e.By,
		e.Wanted, keep)
}

// yielded are the fields of the Deployment that init leaves to other clients that have set them, such as autoscalers, unless the Values set
// them. Each maps to the key of the Values.
var yielded = map[string]string{
	".spec.replicas": "replicas",
	`.spec.template.spec.containers[name="manager"].resources.requests.cpu`:    "resources.requests.cpu",
	`.spec.template.spec.containers[name="manager"].resources.requests.memory`: "resources.requests.memory",
	`.spec.template.spec.containers[name="manager"].resources.limits.cpu`:      "resources.limits.cpu",
	`.spec.template.spec.containers[name="manager"].resources.limits.memory`:   "resources.limits.memory",
}

// keys are other fields that a flag keeps.
var keys = map[string]string{
	`.spec.template.spec.containers[name="manager"].image`:           "image",
	`.spec.template.spec.containers[name="manager"].imagePullPolicy`: "imagePullPolicy",
	".spec.template.spec.priorityClassName":                          "priorityClassName",
}

// isContested reports whether a client besides init and the API server has set fields of an object that init has applied before. An object
// that init has never applied is taken over as a whole.
func isContested(live *unstructured.Unstructured) bool {
	applied, others := false, false
	for _, entry := range live.GetManagedFields() {
		switch {
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply:
			applied = true
		case entry.Subresource != "status": // autoscalers write the subresource scale
			others = true
		}
	}
	return applied && others
}

// isTuned reports whether administrators and other controllers may change objects of this kind. Objects of other kinds decide what is safe,
// so that init resets them.
func isTuned(obj *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Deployment", "Service", "Namespace"}, obj.GetKind())
}

// argsField is the list of the manager's arguments. ForeignArgs have been decided upon before.
const argsField = `.spec.template.spec.containers[name="manager"].args`

// resolve removes the yielded fields from an object that others have set and that the Values do not set, and returns the other conflicts.
// force is set if the arguments of the manager are in conflict: a user has decided about these before.
func resolve(ctx context.Context, c client.Client, obj, live *unstructured.Unstructured,
	values Values) (conflicts []error, force bool, err error) {
	for {
		causes, err := dryRun(ctx, c, obj)
		if err != nil {
			return nil, false, err
		}
		conflicts, force = nil, false
		left := false
		for _, cause := range causes {
			if cause.Field == argsField {
				force = true
				continue
			}
			if key := yielded[cause.Field]; obj.GetKind() == "Deployment" && key != "" && !values.has(key) {
				if removeField(obj.Object, parsePath(cause.Field)) { // else the next dry run would have the same answer
					left = true
					continue
				}
			}
			conflicts = append(conflicts, newConflict(obj, live, cause))
		}
		if !left {
			return conflicts, force, nil
		}
	}
}

// dryRun applies an object in a dry run without force, and returns the fields in conflict, sorted by path. The API server returns them in
// random order.
func dryRun(ctx context.Context, c client.Client, obj *unstructured.Unstructured) ([]metav1.StatusCause, error) {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(manager), client.DryRunAll)
	var status apierrors.APIStatus
	if err == nil || !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil, refuseDenied(err)
	}
	causes := slices.DeleteFunc(status.Status().Details.Causes,
		func(c metav1.StatusCause) bool { return c.Type != metav1.CauseTypeFieldManagerConflict })
	if len(causes) == 0 {
		return nil, err
	}
	slices.SortFunc(causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	return causes, nil
}

func newConflict(obj, live *unstructured.Unstructured, cause metav1.StatusCause) *Conflict {
	path := parsePath(cause.Field)
	name := strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
	value := fieldAt(live.Object, path)
	out := &Conflict{
		Object: obj.GetKind() + " " + name, Field: strings.TrimPrefix(cause.Field, "."), By: fieldManagerOf(cause.Message),
		Live: oneLine(value), Wanted: oneLine(fieldAt(obj.Object, path)),
	}
	key := yielded[cause.Field]
	if key == "" {
		key = keys[cause.Field]
	}
	if key != "" && value != nil && obj.GetKind() == "Deployment" {
		out.Keep = fmt.Sprintf("--set %s=%v", key, value)
	}
	return out
}

// has reports whether a key, given with dots, is set.
func (v Values) has(key string) bool {
	text, err := yaml.Marshal(v)
	tree := map[string]any{}
	if err != nil || yaml.Unmarshal(text, &tree) != nil {
		return false
	}
	_, found, _ := unstructured.NestedFieldNoCopy(tree, strings.Split(key, ".")...)
	return found
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// fieldManagerOf returns the field manager that the API server's message names: conflict with "kubectl" using apps/v1.
func fieldManagerOf(message string) string {
	if found := quoted.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return "another field manager"
}

// oneLine shows a value in at most a line.
func oneLine(value any) string {
	const most = 200
	if value == nil {
		return "not set"
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	out := strings.Join(strings.Fields(string(text)), " ")
	if len(out) > most {
		out = strings.ToValidUTF8(out[:most], "") + "…"
	}
	return out
}

// pathElement is a field of an object, or an element of a list: the one whose fields have some values.
type pathElement struct {
	field string
	keys  map[string]string
}

var pathPart = regexp.MustCompile(`\.([^.\[]+)|\[((?:[^\]"]|"[^"]*")*)\]`)

// parsePath reads a path as the API server writes it: .spec.template.spec.containers[name="manager"].image.
func parsePath(path string) []pathElement {
	var out []pathElement
	for _, part := range pathPart.FindAllStringSubmatch(path, -1) {
		if part[1] != "" {
			out = append(out, pathElement{field: part[1]})
			continue
		}
		element := pathElement{keys: map[string]string{}}
		for _, pair := range strings.Split(part[2], ",") {
			key, value, _ := strings.Cut(pair, "=")
			element.keys[key] = strings.Trim(value, `"`)
		}
		out = append(out, element)
	}
	return out
}

// fieldAt returns the value at a path, or nil if there is none. The API server does not escape the dots of a key such as that of a label,
// so that several elements may be one key.
func fieldAt(value any, path []pathElement) any {
	for n := 0; n < len(path); n++ {
		element := path[n]
		switch at := value.(type) {
		case map[string]any:
			key, found := element.field, false
			for value, found = at[key]; !found && n+1 < len(path) && path[n+1].keys == nil; value, found = at[key] {
				n++
				key += "." + path[n].field
			}
		case []any:
			n := slices.IndexFunc(at, func(item any) bool {
				fields, _ := item.(map[string]any)
				for key, want := range element.keys {
					if fmt.Sprint(fields[key]) != want {
						return false
					}
				}
				return len(element.keys) > 0
			})
			if n < 0 {
				return nil
			}
			value = at[n]
		default:
			return nil
		}
	}
	return value
}

// removeField removes the field at a path, and reports whether it was there.
func removeField(obj map[string]any, path []pathElement) bool {
	parent, _ := fieldAt(obj, path[:len(path)-1]).(map[string]any)
	name := path[len(path)-1].field
	_, found := parent[name]
	delete(parent, name)
	return found
}
