package explore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/text"
)

// Check refuses answers that no layer may give: without the value, with another identity than the object's, with
// values in places that the operation must not write, or with a negative number of replicas.
//
//	Packing            anything but the identity
//	Retaining          anything but the identity; only paths that the desired or the observed object has
//	ReplicaRevising    anything but identity and status
//	StatusAggregating  anything: only status is taken (see Normalize)
func Check(r Request, a *Answer) error {
	switch r.Operation {
	case Replica:
		if a.Replicas < 0 {
			return fmt.Errorf("%d replicas: must be 0 or more", a.Replicas)
		}
		return nil
	case Dependencies:
		for i, d := range a.Dependencies {
			if d.APIVersion == "" || d.Kind == "" || d.Name == "" && d.LabelSelector == nil {
				return fmt.Errorf("dependency %d (%s %s %q): apiVersion, kind, and name or labelSelector must be set", i, d.APIVersion, d.Kind, d.Name)
			}
		}
		return nil
	case Components:
		return checkComponents(a.Components)
	case Healthy:
		if a.Healthy && a.Failed {
			return fmt.Errorf("the object is healthy and failed: it must be one of both")
		}
		return nil
	case Status:
		return checkStatus(a.Status)
	}
	if a.Object == nil || a.Object.Object == nil {
		return fmt.Errorf("no object was returned")
	}
	if r.Operation == StatusAggregating {
		return nil
	}
	if err := sameIdentity(r.Object, a.Object); err != nil {
		return err
	}
	switch r.Operation {
	case ReplicaRevising:
		if !Equal(r.Object.Object["status"], a.Object.Object["status"]) {
			return fmt.Errorf("status was changed: the operation must not write it")
		}
	case Retaining:
		return onlyPathsOf(r.Object, r.Observed, a.Object)
	}
	return nil
}

// checkStatus wants an object, or nothing: the API server refuses the status of an Instance that shows any other.
func checkStatus(status any) error {
	what := "a value"
	switch status.(type) {
	case nil, map[string]any:
		return nil
	case []any:
		what = "a list"
	case string:
		what = "a text"
	case bool:
		what = "a boolean"
	case int64, float64:
		what = "a number"
	}
	return fmt.Errorf("the status is %s: it must be an object", what)
}

// checkComponents wants names, each once: answers are compared, and summed up, by them.
func checkComponents(components []v1alpha1.Component) error {
	seen := map[string]bool{}
	for i, c := range components {
		switch {
		case c.Name == "" || len(c.Name) > v1alpha1.MaxComponentName:
			return fmt.Errorf("component %d: name %s must have 1 to %d characters", i, text.Quote(c.Name, 64), v1alpha1.MaxComponentName)
		case seen[c.Name]:
			return fmt.Errorf("component %d: name %q is that of another component: names must be unique", i, c.Name)
		case c.Replicas < 0:
			return fmt.Errorf("component %q: %d replicas: must be 0 or more", c.Name, c.Replicas)
		}
		seen[c.Name] = true
	}
	return nil
}

// identity are the fields that no operation changes.
var identity = [...][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"},
	{"metadata", "generateName"}}

func sameIdentity(before, after *unstructured.Unstructured) error {
	for _, path := range identity {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
		if !reflect.DeepEqual(was, is) {
			return fmt.Errorf("%s was changed from %v to %v: the identity of an object must stay", path[len(path)-1], quote(was), quote(is))
		}
	}
	return nil
}

func quote(value any) string {
	if value == nil {
		return "nothing"
	}
	return fmt.Sprintf("%q", fmt.Sprint(value))
}

