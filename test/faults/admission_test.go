package faults

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// admit serves a webhook, and returns what a configuration needs to call it for all writes in the testbed.
func (w *testbed) admit(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) (arv1.WebhookClientConfig, *metav1.LabelSelector) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		_ = json.NewEncoder(out).Encode(review)
	}))
	w.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return arv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: ca}, &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}}
}

// everything but kudo's own kinds and what others need.
func everything() []arv1.RuleWithOperations {
	return []arv1.RuleWithOperations{{
		Operations: []arv1.OperationType{arv1.Create, arv1.Update, arv1.Delete},
		Rule:       arv1.Rule{APIGroups: []string{"", "apps", "batch"}, APIVersions: []string{"*"}, Resources: []string{"configmaps", "secrets", "serviceaccounts", "deployments", "jobs"}},
	}}
}

// An admission webhook denies all writes: the plan says whose words those are. When the webhook has gone, a retry ends well.
func TestWebhookDeniesAll(t *testing.T) {
	w := ready(t)
	config, selector := w.admit(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: false, Result: &metav1.Status{Message: "today nothing passes", Code: http.StatusForbidden}}
	})
	hook := &arv1.ValidatingWebhookConfiguration{ObjectMeta: gen.Meta("", w.ns), Webhooks: []arv1.ValidatingWebhook{{
		Name: "deny.example.org", ClientConfig: config, NamespaceSelector: selector, Rules: everything(),
		SideEffects: ptr.To(arv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	w.create(lifecycle.First(w.ns), hook)
	t.Cleanup(func() { _ = suite.Delete(ctx, hook) })
	w.inForce()
	w.create(gen.Instance("i", lifecycle.First(w.ns), nil))
	i := w.await("i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "today nothing passes")
	})
	env.Contains(t, i.Status.AggregatedStatus.Message, "ConfigMap", "deny.example.org")
	env.Must(t, suite.Delete(ctx, hook))
	if i.Status.PlanStatus["deploy"].Status == v1beta1.FatalError {
		suite.MustKudo(t, 0, "plan", "retry", "--instance", "i", "-n", w.ns)
	}
	w.await("i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.Complete })
	w.untouched()
}

// inForce waits until webhooks are asked: a dry run is denied.
func (w *testbed) inForce() {
	w.Helper()
	env.Eventually(w, "a webhook in force", func() string {
		probe := &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "probe")}
		if err := suite.Create(ctx, probe); err == nil && probe.Annotations["example.org/touched"] == "" {
			_ = suite.Delete(ctx, probe)
			return "it is not asked yet"
		} else if err == nil {
			_ = suite.Delete(ctx, probe)
		}
		return ""
	})
}

// A webhook changes all that is written: plans end, and a second run writes nothing anew.
func TestWebhookMutatesAll(t *testing.T) {
	w := ready(t)
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": map[string]string{}},
		{"op": "add", "path": "/metadata/annotations/example.org~1touched", "value": "yes"},
	})
	env.Must(t, err)
	config, selector := w.admit(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		answer := &admissionv1.AdmissionResponse{Allowed: true}
		if r.Operation == admissionv1.Delete {
			return answer
		}
		now := patch
		if strings.Contains(string(r.Object.Raw), `"annotations":{`) {
			now = []byte(`[{"op":"add","path":"/metadata/annotations/example.org~1touched","value":"` + base64.StdEncoding.EncodeToString([]byte(time.Now().String())) + `"}]`)
		}
		answer.Patch, answer.PatchType = now, ptr.To(admissionv1.PatchTypeJSONPatch)
		return answer
	})
	hook := &arv1.MutatingWebhookConfiguration{ObjectMeta: gen.Meta("", w.ns), Webhooks: []arv1.MutatingWebhook{{
		Name: "mutate.example.org", ClientConfig: config, NamespaceSelector: selector, Rules: everything(),
		SideEffects: ptr.To(arv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	w.create(lifecycle.First(w.ns), hook)
	t.Cleanup(func() { _ = suite.Delete(ctx, hook) })
	w.inForce()
	w.create(gen.Instance("i", lifecycle.First(w.ns), nil))
	runs("deploy", 1)(w)
	w.twice(scenario{again: rerun("deploy", 2)})
}
