package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
)

// TestForceIsReadLive: T19, force that was taken back, since a version left users behind, destroys nothing, also if the reconcile has
// begun before.
func TestForceIsReadLive(t *testing.T) {
	installation := func(name, force string) *v1beta1.Installation {
		i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if force != "" {
			i.Annotations = map[string]string{v1beta1.ForceReleaseAnnotation: force}
		}
		return i
	}
	for _, tc := range []struct {
		reason     string
		seen, live *v1beta1.Installation
		want       bool
	}{
		{"forced", installation("a", "true"), installation("a", "true"), true},
		{"taken back", installation("a", "true"), installation("a", ""), false},
		{"asked for meanwhile: the next reconcile sees it", installation("a", ""), installation("a", "true"), false},
	} {
		server := apitest.Start(t, tc.live)
		tc.seen.UID = server.Get(tc.live).GetUID()
		a := &action{Reconciler: &Reconciler{Reader: server.Client()}, Object: loop.NewObject(nil, nil, nil, tc.seen)}
		got, err := a.isForced(t.Context())
		if err != nil || got != tc.want {
			t.Errorf("%s: forced %t, want %t (%v)", tc.reason, got, tc.want, err)
		}
		a.Next.UID = "another"
		if got, err := a.isForced(t.Context()); got || err != nil {
			t.Errorf("%s: another Installation of the name is forced: %t (%v)", tc.reason, got, err)
		}
		a.Next.Name = "gone"
		if _, err := a.isForced(t.Context()); (err != nil) != (a.Next.Annotations != nil) {
			t.Errorf("%s: an Installation that cannot be read: %v", tc.reason, err)
		}
	}
}
