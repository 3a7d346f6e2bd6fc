package apply

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// oldManager is the field manager that KUDO up to v0.19 wrote as: the name of its program.
const oldManager = "manager"

// migrate moves the fields that KUDO v0.19 wrote into an object to our field manager, once, so that what leaves the
// template leaves the object (engine rule 23). Other programs are called "manager" too: only the fields that stand in
// KUDO's own last-applied-configuration move. It returns the object as it is then.
func migrate(ctx context.Context, resource dynamic.ResourceInterface, name, manager string) (*unstructured.Unstructured, error) {
	live, err := GetOrNil(ctx, resource, name)
	if err != nil || live == nil {
		return live, err
	}
	fields, err := migrated(live, manager)
	if err != nil {
		return nil, fmt.Errorf("adopt the fields that KUDO wrote: %w", err)
	}
	if equality.Semantic.DeepEqual(fields, live.GetManagedFields()) {
		return live, nil
	}
	// The resourceVersion makes a change in between a conflict, after which the object is read again.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.GetResourceVersion(), "managedFields": fields},
	})
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
}

// migrated are the managed fields of an object after the migration.
func migrated(live *unstructured.Unstructured, manager string) ([]metav1.ManagedFieldsEntry, error) {
	applied := map[string]any{}
	if err := json.Unmarshal([]byte(live.GetAnnotations()[v1beta1.LastAppliedAnnotation]), &applied); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", v1beta1.LastAppliedAnnotation, err)
	}
	marked, _ := applied["metadata"].(map[string]any)
	if marked == nil {
		marked = map[string]any{}
		applied["metadata"] = marked
	}
	annotations, _ := marked["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[v1beta1.LastAppliedAnnotation] = "" // the annotation itself goes with the migration
	marked["annotations"] = annotations
	var out []metav1.ManagedFieldsEntry
	ours := map[string]*fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != oldManager || entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" ||
			entry.FieldsV1 == nil {
			out = append(out, entry)
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, err
		}
		moved := fieldpath.NewSet()
		set.Iterate(func(p fieldpath.Path) {
			if pathExists(applied, p) {
				moved.Insert(p.Copy())
			}
		})
		if ours[entry.APIVersion] == nil {
			ours[entry.APIVersion] = fieldpath.NewSet()
		}
		ours[entry.APIVersion] = ours[entry.APIVersion].Union(moved)
		rest := set.Difference(moved)
		if rest.Empty() {
			continue
		}
		text, err := rest.ToJSON()
		if err != nil {
			return nil, err
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		out = append(out, entry)
	}
	return join(out, ours, manager)
}

// join adds fields to the entries of our manager.
func join(entries []metav1.ManagedFieldsEntry, ours map[string]*fieldpath.Set, manager string) ([]metav1.ManagedFieldsEntry, error) {
	for version, set := range ours {
		if set.Empty() {
			continue
		}
		entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			FieldsType: "FieldsV1"}
		at := -1
		for i, e := range entries {
			if e.Manager == manager && e.Operation == entry.Operation && e.APIVersion == version && e.Subresource == "" && e.FieldsV1 != nil {
				known := &fieldpath.Set{}
				if err := known.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
					return nil, err
				}
				entry, at, set = e, i, set.Union(known)
			}
		}
		text, err := set.ToJSON()
		if err != nil {
			return nil, err
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		if at >= 0 {
			entries[at] = entry
		} else {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// pathExists reports whether a path leads to something in an object.
func pathExists(object any, path fieldpath.Path) bool {
	for _, element := range path {
		var found bool
		if object, found = descend(object, element); !found {
			return false
		}
	}
	return true
}

// descend returns the part of a value that one element of a path leads to, and whether there is one.
func descend(value any, element fieldpath.PathElement) (any, bool) {
	if element.FieldName != nil {
		m, _ := value.(map[string]any)
		part, found := m[*element.FieldName]
		return part, found
	}
	list, _ := value.([]any)
	if element.Index != nil {
		if *element.Index >= len(list) {
			return nil, false
		}
		return list[*element.Index], true
	}
	for _, item := range list {
		if matches(item, element) {
			return item, true
		}
	}
	return nil, false
}

// matches reports whether an entry of a list is the one that a path element names: by its keys, or by its value. Keys that
// the server sets by default, such as the protocol of a port, need not be there.
func matches(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return value.Equals(value.NewValueInterface(item), *element.Value)
	}
	m, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		if has, set := m[key.Name]; set && !value.Equals(value.NewValueInterface(number(has)), key.Value) {
			return false
		}
	}
	return true
}

// number makes whole numbers of JSON comparable with those of paths.
func number(v any) any {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return int64(f)
	}
	return v
}
