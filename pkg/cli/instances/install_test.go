package instances

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestWarnOfClaims checks that install names the claims that an earlier Instance of the name has left, and no others (P13, P26).
func TestWarnOfClaims(t *testing.T) {
	claim := func(name, instance string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		out := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("ns", name)}
		out.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance}
		out.OwnerReferences = owners
		return out
	}
	owned := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", UID: "s"}
	server := apitest.Start(t, claim("data-db-0", "db"), claim("data-other-0", "other"), claim("owned", "db", owned))
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "db")}
	warning := func() string {
		var out, errs bytes.Buffer
		warnOfClaims(t.Context(), command.NewEnv(strings.NewReader(""), &out, &errs), server.Client(), instance)
		return out.String() + errs.String()
	}
	const want = "Warning: an earlier Instance of the name has left PersistentVolumeClaims: data-db-0. Where the package has claims of these " +
		"names, they are used again, with their data\n"
	if got := warning(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	server.Before(func(r apitest.Request) (any, error) {
		return nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "", nil)
	})
	if got := warning(); got != "" {
		t.Errorf("who may not list claims is told %q", got)
	}
}

// TestMayUseClaims checks that a package without claims costs no request.
func TestMayUseClaims(t *testing.T) {
	for template, want := range map[string]bool{
		"kind: ConfigMap": false, "kind: StatefulSet\nspec: {replicas: 1}": false,
		"kind: StatefulSet\nspec:\n  volumeClaimTemplates: []": true, "kind: PersistentVolumeClaim": true,
	} {
		if got := mayUseClaims(gen.Version("ns", "v", gen.Template("a.yaml", template))); got != want {
			t.Errorf("%q: %t, want %t", template, got, want)
		}
	}
}
