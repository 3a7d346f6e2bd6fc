package instance

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestReleaseKept is P25: the Instance is no owner any more of an object that a user annotates, once, and the object is as the inventory
// says.
func TestReleaseKept(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "web-app-0", errors.New("no right to patch"))
	for _, tc := range []struct {
		reason  string
		refused error
		owners  int
		event   string
	}{
		{"the account may write it", nil, 0, "Normal ResourceKept ConfigMap ns/web-app-0 is annotated to be kept: the Instance does not own it any more"},
		{"the account may not write it", forbidden, 1, "Warning ResourceNotKept ConfigMap ns/web-app-0 is annotated to be kept, but will be deleted with the Instance"},
		{"it is not known whether it may", errSlow, 1, ""},
	} {
		f := newFixture(t)
		f.settle(t)
		f.recorded()
		object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}
		f.Read(object)
		if len(object.OwnerReferences) != 1 {
			t.Fatalf("%s: before, the owners are %v", tc.reason, object.OwnerReferences)
		}
		object.Annotations[v1beta1.KeepAnnotation] = ""
		f.Put(object)
		f.await(t, func() bool {
			live, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
			return live != nil && live.GetAnnotations()[v1beta1.KeepAnnotation] == "" && live.GetResourceVersion() == f.Get(object).GetResourceVersion()
		})
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "patch" && r.Kind == "ConfigMap" {
				return nil, tc.refused
			}
			return nil, nil
		})
		for range 2 { // the second reconcile has nothing to say that the first one has not
			f.reconcile(t)
		}
		f.Read(object)
		if len(object.OwnerReferences) != tc.owners {
			t.Errorf("%s: the owners are %v", tc.reason, object.OwnerReferences)
		}
		got := f.recorded()
		if tc.event == "" && len(got) > 0 || tc.event != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.event)) {
			t.Errorf("%s: events %q", tc.reason, got)
		}
		if tc.owners == 0 {
			resource := f.instance().Status.Resources[0]
			if diff := cmp.Diff([]string{string(object.UID), "False "}, []string{string(resource.UID), conditionText(f.instance(), v1beta1.DriftedCondition) + "False "}); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		}
	}
}
