package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// Removal is what came of deleting one object.
type Removal struct {
	ID ID
	// Done is set when kudo has nothing left to delete: the object is deleted, or is left alone.
	Done bool
	// ForeignOwner names the owner of a foreign object that was left alone.
	ForeignOwner string
	// KeepAnnotated is set when the object is annotated to be kept, and was left alone.
	KeepAnnotated bool
	// Waiting says what delays the deletion of the object.
	Waiting string
	Err     error
}

// Delete deletes those of the objects that are ours, with their dependents first, and says which no longer exist.
// Foreign objects, those that are kept, and unknown kinds are nothing to do (engine rule 11).
func (e *Engine) Delete(ctx context.Context, objs []*unstructured.Unstructured, o Options) []Removal {
	out := make([]Removal, len(objs))
	for i, obj := range objs {
		out[i] = e.deleteOne(ctx, obj, o)
		out[i].ID = IDOf(obj)
	}
	return out
}

func (e *Engine) deleteOne(ctx context.Context, obj *unstructured.Unstructured, o Options) Removal {
	resource, err := e.Resource(obj)
	if meta.IsNoMatchError(err) {
		return Removal{Done: true}
	}
	if err != nil {
		return Removal{Err: e.Classify(ctx, obj, err)}
	}
	live, err := GetOrNil(ctx, resource, obj.GetName())
	switch {
	case err != nil:
		return e.notRemoved(ctx, obj, err)
	case live == nil:
		return Removal{Done: true}
	}
	if claim, owner := o.Claim(ctx, live); claim != Ours {
		return Removal{Done: true, ForeignOwner: owner}
	}
	if isKept(live) {
		return Removal{Done: true, KeepAnnotated: true}
	}
	waiting := fmt.Sprintf("%s is being deleted%s", IDOf(obj), Finalizers(live))
	if live.GetDeletionTimestamp() != nil {
		return Removal{Waiting: waiting}
	}
	uid, propagation := live.GetUID(), propagation(obj)
	err = resource.Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierror.IsObjectNotFound(err) && !apierrors.IsConflict(err) {
		return e.notRemoved(ctx, obj, err)
	}
	refused := err
	e.mirror.Watch(ctx, obj.GroupVersionKind())
	live, err = GetOrNil(ctx, resource, obj.GetName())
	switch {
	case err == nil && live == nil:
		return Removal{Done: true}
	case apierrors.IsConflict(refused) && err == nil && live.GetUID() == uid && live.GetDeletionTimestamp() == nil: // nothing took its place
		return e.notRemoved(ctx, obj, refused)
	}
	return Removal{Waiting: waiting}
}

// propagation is foreground, so that what an object has made is deleted before it; but not for Instances, whose cleanup
// plan needs what they own.
func propagation(obj *unstructured.Unstructured) metav1.DeletionPropagation {
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// notRemoved says what an error means for a removal: a kind that no longer exists has taken its objects along.
func (e *Engine) notRemoved(ctx context.Context, obj *unstructured.Unstructured, err error) Removal {
	verdict := e.Classify(ctx, obj, err)
	if apierrors.IsNotFound(err) && !apierror.IsObjectNotFound(err) && IsFatal(verdict) {
		return Removal{Done: true}
	}
	return Removal{Err: verdict}
}
