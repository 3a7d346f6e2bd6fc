package apierror

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsObjectNotFound(t *testing.T) {
	revisions := schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}
	for _, tc := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"no error", nil, false},
		{"an error of another kind", errors.New("not found"), false},
		{"an object that does not exist", apierrors.NewNotFound(revisions, "db-1"), true},
		{"the same, wrapped", fmt.Errorf("read: %w", apierrors.NewNotFound(revisions, "db-1")), true},
		{"a 404 without a name", apierrors.NewNotFound(revisions, ""), false},
		{"another status", apierrors.NewConflict(revisions, "db-1", errors.New("changed")), false},
		{"a group that is not served: a page instead of a Status",
			apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", revisions, "db-1", "404 page not found", 0, true), false},
	} {
		if got := IsObjectNotFound(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
		if got := IgnoreObjectNotFound(tc.err); (got == nil) != (tc.want || tc.err == nil) {
			t.Errorf("%s: IgnoreObjectNotFound returns %v", tc.reason, got)
		}
	}
}

// TestIsRightMissing checks that refusals for want of a right are told from those of admission, which have the same code.
func TestIsRightMissing(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	forbidden := func(text string) error { return apierrors.NewForbidden(claims, "data", errors.New(text)) }
	for _, tc := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"no error", nil, false},
		{"an error of another kind", errors.New(`User "ann" cannot patch resource "pods"`), false},
		{"no right", forbidden(`User "system:serviceaccount:a:b" cannot patch resource "persistentvolumeclaims" in API group "" in the namespace "a"`), true},
		{"the same, wrapped", fmt.Errorf("write: %w", forbidden(`User "ann" cannot create resource "pods" in API group "" at the cluster scope: RBAC: no role`)), true},
		{"no right to act as another user", forbidden(`User "kudo" cannot impersonate resource "serviceaccounts" in API group ""`), true},
		{"a role that the user may not give", forbidden(`user "ann" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held:`), true},
		{"a quota", forbidden("exceeded quota: small, requested: pods=1"), false},
		{"a webhook", forbidden(`admission webhook "x.example.org" denied the request: user ann cannot do that`), false},
		{"a webhook that says the same", forbidden(`admission webhook "x.example.org" denied the request: pods "a" is forbidden: User "ann" cannot do that`), false},
		{"a policy that says the same", forbidden(`ValidatingAdmissionPolicy 'x' with binding 'x' denied request: is forbidden: User "ann" cannot`), false},
		{"a user with quotes", forbidden(`User "an\"n" cannot patch resource "pods"`), true},
		{"an owner that may not be blocked", forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), true},
		{"a policy", forbidden("ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"), false},
		{"the level of pods", forbidden(`violates PodSecurity "restricted:latest": privileged`), false},
		{"a claim that cannot grow", forbidden("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), false},
		{"a namespace that ends", forbidden("unable to create new content in namespace a because it is being terminated"), false},
	} {
		if got := IsRightMissing(tc.err); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
