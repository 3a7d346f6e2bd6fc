package kudoinit

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refusal is an error by which init refuses to change a cluster: what the cluster has forbids the change. An error of reading the cluster
// is no Refusal.
type Refusal struct{ cause error }

// Error implements error.
func (r *Refusal) Error() string { return r.cause.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.cause }

// IsRefusal reports whether an error is a Refusal, or wraps one.
func IsRefusal(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal)
}

// refuse returns a Refusal with a cause, or nil if there is no cause.
func refuse(cause error) error {
	if cause == nil {
		return nil
	}
	return &Refusal{cause}
}

// refuseDenied returns a Refusal if the API server denies a write, and any other error as it is.
func refuseDenied(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return refuse(err)
	}
	return err
}
