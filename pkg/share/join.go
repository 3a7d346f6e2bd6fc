package share

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
)

// Join creates or joins the objects, class by class. Check comes first.
func (s *Session) Join(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return apply.InOrder(ctx, objs, func(ctx context.Context, i int) apply.Change {
		id := apply.IDOf(objs[i])
		s.locks.LockKey(id.String())
		defer func() { _ = s.locks.UnlockKey(id.String()) }()
		return s.join(ctx, objs[i], s.verdicts[id])
	})
}

// join drives one object:
//
//	absent      create-only apply with owner and annotation      409 → read again
//	joinable    patch: test uid, add owner                       404, 409, 422, terminating, other content → read again
//	outdated    forced apply bound to the state that was read    409, 422 → read again
//	existing, unchanged: nothing
func (s *Session) join(ctx context.Context, obj *unstructured.Unstructured, v *inspection) apply.Change {
	resource, err := s.objects.Resource(obj)
	if err != nil {
		return s.objects.ChangeForError(ctx, obj, err)
	}
	joined, left := false, false
	for range attempts {
		s.acceptConcurrentCreate(v)
		if v == nil {
			if v, err = s.inspect(ctx, obj); err != nil {
				return s.objects.ChangeForError(ctx, obj, s.undoJoin(ctx, resource, obj.GetName(), joined, err))
			}
		}
		left = left || s.wasLeft(ctx, v)
		written, action, err := s.write(ctx, resource, obj, v)
		switch {
		case err == nil && written != nil && action == apply.Configured && (written.GetDeletionTimestamp() != nil || !alike(written, v.live)):
			joined = true // but it is not the inspected object
		case err == nil:
			change := s.joined(obj, v, written, action)
			change.Readopted = left && action == apply.Configured
			return change
		case apierror.IsNamespaceNotFound(err):
			return s.objects.ChangeForError(ctx, obj, err)
		case !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierror.IsObjectNotFound(err):
			return s.objects.ChangeForError(ctx, obj, err)
		case apierrors.IsInvalid(err) && v.found == absent:
			return s.objects.ChangeForError(ctx, obj, err)
		}
		v = nil
	}
	return s.objects.ChangeForError(ctx, obj, apierrors.NewServerTimeout(v1beta1.Resource(obj.GetKind()), "join", 1))
}

// wasLeft reports whether an object that is about to be joined was left by earlier holders: kudo made it, and no holder of it exists any
// more but such as are being deleted, or belong to a former object of the holder's name. Where that is not known, the object does not
// count as left.
func (s *Session) wasLeft(ctx context.Context, v *inspection) bool {
	if v.found != joinable && v.found != outdated || !Managed(v.live) || owned(v.live, s.holder) >= 0 {
		return false
	}
	for _, owner := range others(v.live, s.holder) {
		if !v1beta1.OwnedBy(owner, "Installation") {
			return false
		}
		if i, err := s.installation(ctx, owner); err != nil || i != nil && i.DeletionTimestamp == nil && !s.isFormer(i) {
			return false
		}
	}
	return true
}

// isFormer reports whether an Installation is that of an earlier object of the same name as the subject of this holder. The deletion of
// such an Installation may not have begun.
func (s *Session) isFormer(i *v1beta1.Installation) bool {
	former, now := i.Spec.Subject, s.holder.Spec.Subject
	return former.Kind == now.Kind && former.Namespace == now.Namespace && former.Name == now.Name && former.UID != now.UID
}

// acceptConcurrentCreate turns an absent object into a joinable one if another holder has created it in the meantime with the wanted
// content. This saves another dry run.
func (s *Session) acceptConcurrentCreate(v *inspection) {
	if v == nil || v.found != absent || v.after == nil {
		return
	}
	live, _ := s.mirror.Get(apply.IDOf(v.body))
	if live == nil {
		live = s.mirror.UnobservedWrite(apply.IDOf(v.body))
	}
	if live != nil && live.GetDeletionTimestamp() == nil && live.GetAnnotations()[apply.TrimmedAnnotation] == "" && Managed(live) &&
		alike(live, v.after) {
		v.found, v.live = joinable, live
	}
}

