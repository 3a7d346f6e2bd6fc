package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// NoResourceVersion is the resourceVersion that no object has: a server-side apply with it creates, or answers 409.
const NoResourceVersion = "1"

// attempts bounds how often an object is read again after another client has changed it.
const attempts = 6

// applyOne writes one object:
//
//	cache shows it:   ours, equal to the inventory → nothing      ours → apply with its uid, forced
//	cache does not:   create-only apply → 201, or 409: look at the live object, and continue as above
func (e *Engine) applyOne(ctx context.Context, obj *unstructured.Unstructured, o Options) Change {
	change := Change{ID: IDOf(obj)}
	resource, err := e.Resource(obj)
	if err != nil {
		return change.fail(ctx, e, obj, err)
	}
	hash := Hash(obj, o.Keys)
	o.Known = o.rehashed(change.ID, obj, hash)
	body := Body(obj)
	live, _ := e.mirror.Get(change.ID)
	fresh := false
	for range attempts {
		written, action, err := e.write(ctx, resource, body, live, hash, o)
		switch {
		case err == nil && action == Unchanged:
			change.Action, change.Live, change.Record = Unchanged, live, o.Known[change.ID]
			return change
		case err == nil:
			change.Action, change.Live, change.Record = action, written, RecordOf(written, hash)
			change.Record.Fields = digestOf(ownerships(written), o.Manager)
			change.Readopted = change.Readopted || e.wasLeft(live, body, o)
			e.mirror.RecordWrite(written)
			if live == nil || !isKept(live) || isKept(written) {
				return change
			}
			live = written // the write has removed the annotation: the object needs its controller now
			continue
		case IsSchemaError(err):
			dropped, unread := e.kinds.Prune(ctx, body)
			if len(dropped) > 0 && change.Dropped == nil {
				change.Dropped = dropped
				continue
			}
			if unread != nil {
				err = fmt.Errorf("%s: %w", err.Error(), unread)
			}
			return change.fail(ctx, e, obj, err)
		case isCollision(err) && !fresh:
			// A refusal is final, and the mirror may lag: look first.
		case !IsOutdated(err, live):
			return change.fail(ctx, e, obj, err)
		}
		if live, err = GetOrNil(ctx, resource, obj.GetName()); err != nil {
			return change.fail(ctx, e, obj, err)
		}
		fresh = true
	}
	return change.fail(ctx, e, obj, apierrors.NewServerTimeout(v1beta1.Resource(obj.GetKind()), "apply", 1))
}

// write sends what one look at the object calls for.
func (e *Engine) write(ctx context.Context, resource dynamic.ResourceInterface, body, live *unstructured.Unstructured, hash string,
	o Options) (*unstructured.Unstructured, Action, error) {
	if live == nil {
		body.SetResourceVersion(NoResourceVersion)
		body.SetUID("")
		written, err := resource.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: o.Manager, Force: true})
		if err == nil {
			e.noteCreation(body.GroupVersionKind())
		}
		return written, Created, err
	}
	if live.GetDeletionTimestamp() != nil {
		return nil, Awaited, &WaitError{fmt.Errorf("%s is being deleted%s", IDOf(live), Finalizers(live))}
	}
	claim, owner := o.Claim(ctx, live)
	switch claim {
	case Foreign:
		return nil, Failed, newCollision(live, owner)
	case OwnerGone:
		return nil, Awaited, waitForCollector(live, owner)
	}
	if e.unchanged(live, o, IDOf(body), hash) && hasRightController(live, body) {
		return live, Unchanged, nil
	}
	if claim == Ours && live.GetAnnotations()[v1beta1.LastAppliedAnnotation] != "" {
		var err error
		if live, err = migrate(ctx, resource, body.GetName(), o.Manager); err != nil || live == nil {
			return nil, Failed, conflictIfMissing(live, err, body)
		}
	}
	body, err := e.withhold(ctx, resource, body, live, claim, o)
	if err != nil {
		return nil, Failed, err
	}
	written, err := e.send(ctx, resource, body, live, claim, metav1.ApplyOptions{FieldManager: o.Manager})
	return written, Configured, err
}

// noteCreation notes that an object of a kind was created.
func (e *Engine) noteCreation(gvk schema.GroupVersionKind) {
	if mapping, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		e.names.noteCreation(mapping.Resource)
	}
}

// send applies an object over the live one, to which it is bound by uid and resourceVersion: a write that arrives late must not undo a
// later one. What is ours is forced.
func (e *Engine) send(ctx context.Context, resource dynamic.ResourceInterface, body, live *unstructured.Unstructured, claim Claim,
	how metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	if isKept(live) {
		body = withoutController(body)
	}
	if e.retain != nil {
		kept, err := e.retain.Retain(ctx, body, live)
		if err != nil {
			return nil, err
		}
		body = Body(kept)
	}
	body.SetResourceVersion(live.GetResourceVersion())
	body.SetUID(live.GetUID())
	how.Force = claim == Ours
	written, err := resource.Apply(ctx, body.GetName(), body, how)
	if claim == Shared && fieldConflicts(err) != nil && (onlyMetadata(err) || changesMetadataOnly(ctx, resource, body, how.FieldManager)) {
		how.Force = true
		written, err = resource.Apply(ctx, body.GetName(), body, how)
	}
	return written, err
}

