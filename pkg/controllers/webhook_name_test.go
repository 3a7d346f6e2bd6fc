package controllers

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/test/apitest"
)

// TestCertificateName checks that the certificate of the webhooks is for the host by which the API server reaches them.
func TestCertificateName(t *testing.T) {
	const service = "kudo-controller-manager-service.kudo-system.svc"
	for _, tc := range []struct{ reason, url, want string }{
		{"a Service", "", service},
		{"a manager outside of the cluster", "https://kudo-hub.example.org:9443/validate", "kudo-hub.example.org"},
		{"a manager on this machine", "https://localhost:9443/validate", service},
		{"an address, for which there is no name", "https://10.0.0.1:9443/validate", service},
		{"no URL", "https://a b", service},
	} {
		hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: instanceValidation},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a"}}}
		if tc.url != "" {
			hooks.Webhooks[0].ClientConfig.URL = &tc.url
		}
		if got, err := certificateName(t.Context(), apitest.Start(t, hooks).Client(), service); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
	if got, err := certificateName(t.Context(), apitest.Start(t).Client(), service); err != nil || got != service {
		t.Errorf("without webhooks: %q, %v", got, err)
	}
}
