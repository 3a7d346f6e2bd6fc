package operatorversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestHoldersOf: an object enqueues the OperatorVersions whose Installations own it.
func TestHoldersOf(t *testing.T) {
	f := newFixture(t, &v1beta1.OperatorVersion{}, nil)
	for name, subject := range map[string]v1beta1.InstallationSubject{
		"of-version": {Kind: "OperatorVersion", Namespace: "ns", Name: "web"}, "of-instance": {Kind: "Instance", Namespace: "ns", Name: "site"},
	} {
		f.Put(&v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InstallationSpec{Subject: subject}})
	}
	web := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}}
	for _, tc := range []struct {
		reason, installation string
		want                 []reconcile.Request
	}{
		{"the Installation is of an OperatorVersion", "of-version", web},
		{"the Installation is of an Instance", "of-instance", nil},
		{"the Installation does not exist", "none", nil},
	} {
		if diff := cmp.Diff(tc.want, f.holdersOf(t.Context(), ChangeOf(tc.installation))); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}
