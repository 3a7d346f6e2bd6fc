package share

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
)

// Release releases a held object, and deletes it if kudo created it and no other owner holds it. force deletes also an object that Blocked
// would report.
//
//	deleted, or another uid than recorded         nothing to do
//	never managed, or not any more                the holder is removed from the owners: it has been taken over
//	annotated to be kept                          the holder is removed from the owners
//	others own it                                 the holder is removed from the owners
//	owned by the holder alone, or without owner   deleted, bound to the state that was read, and awaited
func (s *Session) Release(ctx context.Context, r v1beta1.HeldResource, force bool) apply.Removal {
	return s.releaseLocked(ctx, r, func(resource dynamic.ResourceInterface, live *unstructured.Unstructured) (*apply.Removal, error) {
		return s.releaseLive(ctx, resource, live, force)
	})
}

// Relinquish releases an object that another client has taken over. If kudo manages the object again, it is left as it is, and Done is not
// set.
func (s *Session) Relinquish(ctx context.Context, r v1beta1.HeldResource) apply.Removal {
	return s.releaseLocked(ctx, r, func(resource dynamic.ResourceInterface, live *unstructured.Unstructured) (*apply.Removal, error) {
		if Managed(live) {
			return &apply.Removal{}, nil
		}
		return s.releaseLive(ctx, resource, live, false)
	})
}

// releaseFunc is one attempt to release a live object. It returns nil if the object must be read again.
type releaseFunc func(dynamic.ResourceInterface, *unstructured.Unstructured) (*apply.Removal, error)

func (s *Session) releaseLocked(ctx context.Context, r v1beta1.HeldResource, try releaseFunc) apply.Removal {
	id := IDOf(r)
	s.locks.LockKey(id.String())
	defer func() { _ = s.locks.UnlockKey(id.String()) }()
	removal := s.releaseObject(ctx, r, try)
	removal.ID = id
	return removal
}

// ReleaseOrphans releases the objects that were joined for a holder that was deleted in the meantime, since no controller would release
// them any more.
func (s *Session) ReleaseOrphans(ctx context.Context, held Inventory, cause error) error {
	if !apierror.IsObjectNotFound(cause) {
		return cause
	}
	for _, r := range slices.Backward(held) {
		if r.UID == "" {
			continue
		}
		if removal := s.Release(context.WithoutCancel(ctx), r, false); removal.Err != nil {
			return errors.Join(cause, removal.Err)
		}
	}
	return cause
}

func (s *Session) releaseObject(ctx context.Context, r v1beta1.HeldResource, try releaseFunc) apply.Removal {
	obj := IDOf(r).Object()
	resource, err := s.objects.Resource(obj)
	if meta.IsNoMatchError(err) {
		err = s.kinds.ExplainNoMatch(ctx, obj, err)
		if apply.IsFatal(err) {
			return apply.Removal{Done: true} // with its definition, the object was deleted too
		}
	}
	if err != nil {
		return apply.Removal{Err: err}
	}
	for range attempts {
		live, err := apply.GetOrNil(ctx, resource, r.Name)
		switch {
		case err != nil:
			return apply.Removal{Err: s.objects.Classify(ctx, obj, err)}
		case live == nil, !s.ours(r, live), r.State == v1beta1.HoldExisting && owned(live, s.holder) < 0:
			return apply.Removal{Done: true}
		case live.GetDeletionTimestamp() != nil:
			return apply.Removal{Waiting: fmt.Sprintf("%s is being deleted%s", IDOf(r), apply.Finalizers(live))}
		}
		left, err := try(resource, live)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierror.IsObjectNotFound(err) {
			return apply.Removal{Err: s.objects.Classify(ctx, obj, err)}
		}
		if err == nil && left != nil {
			return *left
		}
	}
	return apply.Removal{Err: apierrors.NewServerTimeout(v1beta1.Resource(r.Kind), "release", 1)}
}

// ours reports whether the live object is the one that is held: by uid, or, where a crash came before it was recorded,
// by the owner.
func (s *Session) ours(r v1beta1.HeldResource, live *unstructured.Unstructured) bool {
	return r.UID == live.GetUID() || owned(live, s.holder) >= 0
}

// releaseLive leaves or deletes a live object.
func (s *Session) releaseLive(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured,
	force bool) (*apply.Removal, error) {
	place := owned(live, s.holder)
	if !isDeletable(live) {
		if place < 0 {
			return &apply.Removal{Done: true}, s.unfence(ctx, resource, live)
		}
		left, err := s.removeOwner(ctx, resource, live, nil)
		if err == nil {
			err = errors.Join(s.removeGuardOwner(ctx, resource, left), s.unfence(ctx, resource, left))
		}
		return &apply.Removal{Done: true}, err
	}
	other, err := s.otherOwner(ctx, live)
	if err != nil {
		return nil, err
	}
	if other != nil {
		if place < 0 {
			return &apply.Removal{Done: true}, s.unfence(ctx, resource, live)
		}
		left, err := s.removeOwner(ctx, resource, live, other)
		if err == nil {
			err = s.unfence(ctx, resource, left)
		}
		return &apply.Removal{Done: true}, err
	}
	return s.remove(ctx, resource, live, force)
}