// conflictIfMissing is the error, or a conflict where an object was deleted in the meantime: the apply is tried again.
func conflictIfMissing(live *unstructured.Unstructured, err error, body *unstructured.Unstructured) error {
	if err == nil && live == nil {
		return apierrors.NewConflict(v1beta1.Resource(body.GetKind()), body.GetName(), errors.New("it was deleted concurrently"))
	}
	return err
}

// GetOrNil reads the object; it returns nil if it is not there.
func GetOrNil(ctx context.Context, resource dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	live, err := resource.Get(ctx, name, metav1.GetOptions{})
	if apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	return live, err
}

// IsOutdated reports whether a write was refused since another client has changed, created, deleted or replaced the object after it was
// read. live is what was read, or nil if there was no object.
func IsOutdated(err error, live *unstructured.Unstructured) bool {
	return apierrors.IsConflict(err) && fieldConflicts(err) == nil || isReplaced(err, live)
}

// isReplaced reports whether an apply with a uid met another object of the name: the server answers 422 then.
func isReplaced(err error, live *unstructured.Unstructured) bool {
	if live == nil || !apierrors.IsInvalid(err) {
		return false
	}
	for _, cause := range causes(err) {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// IsSchemaError is the server's answer to a field that the schema lacks: HTTP 500 without a reason (engine rule 21). It answers so
// too while its storage is away or changes its leader, which passes.
func IsSchemaError(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code == http.StatusInternalServerError &&
		(status.Status().Reason == "" || status.Status().Reason == metav1.StatusReasonUnknown) && !isStorageUnavailable(status.Status().Message)
}

// isStorageUnavailable reports whether the text of an answer is that of an error of etcd, or of the connection to it, that passes. The
// API server hands these on as they are (k8s.io/apiserver/pkg/storage/etcd3).
func isStorageUnavailable(text string) bool {
	if _, etcd, found := strings.Cut(text, "etcdserver: "); found {
		return !strings.HasPrefix(etcd, "request is too large")
	}
	for _, sign := range []string{"code = Unavailable", "code = DeadlineExceeded", "code = Canceled", "code = Aborted"} {
		if strings.Contains(text, "rpc error: "+sign) {
			return true
		}
	}
	return strings.HasSuffix(text, context.DeadlineExceeded.Error()) || strings.HasSuffix(text, context.Canceled.Error())
}

func (e *Engine) unchanged(live *unstructured.Unstructured, o Options, id ID, hash string) bool {
	known, ok := o.Known[id]
	if !ok || hash == "" {
		return false
	}
	now := RecordOf(live, hash)
	if now.Fields = known.Fields; known.Fields != "" {
		if digest := e.digest(live, o.Manager); digest != "" {
			now.Fields = digest
		}
	}
	if known != now {
		return false
	}
	labels := live.GetLabels()
	for key, value := range o.Labels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// digest is that of the fields which a manager owns of a live object; empty if it is not known.
func (e *Engine) digest(live *unstructured.Unstructured, manager string) string {
	if all := ownerships(live); len(all) > 0 {
		return digestOf(all, manager)
	}
	digest, _ := e.mirror.Digest(IDOf(live), manager)
	return digest
}

// RecordOf is the inventory's record of a live object that was rendered with a hash.
func RecordOf(live *unstructured.Unstructured, hash string) Record {
	version := live.GetResourceVersion()
	if g := live.GetGeneration(); g != 0 {
		version = "g" + strconv.FormatInt(g, 10)
	}
	return Record{UID: live.GetUID(), Hash: hash, Version: version}
}

// Body makes the body that is sent: a copy without what a rendered object must not say.
func Body(obj *unstructured.Unstructured) *unstructured.Unstructured {
	body := obj.DeepCopy()
	delete(body.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "generation", "selfLink", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(body.Object, "metadata", field)
	}
	stringData(body)
	return body
}

// Resource is where objects like this one are written. The error is of meta.IsNoMatchError if the kind is not served.
func (e *Engine) Resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if obj.GetNamespace() == "" {
		return e.client.Resource(mapping.Resource), nil
	}
	return e.client.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

// Finalizers names the finalizers of an object, for people; empty if it has none.
func Finalizers(live *unstructured.Unstructured) string {
	if list := live.GetFinalizers(); len(list) > 0 {
		return fmt.Sprintf(" (finalizers %v)", list)
	}
	return ""
}
