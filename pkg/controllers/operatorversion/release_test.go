package operatorversion

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
)

// TestHasLeft: T19, a version that has left users behind, and that the cache still has, forces nothing.
func TestHasLeft(t *testing.T) {
	version := func(name string, finalizers ...string) *v1beta1.OperatorVersion {
		return &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers}}
	}
	for _, tc := range []struct {
		reason, name string
		live         *v1beta1.OperatorVersion
		another      bool
		want         bool
	}{
		{"it holds what it has installed", "a", version("a", v1beta1.OperatorVersionFinalizer), false, false},
		{"it is deleted", "b", version("a", v1beta1.OperatorVersionFinalizer), false, true},
		{"it waits for the finalizer of another controller", "a", version("a", "example.org/held"), false, true},
		{"another one has its name", "a", version("a", v1beta1.OperatorVersionFinalizer), true, true},
	} {
		server := apitest.Start(t, tc.live)
		seen := version(tc.name, v1beta1.OperatorVersionFinalizer)
		seen.UID = server.Get(tc.live).GetUID()
		if tc.another {
			seen.UID = "another"
		}
		a := &action{Reconciler: &Reconciler{Reader: server.Client()}, Object: loop.NewObject(nil, nil, nil, seen)}
		if got, err := a.hasLeft(t.Context()); got != tc.want || err != nil {
			t.Errorf("%s: has left %t, want %t (%v)", tc.reason, got, tc.want, err)
		}
	}
}
