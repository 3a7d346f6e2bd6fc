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
