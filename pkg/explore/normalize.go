package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Normalize gives a checked answer the form in which the chain passes it on, whatever layer it came from:
//
//	Dependencies        a set: sorted, equal ones once
//	StatusAggregating   the object of the request with the status of the answer
//
// It returns a warning for each part of the answer that is dropped.
func Normalize(r Request, a *Answer) (ignored []string) {
	switch r.Operation {
	case Dependencies:
		a.Dependencies = SortDependencies(a.Dependencies)
	case StatusAggregating:
		ignored = changedOutsideStatus(r.Object.Object, a.Object.Object)
		object := r.Object.DeepCopy()
		if status, there := a.Object.Object["status"]; there {
			object.Object["status"] = status
		} else {
			delete(object.Object, "status")
		}
		a.Object = object
	}
	return ignored
}

// changedOutsideStatus names the fields at the top, and those of the identity, that an aggregation has changed beside status.
func changedOutsideStatus(before, after map[string]any) []string {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var found []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := withoutGeneration(key, before[key]), withoutGeneration(key, after[key])
		switch {
		case key == "status" || Equal(was, is):
		case isDeepEmpty(is):
			found = append(found, fmt.Sprintf("%s is missing in the result: only status is taken", key))
		default:
			found = append(found, fmt.Sprintf("%s is changed in the result: only status is taken", key))
		}
	}
	return found
}

// withoutGeneration is metadata without its generation: scripts that sum up statuses set one that is missing to 0.
func withoutGeneration(key string, value any) any {
	metadata, ok := value.(map[string]any)
	if key != "metadata" || !ok {
		return value
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "generation")
	return metadata
}

// SortDependencies returns dependencies as a set: in the order of apiVersion, kind, namespace, name and selector, each once. The list
// that is passed stays as it is.
func SortDependencies(list []v1alpha1.DependentObjectReference) []v1alpha1.DependentObjectReference {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, compareDependencies)
	return slices.CompactFunc(sorted, func(a, b v1alpha1.DependentObjectReference) bool { return compareDependencies(a, b) == 0 })
}

func compareDependencies(a, b v1alpha1.DependentObjectReference) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(selectorText(a), selectorText(b)))
}

// selectorText is the selector by its value: an empty list or map of it equals an absent one. No selector comes before one that
// matches everything.
func selectorText(d v1alpha1.DependentObjectReference) string {
	if d.LabelSelector == nil {
		return ""
	}
	text, err := json.Marshal(d.LabelSelector)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
