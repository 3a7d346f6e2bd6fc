package share

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
)

// finding is the state of an object as an inspection has found it.
type finding int

const (
	// absent objects are to be created.
	absent finding = iota
	// unchanged objects are held already, and as they should be: nothing is to be asked or written.
	unchanged
	// existing objects are not kudo's, and as they should be: nothing is written.
	existing
	// joinable objects were made by kudo and are as they should be.
	joinable
	// outdated objects were made by kudo, and this holder may change them.
	outdated
)

// inspection is the result of inspect for an object, before anything is written.
type inspection struct {
	found finding
	live  *unstructured.Unstructured
	// body is what would be written, without kudo's own metadata.
	body *unstructured.Unstructured
	// after is what a creation would give, if the object was absent.
	after   *unstructured.Unstructured
	dropped []apply.Dropped
}

// Session is the work on the objects of one step for one holder.
type Session struct {
	*Engine
	holder    *v1beta1.Installation
	policy    Policy
	inventory Inventory
	verdicts  map[apply.ID]*inspection
	ring      *keyring.Ring
}

// Session begins the work on the objects of a step. The inventory is not changed.
func (e *Engine) Session(holder *v1beta1.Installation, policy Policy, inventory Inventory) *Session {
	return &Session{Engine: e, holder: holder, policy: policy, inventory: inventory, verdicts: map[apply.ID]*inspection{}, ring: e.ring()}
}

// Check inspects all objects of a step before the first write of the step. It returns the objects that cannot be written: a mismatch that
// is found later would leave the step half installed.
func (s *Session) Check(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	definitions := apply.Definitions(objs)
	verdicts, failed := make([]*inspection, len(objs)), make([]error, len(objs))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(apply.Writers)
	for i, obj := range objs {
		group.Go(func() error {
			id := apply.IDOf(obj)
			s.locks.LockKey(id.String())
			defer func() { _ = s.locks.UnlockKey(id.String()) }()
			verdicts[i], failed[i] = s.inspect(limited, obj)
			if meta.IsNoMatchError(failed[i]) && apply.DefinedIn(definitions, obj) {
				verdicts[i], failed[i] = nil, nil // its definition comes first
			}
			return nil
		})
	}
	_ = group.Wait()
	var refused apply.ChangeSet
	for i, obj := range objs {
		if failed[i] != nil {
			refused = append(refused, s.objects.ChangeForError(ctx, obj, failed[i]))
			continue
		}
		s.verdicts[apply.IDOf(obj)] = verdicts[i]
	}
	return refused
}

// attempts bounds how often an object is read again after another client has changed it.
const attempts = 10

// inspect compares one object with the wanted one: by the mirror where that suffices, else by a dry run of a server-side apply, whose
// answer shows what a real one would change.
func (s *Session) inspect(ctx context.Context, obj *unstructured.Unstructured) (*inspection, error) {
	resource, err := s.objects.Resource(obj)
	if err != nil {
		return nil, err
	}
	id := apply.IDOf(obj)
	live, err := s.observe(ctx, resource, id)
	if err != nil {
		return nil, err
	}
	if s.held(live, obj) {
		return &inspection{found: unchanged, live: live}, nil
	}
	v := &inspection{live: live}
	if s.matchedBefore(live, obj) {
		v.found = joinable
		return v, nil
	}
	for range attempts {
		if live := v.live; live != nil && live.GetDeletionTimestamp() != nil {
			if live, err = apply.GetOrNil(ctx, resource, id.Name); err != nil || live != nil && live.GetDeletionTimestamp() != nil {
				return nil, terminatingError(id, v.live, err)
			}
			v.live = live
		}
		fresh, err := s.compare(ctx, resource, obj, v)
		if err != nil || fresh {
			return v, err
		}
		if v.live, err = apply.GetOrNil(ctx, resource, id.Name); err != nil {
			return nil, err
		}
	}
	return nil, apierrors.NewServerTimeout(v1beta1.Resource(obj.GetKind()), "compare", 1)
}

