package packagepolicy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/test/apitest"
)

func publicKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestReconcile checks S24: the status names what cannot be used, and the keys of a policy that can.
func TestReconcile(t *testing.T) {
	server := apitest.Start(t)
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	c := server.Client()
	r := (&Reconciler{Client: c, Reader: c}).loop()
	ends := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production", Generation: 1}}
	p.Spec.Action = configv1alpha1.RequireSignatures
	p.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "release", NotAfter: &ends, Key: &configv1alpha1.AuthorityKey{PublicKey: "no key"}}}
	server.Put(p)
	reconcile := func() *configv1alpha1.PackagePolicy {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
			t.Fatal(err)
		}
		out := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
		server.Read(out)
		return out
	}
	bad := reconcile()
	ready := meta.FindStatusCondition(bad.Status.Conditions, ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != ReasonInvalid || bad.Status.Authorities != nil ||
		!strings.Contains(ready.Message, "PackagePolicy production: spec.authorities[0].key.publicKey: there is no key in PEM") {
		t.Errorf("a key that cannot be read: %+v", bad.Status)
	}
	p.Spec.Authorities[0].Key.PublicKey = publicKey(t)
	server.Put(p)
	good := reconcile()
	if !meta.IsStatusConditionTrue(good.Status.Conditions, ReadyCondition) || len(good.Status.Authorities) != 1 ||
		good.Status.Authorities[0].KeyHint == "" || !good.Status.Authorities[0].Expires.Equal(&ends) {
		t.Errorf("a policy that can be used: %+v", good.Status)
	}
	server.Requests()
	reconcile()
	for _, request := range server.Requests() {
		if !strings.HasPrefix(request, "GET") && !strings.HasPrefix(request, "get") {
			t.Errorf("nothing has changed, and yet: %s", request)
		}
	}
	server.Remove(p)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		t.Errorf("a policy that does not exist: %v", err)
	}
}