// Equal compares JSON values. Empty maps and lists equal absent ones, as in the Kubernetes API, and numbers go by
// their value.
func Equal(a, b any) bool {
	if empty(a) && empty(b) {
		return true
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalMaps(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func equalMaps(a, b map[string]any) bool {
	for key, value := range a {
		if !Equal(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, known := a[key]; !known && !empty(value) {
			return false
		}
	}
	return true
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// isDeepEmpty values have nothing in them, at any depth.
func isDeepEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			if !isDeepEmpty(child) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(entry any) bool { return !isDeepEmpty(entry) })
	}
	return value == nil
}

// number is comparable by ==: whole numbers are int64 whatever type they came in, others float64.
func number(value any) (any, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		if whole := int64(n); float64(whole) == n && n < 1<<63 && n >= -1<<63 {
			return whole, true
		}
		return n, true
	}
	return nil, false
}

// onlyPathsOf refuses values in paths that neither of two objects has. Entries of lists count as one: a list may be
// put together from both, in any order.
func onlyPathsOf(desired, observed, result *unstructured.Unstructured) error {
	if path := firstUnknownPath(result.Object, []any{desired.Object, observed.Object}, ""); path != "" {
		return fmt.Errorf("%s is in neither the desired nor the observed object: retaining must not add fields", path)
	}
	return nil
}

// firstUnknownPath returns the first path (in order) of a value that none of the others has; "" if there is none.
func firstUnknownPath(value any, others []any, path string) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range unlike(v, others) {
			if isDeepEmpty(v[key]) {
				continue
			}
			where, below := path+"."+key, fieldOf(others, key)
			if len(below) == 0 {
				return where
			}
			if found := firstUnknownPath(v[key], below, where); found != "" {
				return found
			}
		}
	case []any:
		return strangerInList(v, others, path)
	}
	return ""
}

// fieldOf returns the values of a field in those of the given values that are maps and have it.
func fieldOf(values []any, key string) []any {
	var out []any
	for _, value := range values {
		m, _ := value.(map[string]any)
		if child, ok := m[key]; ok {
			out = append(out, child)
		}
	}
	return out
}

// unlike are the keys of a map, in order, whose values are not simply those of one of the others.
func unlike(value map[string]any, others []any) []string {
	var keys []string
	for key, child := range value {
		alike := empty(child)
		for _, o := range others {
			if m, ok := o.(map[string]any); ok && !alike {
				was, there := m[key]
				alike = there && Equal(child, was)
			}
		}
		if !alike {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// strangerInList first takes out entries that stand in the same place in one of the others, as most do. The rest is
// compared with the shape of all entries together: one by one would be quadratic.
func strangerInList(list []any, others []any, path string) string {
	var all *shape
	for i, entry := range list {
		if isDeepEmpty(entry) || standsAt(i, entry, others) {
			continue
		}
		if all == nil {
			all = shapeOfLists(others)
		}
		if found := all.entries.stranger(entry, indexed(path, i)); found != "" {
			return found
		}
	}
	return ""
}

// standsAt reports whether one of the lists has an equal entry in the same place.
func standsAt(i int, entry any, lists []any) bool {
	return slices.ContainsFunc(lists, func(list any) bool {
		l, _ := list.([]any)
		return i < len(l) && Equal(entry, l[i])
	})
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// shape is the set of paths that some values have.
type shape struct {
	fields  map[string]*shape
	entries *shape
}

// shapeOfLists is the shape of all entries of those values that are lists.
func shapeOfLists(values []any) *shape {
	s := &shape{}
	for _, value := range values {
		if list, ok := value.([]any); ok {
			s.add(list)
		}
	}
	return s
}

func (s *shape) add(value any) {
	switch v := value.(type) {
	case map[string]any:
		if s.fields == nil {
			s.fields = make(map[string]*shape, len(v))
		}
		for key, child := range v {
			if s.fields[key] == nil {
				s.fields[key] = &shape{}
			}
			s.fields[key].add(child)
		}
	case []any:
		if s.entries == nil && len(v) > 0 {
			s.entries = &shape{}
		}
		for _, entry := range v {
			s.entries.add(entry)
		}
	}
}

// stranger returns the first path of a value that is not in the shape. A nil shape has no paths.
func (s *shape) stranger(value any, path string) string {
	if isDeepEmpty(value) {
		return ""
	}
	if s == nil {
		return path
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := s.fields[key].stranger(v[key], path+"."+key); found != "" {
				return found
			}
		}
	case []any:
		for i, entry := range v {
			if found := s.entries.stranger(entry, indexed(path, i)); found != "" {
				return found
			}
		}
	}
	return ""
}
