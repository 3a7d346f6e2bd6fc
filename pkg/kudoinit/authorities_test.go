package kudoinit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/test/apitest"
)

// authority returns a certificate in PEM that ends at a time.
func authority(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestAuthorities: each certificate of a bundle is found, and no Secret is read for it.
func TestAuthorities(t *testing.T) {
	first, second := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		reason string
		bundle []byte
		want   []time.Time
		fails  bool
	}{
		{"two, as during a renewal", append(authority(t, first), authority(t, second)...), []time.Time{first, second}, false},
		{"none yet", nil, nil, false},
		{"something else", []byte("x"), nil, false},
		{"no certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), nil, true},
	} {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validating}}
		config.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "a", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: tc.bundle}}}
		server := apitest.Start(t, config)
		found, err := Authorities(t.Context(), server.Client())
		if (err != nil) != tc.fails || len(found) != len(tc.want) {
			t.Errorf("%s: %d certificates (%v)", tc.reason, len(found), err)
			continue
		}
		for n, want := range tc.want {
			if !found[n].NotAfter.Equal(want) {
				t.Errorf("%s: it ends at %s, want %s", tc.reason, found[n].NotAfter, want)
			}
		}
		if requests := server.Requests(); len(requests) != 1 {
			t.Errorf("%s: it asks for %v", tc.reason, requests)
		}
	}
	if found, err := Authorities(t.Context(), apitest.Start(t).Client()); found != nil || err != nil {
		t.Errorf("without webhooks: %v, %v", found, err)
	}
}