// observe returns the live object, or nil: from the mirror, or from the API server if the mirror has it without all of its content.
func (s *Session) observe(ctx context.Context, resource dynamic.ResourceInterface, id apply.ID) (*unstructured.Unstructured, error) {
	live, _ := s.mirror.Get(id)
	if live == nil || live.GetAnnotations()[apply.TrimmedAnnotation] == "" {
		return live, nil
	}
	return apply.GetOrNil(ctx, resource, id.Name)
}

func terminatingError(id apply.ID, live *unstructured.Unstructured, err error) error {
	if err != nil {
		return err
	}
	return &apply.WaitError{Err: fmt.Errorf("%s is being deleted%s", id, apply.Finalizers(live))}
}

// match is the key of a remembered match: a rendered object. All holders share the matches, so the key has a whole digest: with a part of
// one, an attacker could make two objects with the same key, so that one is taken for the other.
type match struct {
	id     apply.ID
	digest [sha256.Size]byte
}

// remember notes that a dry run has found the live object to match the rendered one.
func (s *Session) remember(live, obj *unstructured.Unstructured) {
	rendered, ok := apply.Digest(obj)
	if !ok {
		return
	}
	if content, err := contentDigest(live); err == nil {
		s.matched.Add(match{apply.IDOf(obj), rendered}, content)
	}
}

// matchedBefore reports whether a dry run has found before that this content of the object matches.
func (s *Session) matchedBefore(live, obj *unstructured.Unstructured) bool {
	if live == nil || live.GetDeletionTimestamp() != nil || !Managed(live) || s.retain != nil && !s.policy.Tarball {
		return false
	}
	rendered, ok := apply.Digest(obj)
	if !ok {
		return false
	}
	known, found := s.matched.Get(match{apply.IDOf(obj), rendered})
	content, err := contentDigest(live)
	return err == nil && found && known == content
}

// held reports whether the holder has the object, and it is as it was when it was last found right.
func (s *Session) held(live, obj *unstructured.Unstructured) bool {
	if live == nil || live.GetDeletionTimestamp() != nil || owned(live, s.holder) < 0 || !Managed(live) {
		return false
	}
	known := s.inventory.record(apply.IDOf(obj))
	return known.UID == live.GetUID() && apply.SameHash(known.Hash, obj, s.ring) && known.ContentHash != "" &&
		known.ContentHash == Fingerprint(live, s.ring)
}

// compare makes a dry run with the object, and sets the finding. It returns false if the live object in the inspection is too old to be
// compared.
func (s *Session) compare(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured,
	v *inspection) (bool, error) {
	body, err := s.wanted(ctx, obj, v)
	if err != nil {
		return false, err
	}
	after, err := s.dryRun(ctx, resource, body, v)
	v.body = body
	switch {
	case apierror.IsNamespaceNotFound(err):
		v.found = absent // the namespace may be made by the same step
		return true, nil
	case apierrors.IsInvalid(err):
		return s.refused(ctx, resource, obj, v, err)
	case err != nil:
		return false, err
	case after.GetResourceVersion() == "" || after.GetResourceVersion() == "0":
		v.found, v.live, v.after = absent, nil, after
		return true, nil
	case v.live == nil:
		return false, nil
	}
	current := after.GetResourceVersion() == v.live.GetResourceVersion()
	equal := alike(after, v.live)
	switch {
	case equal && Managed(v.live): // the answer to the patch is compared again
		v.found = joinable
		s.remember(v.live, obj)
		return true, nil
	case !current:
		return false, nil
	case equal, !Managed(v.live) && contains(Content(after), Content(v.live)): // of others' objects the live one may hold more
		v.found = existing
		return true, nil
	}
	if s.acceptSuperset(obj, v, after) {
		return true, nil
	}
	return true, s.classifyMismatch(ctx, resource, obj, v, diff(v.live, after))
}

