package preview

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// denyByWebhook has a validating webhook of this process refuse a request for an object of a name. The webhook has no side effects, so that
// the API server asks it for dry runs, too: a preview is refused as the upgrade is.
func denyByWebhook(operation registrationv1.OperationType, resources, name string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		var dryRuns, writes atomic.Int64
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			review := &admissionv1.AdmissionReview{}
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(review); err != nil || review.Request == nil {
				http.Error(w, "no review", http.StatusBadRequest)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != name}
			if !review.Response.Allowed {
				review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "not on Fridays"}
				if ptr.Deref(review.Request.DryRun, false) {
					dryRuns.Add(1)
				} else {
					writes.Add(1)
				}
			}
			review.Request = nil
			_ = json.NewEncoder(w).Encode(review)
		}))
		t.Cleanup(server.Close)
		webhook := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: gen.Meta("", "deny-in-"+ns), Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "deny.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL: ptr.To(server.URL + "/deny"), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{operation},
				Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resources}},
			}},
			FailurePolicy: ptr.To(registrationv1.Fail), SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}}}
		env.Must(t, suite.Create(t.Context(), webhook))
		t.Cleanup(func() { _ = suite.Delete(context.Background(), webhook) })
		env.Eventually(t, "a webhook in force", func() string {
			if operation == registrationv1.Update {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"yes"}}}`))
				return refusal(suite.Patch(t.Context(), reference("Deployment", ns, name), patch, client.DryRunAll), "not on Fridays")
			}
			return refusal(suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, name)}, client.DryRunAll), "not on Fridays")
		})
		probes := dryRuns.Load()
		t.Cleanup(func() {
			if dryRuns.Load() == probes || writes.Load() == 0 {
				t.Errorf("the webhook has denied %d requests of the preview and %d of the upgrade, want some of both", dryRuns.Load()-probes, writes.Load())
			}
		})
	}
}
