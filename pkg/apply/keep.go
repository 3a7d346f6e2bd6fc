package apply

import (
	"context"
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

// controllerOf returns the Instance that controls a rendered object, or nil if none does.
func controllerOf(body *unstructured.Unstructured) *metav1.OwnerReference {
	if controller := metav1.GetControllerOfNoCopy(body); controller != nil && v1beta1.OwnedBy(*controller, "Instance") {
		return controller
	}
	return nil
}

// withoutController returns a copy of a rendered object that no Instance controls.
func withoutController(body *unstructured.Unstructured) *unstructured.Unstructured {
	out := body.DeepCopy()
	if controller := controllerOf(body); controller != nil {
		out.SetOwnerReferences(v1beta1.OtherOwners(body, controller.UID))
	}
	return out
}

// hasRightController reports whether the controller of a live object is right: the Instance that controls the rendered object owns the
// live one, unless the live one is kept.
func hasRightController(live, body *unstructured.Unstructured) bool {
	controller := controllerOf(body)
	return controller == nil || v1beta1.HasOwner(live, controller.UID) != isKept(live)
}

// wasLeft reports whether a live object was left by an earlier owner of the name: the field manager has written it, but not in the run
// that the body is of, and neither the inventory nor its owners name it. What this run has written is missing in the inventory if the
// commit after the write has failed.
func (e *Engine) wasLeft(live, body *unstructured.Unstructured, o Options) bool {
	if live == nil || o.Known[IDOf(live)].UID == live.GetUID() || e.digest(live, o.Manager) == "" {
		return false
	}
	if run := body.GetAnnotations()[v1beta1.PlanUIDAnnotation]; run != "" && live.GetAnnotations()[v1beta1.PlanUIDAnnotation] == run {
		return false
	}
	controller := controllerOf(body)
	return controller == nil || !v1beta1.HasOwner(live, controller.UID)
}

// IsKeptByInstance reports whether a live object is annotated to be kept, though an Instance owns it, with which it would be deleted.
func IsKeptByInstance(live *unstructured.Unstructured) bool {
	return isKept(live) && slices.ContainsFunc(live.GetOwnerReferences(),
		func(o metav1.OwnerReference) bool { return v1beta1.OwnedBy(o, "Instance") })
}

// RemoveOwner removes an owner from a live object that is kept, and returns the new record of the object. In the record, nothing changes
// but the ownership of the removed reference: the manager still finds what other clients have changed. The write is bound to the state
// that was seen: a conflict is an error.
func (e *Engine) RemoveOwner(ctx context.Context, live *unstructured.Unstructured, owner types.UID, manager string,
	record Record) (Record, error) {
	resource, err := e.Resource(live)
	if err != nil {
		return record, err
	}
	written, err := resource.Patch(ctx, live.GetName(), types.MergePatchType, v1beta1.KeepPatch(live, owner),
		metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return record, err
	}
	if record.Version == RecordOf(live, "").Version {
		record.Version = RecordOf(written, "").Version
	}
	record.Fields = addDifference(record.Fields, e.digest(live, manager), digestOf(ownerships(written), manager))
	e.mirror.RecordWrite(written)
	return record, nil
}

// addDifference adds the difference of two digests, after minus before, to a digest. It returns the digest as it was if one of the three is
// not known.
func addDifference(digest, before, after string) string {
	sum, err := strconv.ParseUint(digest, 16, 64)
	first, errFirst := strconv.ParseUint(before, 16, 64)
	second, errSecond := strconv.ParseUint(after, 16, 64)
	if err != nil || errFirst != nil || errSecond != nil {
		return digest
	}
	return strconv.FormatUint(sum+second-first, 16)
}
