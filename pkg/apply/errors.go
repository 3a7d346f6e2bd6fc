package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// FatalError is an error that every attempt would meet.
type FatalError struct{ Err error }

// Error implements error.
func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FatalError) Unwrap() error { return e.Err }

// IsFatal reports whether every attempt would meet the error.
func IsFatal(err error) bool {
	var fatal *FatalError
	return errors.As(err, &fatal) || isCollision(err)
}

// NamespaceTerminatingError says that the namespace of an object is being deleted. If that is the namespace of what runs the plan, the run
// ends, and must not hold a finalizer; another one may be created again.
type NamespaceTerminatingError struct {
	Namespace string
	Err       error
}

// Error implements error.
func (e *NamespaceTerminatingError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NamespaceTerminatingError) Unwrap() error { return e.Err }

// CollisionError names an object that belongs to another owner.
type CollisionError struct {
	ID    ID
	Owner string
	// Adoptable is set if the object is taken over where the Instance says so.
	Adoptable bool
}

func newCollision(live *unstructured.Unstructured, owner string) *CollisionError {
	return &CollisionError{ID: IDOf(live), Owner: owner, Adoptable: isAdoptable(live)}
}

// isAdoptable reports whether the annotation of an Instance lets it take an object over: one of a namespace that neither a controller
// nor an install plan has.
func isAdoptable(live *unstructured.Unstructured) bool {
	held := slices.ContainsFunc(live.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return v1beta1.OwnedBy(owner, "Installation") })
	return live.GetNamespace() != "" && !held && metav1.GetControllerOf(live) == nil
}

// Error implements error.
func (e *CollisionError) Error() string {
	text := fmt.Sprintf("%s exists already and belongs to %s: it was not changed. Delete or rename one of the two", e.ID, e.Owner)
	if e.Adoptable {
		text += ", or adopt it by the annotation kudo.dev/adopt=true on the Instance (install --adopt)"
	}
	return text
}

func isCollision(err error) bool {
	var collision *CollisionError
	return errors.As(err, &collision)
}

// WaitError says that something must go first.
type WaitError struct{ Err error }

// Error implements error.
func (e *WaitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// ChangeForError turns an error into the change of an object: a *WaitError into Awaited, any other into Failed with the
// classified error (engine rule 15).
func (e *Engine) ChangeForError(ctx context.Context, obj *unstructured.Unstructured, err error) Change {
	return Change{ID: IDOf(obj)}.fail(ctx, e, obj, err)
}

func (c Change) fail(ctx context.Context, e *Engine, obj *unstructured.Unstructured, err error) Change {
	var wait *WaitError
	if errors.As(err, &wait) {
		c.Action, c.Err = Awaited, wait.Err
		return c
	}
	c.Action, c.Err = Failed, e.Classify(ctx, obj, err)
	return c
}

// Classify says what an error means for a run: *FatalError fails at every attempt, *NamespaceTerminatingError ends a run in that
// namespace, any other is transient. The text names the object.
func (e *Engine) Classify(ctx context.Context, obj *unstructured.Unstructured, err error) error {
	named := func(err error) error { return fmt.Errorf("%s: %w", IDOf(obj), err) }
	var fatal *FatalError
	switch {
	case isCollision(err), errors.As(err, &fatal):
		return err
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && !apierror.IsObjectNotFound(err): // the mapper may know a kind that was removed
		return e.kinds.ExplainNoMatch(ctx, obj, err)
	case fieldConflicts(err) != nil:
		return &FatalError{named(fmt.Errorf("other field managers manage fields that the package sets: %s",
			strings.Join(fieldConflicts(err), "; ")))}
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return &NamespaceTerminatingError{obj.GetNamespace(), named(err)}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return &FatalError{named(err)}
	case IsSchemaError(err):
		return &FatalError{named(err)}
	case isWebhookDenial(err):
		return &FatalError{named(err)}
	}
	return named(err)
}

// isWebhookDenial is the answer of an admission webhook that says no, with whatever code the webhook chose. Other 403s are transient:
// rights and quotas change, and policies may ask for rights too.
func isWebhookDenial(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError &&
		strings.HasPrefix(status.Status().Message, "admission webhook ") && !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err)
}

// causes of an answer; webhooks may answer without any details.
func causes(err error) []metav1.StatusCause {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// fieldConflicts lists the field conflicts of an apply that was not forced.
func fieldConflicts(err error) []string {
	if !apierrors.IsConflict(err) {
		return nil
	}
	var out []string
	for _, cause := range causes(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			out = append(out, cause.Field+" ("+cause.Message+")")
		}
	}
	return out
}

// onlyMetadata reports whether an apply met no other conflict than about kudo's own labels and annotations.
func onlyMetadata(err error) bool {
	if fieldConflicts(err) == nil {
		return false
	}
	for _, cause := range causes(err) {
		field := cause.Field
		if !strings.HasPrefix(field, ".metadata.labels.kudo.dev/") && !strings.HasPrefix(field, ".metadata.annotations.kudo.dev/") &&
			field != ".metadata.labels.heritage" {
			return false
		}
	}
	return true
}
