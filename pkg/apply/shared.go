package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// changesMetadataOnly reports whether an apply that met conflicts would change nothing but kudo's own metadata: a conflict is also
// about values that mean the same, such as an empty list and the null that the server stores for it. The body is then
// bound to the state that was compared.
func changesMetadataOnly(ctx context.Context, resource dynamic.ResourceInterface, body *unstructured.Unstructured, manager string) bool {
	live, err := GetOrNil(ctx, resource, body.GetName())
	if err != nil || live == nil {
		return false
	}
	after, err := resource.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager, Force: true,
		DryRun: []string{metav1.DryRunAll}})
	if err != nil || after.GetResourceVersion() != live.GetResourceVersion() || !sameContent(after, live) {
		return false
	}
	body.SetResourceVersion(live.GetResourceVersion())
	return true
}

// sameContent compares two states of an object, without its status and what kudo and the server keep in its metadata.
func sameContent(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(content(a), content(b))
}

func content(obj *unstructured.Unstructured) any {
	out := obj.DeepCopy().Object
	delete(out, "status")
	metadata := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedStringMap(out, "metadata", field)
		for key, value := range values {
			if !v1beta1.IsOwnKey(key) {
				metadata[field+"/"+key] = value
			}
		}
	}
	metadata["finalizers"], _, _ = unstructured.NestedSlice(out, "metadata", "finalizers")
	metadata["ownerReferences"], _, _ = unstructured.NestedSlice(out, "metadata", "ownerReferences")
	out["metadata"] = metadata
	return WithoutEmpty(out)
}

// WithoutEmpty drops nulls and empty lists from maps: the server stores one as the other. Empty maps mean something.
func WithoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			list, isList := child.([]any)
			if child == nil || isList && len(list) == 0 {
				delete(v, key)
				continue
			}
			v[key] = WithoutEmpty(child)
		}
	case []any:
		for i := range v {
			v[i] = WithoutEmpty(v[i])
		}
	}
	return value
}