// dryRun returns what a server-side apply of the body would give. Fields that the schema of the kind does not have are dropped from the
// body where the API server refuses the body for them.
func (s *Session) dryRun(ctx context.Context, resource dynamic.ResourceInterface, body *unstructured.Unstructured, v *inspection) (
	*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}}
	after, err := resource.Apply(ctx, body.GetName(), body, options)
	if !apply.IsSchemaError(err) || v.dropped != nil {
		return after, err
	}
	dropped, unread := s.kinds.Prune(ctx, body)
	switch {
	case len(dropped) == 0 && unread != nil:
		return nil, errors.Join(err, unread)
	case len(dropped) == 0:
		return nil, err // wrapped by errors.Join, it would count as transient
	}
	v.dropped = dropped
	return resource.Apply(ctx, body.GetName(), body, options)
}

// acceptSuperset reports whether the live definition suffices for that of a tarball, since it allows all that is wanted, and more.
func (s *Session) acceptSuperset(obj *unstructured.Unstructured, v *inspection, wanted *unstructured.Unstructured) bool {
	if !s.policy.Tarball || s.safety == nil || !s.safety.IsSuperset(v.live, wanted) {
		return false
	}
	v.found = existing
	if Managed(v.live) {
		v.found = joinable
		s.remember(v.live, obj)
	}
	return true
}

// wanted is the object as it would be written, without kudo's own metadata.
func (s *Session) wanted(ctx context.Context, obj *unstructured.Unstructured, v *inspection) (*unstructured.Unstructured, error) {
	if v.live != nil && s.retain != nil {
		kept, err := s.retain.Retain(ctx, obj, v.live)
		if err != nil {
			return nil, err
		}
		obj = kept
	}
	body := apply.Body(obj)
	body.SetOwnerReferences(nil)
	if v.dropped != nil {
		if _, err := s.kinds.Prune(ctx, body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// refused handles a dry run that the API server refuses as invalid: if the object exists, it is a mismatch in an immutable field.
func (s *Session) refused(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured, v *inspection,
	cause error) (bool, error) {
	live, err := apply.GetOrNil(ctx, resource, v.body.GetName())
	if err != nil {
		return false, err
	}
	if live == nil {
		return false, cause
	}
	v.live = live
	mismatch := &MismatchError{ID: apply.IDOf(live), Differences: declaredDiffs(live, v.body), Holders: s.Holders(ctx, live),
		Reason: cause.Error()}
	if mismatch.ID.GroupKind() == crdKind { // the API server refuses to remove a version of status.storedVersions
		if s.acceptSuperset(obj, v, v.body) {
			return true, nil
		}
		if _, err := s.forbidden(ctx, obj, v); err != nil { // it waits for a migration, or that could not be read
			return false, err
		}
		if mismatch.Superseded, err = s.superseded(ctx, live); err != nil {
			return false, err
		}
	}
	return false, &apply.FatalError{Err: mismatch}
}

// declaredDiffs are the differences in fields that the package sets.
func declaredDiffs(live, wanted *unstructured.Unstructured) []Difference {
	return slices.DeleteFunc(diff(live, wanted), func(d Difference) bool { return d.Wanted == none })
}

// classifyMismatch sets the finding for an object that a real apply would change.
func (s *Session) classifyMismatch(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured, v *inspection,
	differences []Difference) error {
	reason, err := s.forbidden(ctx, obj, v)
	if err != nil {
		return err
	}
	if reason == "" {
		v.found = outdated
		return nil
	}
	if live, err := apply.GetOrNil(ctx, resource, obj.GetName()); err == nil && live != nil {
		v.live = live // the mirror does not keep the field managers
	}
	superseded, err := s.superseded(ctx, v.live)
	if err != nil {
		return err
	}
	return &apply.FatalError{Err: &MismatchError{
		ID: apply.IDOf(obj), Differences: differences, Holders: s.Holders(ctx, v.live), Reason: reason,
		Drifted: owned(v.live, s.holder) >= 0 && apply.SameHash(s.inventory.record(apply.IDOf(obj)).Hash, obj, s.ring), Superseded: superseded,
		By: apply.Writer(v.live, manager),
	}}
}