// write sends the request that the finding requires, and returns the written object, or nil if nothing is to be written.
func (s *Session) write(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured,
	v *inspection) (*unstructured.Unstructured, apply.Action, error) {
	var written *unstructured.Unstructured
	var err error
	action := apply.Configured
	if v.live != nil && v.found != existing { // a fence may be left of a release that was given up
		if err := s.unfence(ctx, resource, v.live); err != nil {
			return nil, 0, err
		}
	}
	switch v.found {
	case unchanged, existing:
		return nil, apply.Unchanged, nil
	case absent:
		written, err = s.create(ctx, resource, v)
		action = apply.Created
	case joinable:
		if owned(v.live, s.holder) >= 0 {
			return nil, apply.Unchanged, nil
		}
		written, err = s.append(ctx, resource, v.live)
	case outdated:
		written, err = s.update(ctx, resource, v)
		v.live = written // it is meant to differ
	}
	if err == nil {
		s.mirror.RecordWrite(written.DeepCopy())
	}
	return written, action, err
}

// joined is the change of an object that is held now.
func (s *Session) joined(obj *unstructured.Unstructured, v *inspection, written *unstructured.Unstructured,
	action apply.Action) apply.Change {
	if written == nil {
		written = v.live
	}
	record := s.Record(written, obj)
	return apply.Change{ID: apply.IDOf(obj), Action: action, Live: written, Record: record, Dropped: v.dropped}
}

// create creates the object with its owner in one request, which fails if the object exists.
func (s *Session) create(ctx context.Context, resource dynamic.ResourceInterface, v *inspection) (*unstructured.Unstructured, error) {
	body, err := s.withMetadata(ctx, v.body, []metav1.OwnerReference{reference(s.holder)})
	if err != nil {
		return nil, err
	}
	body.SetResourceVersion(apply.NoResourceVersion)
	return resource.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager})
}

// withMetadata adds kudo's metadata and the owners to a body.
func (s *Session) withMetadata(ctx context.Context, body *unstructured.Unstructured,
	owners []metav1.OwnerReference) (*unstructured.Unstructured, error) {
	body = body.DeepCopy()
	labels, annotations := body.GetLabels(), body.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1beta1.HeritageLabel], annotations[v1beta1.ManagedAnnotation] = v1beta1.Heritage, "true"
	body.SetLabels(labels)
	body.SetAnnotations(annotations)
	owners, err := s.guard.add(ctx, body, owners)
	body.SetOwnerReferences(owners)
	return body, err
}

// update changes an object that is there. All of its owners are listed: one that is left out would be dropped.
func (s *Session) update(ctx context.Context, resource dynamic.ResourceInterface, v *inspection) (*unstructured.Unstructured, error) {
	owners := v.live.GetOwnerReferences()
	if owned(v.live, s.holder) < 0 {
		owners = append(owners, reference(s.holder))
	}
	body, err := s.withMetadata(ctx, v.body, owners)
	if err != nil {
		return nil, err
	}
	body.SetUID(v.live.GetUID())
	body.SetResourceVersion(v.live.GetResourceVersion())
	return resource.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

// operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func patch(ctx context.Context, resource dynamic.ResourceInterface, name string,
	operations ...operation) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: manager})
}

// append adds the holder to the owners. Several may do so at a time: the patch tests the uid only, and not the
// resourceVersion. Sent twice it gives one entry.
func (s *Session) append(ctx context.Context, resource dynamic.ResourceInterface,
	live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	test := operation{"test", "/metadata/uid", live.GetUID()}
	if len(live.GetOwnerReferences()) > 0 {
		return patch(ctx, resource, live.GetName(), test, operation{"add", "/metadata/ownerReferences/-", reference(s.holder)})
	}
	owners, err := s.guard.add(ctx, live, []metav1.OwnerReference{reference(s.holder)})
	if err != nil {
		return nil, err
	}
	return patch(ctx, resource, live.GetName(), test,
		operation{"test", "/metadata/resourceVersion", live.GetResourceVersion()}, operation{"add", "/metadata/ownerReferences", owners})
}

// undoJoin removes the holder from an object that turned out to be another one than the inspected object.
func (s *Session) undoJoin(ctx context.Context, resource dynamic.ResourceInterface, name string, joined bool, cause error) error {
	if !joined {
		return cause
	}
	live, err := apply.GetOrNil(ctx, resource, name)
	if err == nil && live != nil && len(others(live, s.holder)) > 0 {
		_, err = s.removeOwner(ctx, resource, live, nil)
	}
	if err != nil {
		return fmt.Errorf("%w; release it again: %w", cause, err)
	}
	return cause
}
