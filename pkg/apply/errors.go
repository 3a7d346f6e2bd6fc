package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FatalError cannot be cured by retrying.
type FatalError struct{ Err error }

// Error implements error.
func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FatalError) Unwrap() error { return e.Err }

// IsFatal tells whether retrying cannot cure the error.
func IsFatal(err error) bool {
	var fatal *FatalError
	return errors.As(err, &fatal) || collides(err)
}

// EndedError says that the namespace is going: the run ends, and must not hold a finalizer.
type EndedError struct{ Err error }

// Error implements error.
func (e *EndedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EndedError) Unwrap() error { return e.Err }

// CollisionError names an object that belongs to somebody else.
type CollisionError struct {
	ID    ID
	Owner string
}

// Error implements error.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("%s exists already and belongs to %s: it was not touched. Delete or rename one of the two, or take it over with the annotation kudo.dev/adopt=true on the Instance (install --adopt)", e.ID, e.Owner)
}

func collides(err error) bool {
	var collision *CollisionError
	return errors.As(err, &collision)
}

// WaitError says that something must go first.
type WaitError struct{ Err error }

// Error implements error.
func (e *WaitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// Verdict turns an error into the change of an object: a *WaitError into Awaited, any other into Failed with the
// classified error (engine rule 15).
func (e *Engine) Verdict(ctx context.Context, obj *unstructured.Unstructured, err error) Change {
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

// Classify says what an error means for a run: *FatalError cannot be cured by retrying, *EndedError ends the run, any
// other may pass. The text names the object.
func (e *Engine) Classify(ctx context.Context, obj *unstructured.Unstructured, err error) error {
	named := func(err error) error { return fmt.Errorf("%s: %w", IDOf(obj), err) }
	var fatal *FatalError
	switch {
	case collides(err), errors.As(err, &fatal):
		return err
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && !Gone(err): // the mapper may know kinds that have gone since
		return e.kinds.Unknown(ctx, obj, err)
	case conflicts(err) != nil:
		return &FatalError{named(fmt.Errorf("others manage fields that the package sets: %s", strings.Join(conflicts(err), "; ")))}
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return &EndedError{named(err)}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return &FatalError{named(err)}
	case Unnamed(err):
		return &FatalError{named(err)}
	case denied(err):
		return &FatalError{named(err)}
	}
	return named(err)
}

// denied is the answer of an admission webhook that says no, with whatever code the webhook chose. Other 403s may pass:
// rights and quotas change, and policies may ask for rights too.
func denied(err error) bool {
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

// conflicts lists the field conflicts of an apply that was not forced.
func conflicts(err error) []string {
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

// onlyMetadata tells whether an apply met no other conflict than about kudo's own labels and annotations.
func onlyMetadata(err error) bool {
	if conflicts(err) == nil {
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
