package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// isKept reports whether a live object is annotated to be kept.
func isKept(live *unstructured.Unstructured) bool {
	return v1beta1.CanBeKept(live.GroupVersionKind().GroupKind()) && v1beta1.IsKept(live.GetAnnotations())
}

// controllerOf returns the Instance that controls a rendered object; nil if none does.
func controllerOf(body *unstructured.Unstructured) *metav1.OwnerReference {
	if controller := metav1.GetControllerOfNoCopy(body); controller != nil && v1beta1.OwnedBy(*controller, "Instance") {
		return controller
	}
	return nil
}

// withoutController returns a copy of a rendered object that the Instance does not control.
func withoutController(body *unstructured.Unstructured) *unstructured.Unstructured {
	out, controller := body.DeepCopy(), controllerOf(body)
	if controller == nil {
		return out
	}
	owners := slices.DeleteFunc(out.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == controller.UID })
	if out.SetOwnerReferences(owners); len(owners) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "ownerReferences")
	}
	return out
}

// hasOwner reports whether an object has an owner.
func hasOwner(live *unstructured.Unstructured, owner types.UID) bool {
	return slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner })
}

// isControlled reports whether the Instance that controls a rendered object is an owner of the live one if, and only if, it has to be.
func isControlled(live, body *unstructured.Unstructured) bool {
	controller := controllerOf(body)
	return controller == nil || hasOwner(live, controller.UID) != isKept(live)
}

// IsKeptWithInstance reports whether a live object is to be kept, but would be deleted with an Instance.
func IsKeptWithInstance(live *unstructured.Unstructured) bool {
	return isKept(live) && slices.ContainsFunc(live.GetOwnerReferences(),
		func(o metav1.OwnerReference) bool { return v1beta1.OwnedBy(o, "Instance") })
}

// IsKeptWithOwner reports whether a live object is to be kept, but would be deleted with an owner.
func IsKeptWithOwner(live *unstructured.Unstructured, owner types.UID) bool {
	return isKept(live) && hasOwner(live, owner)
}

// RemoveOwner takes an owner off a live object, so that it stays when the owner is deleted, and returns the new record of the object, in
// which nothing changes but the fields that the manager does not own any more: what others have changed is still seen. The write is bound
// to the state that was seen: a conflict is an error.
func (e *Engine) RemoveOwner(ctx context.Context, live *unstructured.Unstructured, owner types.UID, manager string,
	record Record) (Record, error) {
	resource, err := e.Resource(live)
	if err != nil {
		return record, err
	}
	owners := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(o metav1.OwnerReference) bool { return o.UID == owner })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "ownerReferences": owners,
	}})
	if err != nil {
		return record, err
	}
	written, err := resource.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return record, err
	}
	before, after := e.digest(live, manager), digestOf(ownerships(written), manager)
	if record.Version == RecordOf(live, "").Version {
		record.Version = RecordOf(written, "").Version
	}
	record.Fields = withDifference(record.Fields, before, after)
	e.mirror.RecordWrite(written)
	return record, nil
}

// withDifference adds what came to a digest, or was lost of it, between two others. It is the digest where one of them is not known.
func withDifference(digest, before, after string) string {
	sum, err := strconv.ParseUint(digest, 16, 64)
	first, errFirst := strconv.ParseUint(before, 16, 64)
	second, errSecond := strconv.ParseUint(after, 16, 64)
	if err != nil || errFirst != nil || errSecond != nil {
		return digest
	}
	return strconv.FormatUint(sum+second-first, 16)
}
