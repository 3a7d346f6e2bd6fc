package instance

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/gen"
)

// TestRehashDigests: after a rotation of the key, the digests of the baseline are made anew, and a value that has changed stays
// different from its digest.
func TestRehashDigests(t *testing.T) {
	old, rotated := ring(t, 1), ring(t, 2)
	of := func(r *keyring.Ring, value string) string {
		return keyring.Baseline{Ring: r, Owner: "uid"}.Of("A", value)
	}
	lost := "9." + of(old, "x")[2:]
	for _, tc := range []struct {
		reason   string
		digest   string
		given    texts
		answered bool
		want     string
	}{
		{"it is of the current key", of(rotated, "x"), texts{"A": "x"}, true, of(rotated, "x")},
		{"it is of the current key, and the value has changed", of(rotated, "x"), texts{"A": "y"}, true, of(rotated, "x")},
		{"it is of the key of before", of(old, "x"), texts{"A": "x"}, false, of(rotated, "x")},
		{"it is of the key of before, and the value has changed", of(old, "x"), texts{"A": "y"}, true, of(old, "x")},
		{"it is of the key of before, and the parameter was dropped", of(old, "x"), nil, true, of(old, "x")},
		{"its key is lost, and all of spec was acted upon", lost, texts{"A": "x"}, true, of(rotated, "x")},
		{"its key is lost, and spec was not acted upon", lost, texts{"A": "x"}, false, lost},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), tc.given)
		i.UID, i.Generation = "uid", 1
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "ns/web-1.0", Parameters: texts{"A": tc.digest}}
		if tc.answered {
			i.Status.ObservedGeneration = 1
		}
		a := pure(i)
		a.ring = rotated
		for range 2 {
			a.rehashDigests()
			if got := a.Next.Status.Baseline.Parameters["A"]; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		}
		if got := a.Committed.Status.Baseline.Parameters["A"]; got != tc.digest {
			t.Errorf("%s: what is committed was changed to %q", tc.reason, got)
		}
	}
	pure(&v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "new"}}).rehashDigests()
}

// TestRotation: a rotation of the key starts no run, and a value that changes with it does.
func TestRotation(t *testing.T) {
	for _, tc := range []struct {
		reason, value string
		want          int64
	}{{"the value stays", "1", 1}, {"the value changes, too", "2", 2}} {
		f := newFixture(t)
		f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"VALUE": "1"} })
		f.settle(t)
		f.Put(keySecret(2))
		f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"VALUE": tc.value} })
		f.settle(t)
		base := f.instance().Status.Baseline
		if base.Revision != tc.want || keyring.IDOf(base.Parameters["VALUE"]) != "2" {
			t.Errorf("%s: run %d, digest %s", tc.reason, base.Revision, base.Parameters["VALUE"])
		}
	}
}
