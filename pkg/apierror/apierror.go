// Package apierror reads the errors of the Kubernetes API more closely than apimachinery does.
package apierror

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsObjectNotFound reports whether an error is a 404 by which the API server says that it has no object of the name. A 404 without a name,
// or which is no Status of the API, means that the kind is not served at the moment: whether the object exists is unknown then.
func IsObjectNotFound(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	// Clients of a type put the name into what they make of an answer that is no Status.
	return details != nil && details.Name != "" && !apierrors.IsUnexpectedServerError(err)
}

// IsNamespaceNotFound reports whether a write was refused since its namespace does not exist.
func IsNamespaceNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// rightMissing is how the API server says what a user may not do, by an authorizer or by its check of roles that a user may not give. Other
// refusals with 403 are those of admission: a quota, a policy, a webhook, a claim that cannot grow.
var rightMissing = regexp.MustCompile(`is forbidden: (` +
	`[Uu]ser "(\\.|[^"\\])*" (\(groups=.*\) )?(cannot|is attempting to grant)\b|cannot set blockOwnerDeletion)`)

// denied is how the API server begins what a webhook or a policy says, whose words may be any.
var denied = regexp.MustCompile(`denied (the )?request`)

// IsRightMissing reports whether a request was refused since the user lacks a right. Another user might be answered otherwise.
func IsRightMissing(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	said := rightMissing.FindStringIndex(err.Error())
	return said != nil && !denied.MatchString(err.Error()[:said[0]])
}

// IgnoreObjectNotFound returns nil for an error that IsObjectNotFound reports, and any other error as it is.
func IgnoreObjectNotFound(err error) error {
	if IsObjectNotFound(err) {
		return nil
	}
	return err
}
