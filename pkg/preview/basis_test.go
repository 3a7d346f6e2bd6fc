package preview

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/test/gen"
)

// TestBasis checks that a preview names the states of the objects that it was decided from, sorted, and that these alone do not change its
// digest (P1).
func TestBasis(t *testing.T) {
	l := newLab(t)
	version := web()
	before := l.running(version, "i-a")
	l.Read(version)
	live := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "i-a")}
	l.Read(live)
	e := Edit{Verb: "update", Before: before, After: changed(before, set("VALUE", "next")), Version: version}
	first := l.compute(e)
	want := []Basis{
		{"ConfigMap ns/i-a", live.UID, live.ResourceVersion},
		{"Instance ns/i", before.UID, before.ResourceVersion},
		{"OperatorVersion ns/web-0.1.0", version.UID, version.ResourceVersion},
	}
	if diff := cmp.Diff(want, first.Basis); diff != "" {
		t.Error(diff)
	}
	live.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	l.Put(live)
	second := l.compute(e)
	if second.Digest != first.Digest || slices.Equal(second.Basis, first.Basis) {
		t.Errorf("a change that changes nothing of what would happen: digests %s and %s, basis %v", first.Digest, second.Digest, second.Basis)
	}
}
