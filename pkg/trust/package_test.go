package trust

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestPackageOf checks S6 and S20: names and content are those of the spec, and one byte that changes makes a signature invalid.
func TestPackageOf(t *testing.T) {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: "postgres-17.4.0-1.0.0"}}
	ov.Spec.Operator, ov.Spec.AppVersion, ov.Spec.Version = corev1.ObjectReference{Name: "postgres"}, "17.4.0", "1.0.0"
	ov.Spec.Templates = map[string]string{"a.yaml": "x"}
	p, err := PackageOf(ov)
	if err != nil || p.String() != "postgres 17.4.0_1.0.0" || !strings.HasPrefix(p.Content, digestPrefix) || p.Digests != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	s := newP256(t)
	made := sign(t, p, s)
	ov.Spec.Provenance = &v1beta1.Provenance{Signatures: []string{string(made)}}
	if again, err := PackageOf(ov); err != nil || Verify(made, again, authority(s), now) != nil {
		t.Errorf("the signature does not verify in the object that holds it: %v", err)
	}
	ov.Spec.Templates["a.yaml"] = "y"
	if again, err := PackageOf(ov); err != nil || Verify(made, again, authority(s), now) == nil {
		t.Errorf("a changed template verifies: %v", err)
	}
	ov.Spec.Templates["a.yaml"] = "\xff"
	if _, err := PackageOf(ov); err == nil {
		t.Error("what has no digest is a package")
	}
	if (Package{Name: "web", OperatorVersion: "1.0.0"}).String() != "web 1.0.0" {
		t.Error("a package without appVersion has another name")
	}
}