// isDeletable reports whether kudo may delete a live object that no owner holds.
func isDeletable(live *unstructured.Unstructured) bool {
	return Managed(live) && !v1beta1.IsKept(live.GetAnnotations())
}

// otherOwner returns an owner besides the holder that still exists, or nil if there is none. An owner that is not an Installation counts
// without being read: another client has added it, so that the object stays as long as this owner.
func (s *Session) otherOwner(ctx context.Context, live *unstructured.Unstructured) (*metav1.OwnerReference, error) {
	for _, owner := range others(live, s.holder) {
		if !v1beta1.OwnedBy(owner, "Installation") {
			return &owner, nil
		}
		i, err := s.installation(ctx, owner)
		if err != nil {
			return nil, err
		}
		if i != nil {
			return &owner, nil
		}
	}
	return nil, nil
}

// removeOwner removes the holder from the owners. The patch tests that another owner is still there, so that two holders that are released
// at a time cannot leave an object without an owner.
func (s *Session) removeOwner(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured,
	other *metav1.OwnerReference) (*unstructured.Unstructured, error) {
	place := owned(live, s.holder)
	if place < 0 {
		return live, nil
	}
	at := func(i int, field string) string { return fmt.Sprintf("/metadata/ownerReferences/%d%s", i, field) }
	operations := []operation{{"test", "/metadata/uid", live.GetUID()}, {"test", at(place, "/uid"), s.holder.UID}}
	if other != nil {
		i := slices.IndexFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == other.UID })
		operations = append(operations, operation{"test", at(i, "/uid"), other.UID})
	}
	left, err := patch(ctx, resource, live.GetName(), append(operations, operation{Op: "remove", Path: at(place, "")})...)
	if err == nil {
		s.mirror.RecordWrite(left.DeepCopy())
	}
	return left, err
}

// removeGuardOwner takes the guard off an object that another client has taken over, once no Installation holds it.
func (s *Session) removeGuardOwner(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	if len(others(live, s.holder)) > 0 {
		return nil
	}
	at := slices.IndexFunc(live.GetOwnerReferences(), guards)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/ownerReferences/%d", at)
	_, err := patch(ctx, resource, live.GetName(), operation{"test", path + "/uid", live.GetOwnerReferences()[at].UID},
		operation{Op: "remove", Path: path})
	return err
}

// checkDeletion returns why an object is not deleted, or the object in a state in which nothing blocked its deletion. If others could
// create content of the object, it has a fence.
func (s *Session) checkDeletion(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured) (
	*unstructured.Unstructured, *ReleaseBlock, error) {
	if block, err := s.deletionBlock(ctx, live); block != nil || err != nil {
		return nil, block, err
	}
	if kind := live.GroupVersionKind().GroupKind(); kind != crdKind && kind != namespaceKind {
		return live, nil, nil
	}
	fenced, err := s.fence(ctx, resource, live)
	if err != nil {
		return nil, nil, err
	}
	if block, err := s.deletionBlock(ctx, fenced); block != nil || err != nil {
		return nil, block, errors.Join(err, s.unfence(context.WithoutCancel(ctx), resource, fenced))
	}
	return fenced, nil, nil
}

// remove deletes an object that no other owner holds, bound to the state that was read.
func (s *Session) remove(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured,
	force bool) (*apply.Removal, error) {
	version := live.GetResourceVersion()
	if !force {
		checked, block, err := s.checkDeletion(ctx, resource, live)
		if block != nil || err != nil {
			return kept(block), err
		}
		version = checked.GetResourceVersion()
	}
	uid, background := live.GetUID(), metav1.DeletePropagationBackground
	err := resource.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if err != nil {
		return nil, err
	}
	now, err := apply.GetOrNil(ctx, resource, live.GetName())
	switch {
	case err != nil:
		return nil, err
	case now == nil || now.GetUID() != uid:
		return &apply.Removal{Done: true}, nil
	}
	return &apply.Removal{Waiting: fmt.Sprintf("%s %s is being deleted%s", live.GetKind(), live.GetName(), apply.Finalizers(now))}, nil
}

func kept(b *ReleaseBlock) *apply.Removal {
	if b == nil {
		return nil
	}
	return &apply.Removal{Waiting: b.Message}
}
