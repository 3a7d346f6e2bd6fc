package webhook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// kinds are the resources that the tests' cluster has: by kind, the plural name; Bar has no namespace.
type kinds map[string]string

var errNoKind = errors.New("the cluster does not have the kind")

func (k kinds) Resource(_ context.Context, kind schema.GroupVersionKind) (string, bool, error) {
	name, ok := k[kind.Kind]
	if !ok {
		return "", false, errNoKind
	}
	return name, kind.Kind != "Bar", nil
}

var cluster = kinds{"Foo": "foos", "Bar": "bars", "Stranger": "strangers"}

// secure serves a handler over TLS, and returns the client configuration that finds it.
func secure(t testing.TB, handler http.Handler) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(s.URL), CABundle: bundleOf(s)}
}

func bundleOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// hookOf is a webhook for all operations on Foos; modifiers change it.
func hookOf(client admissionregistrationv1.WebhookClientConfig, modify ...func(*v1alpha1.ResourceExploringWebhook)) v1alpha1.ResourceExploringWebhook {
	h := v1alpha1.ResourceExploringWebhook{
		Name: "foo.example.com", ClientConfig: client, ExploreReviewVersions: []string{"v1alpha1"},
		Rules: []v1alpha1.RuleWithOperations{{
			Operations: []v1alpha1.OperationType{v1alpha1.AnyOperation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"foo.example.com"}, APIVersions: []string{"*"}, Resources: []string{"foos"}},
		}},
	}
	for _, m := range modify {
		m(&h)
	}
	return h
}

func ignore(h *v1alpha1.ResourceExploringWebhook) {
	h.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
}

func named(name string) func(*v1alpha1.ResourceExploringWebhook) {
	return func(h *v1alpha1.ResourceExploringWebhook) { h.Name = name }
}

func configuration(name string, hooks ...v1alpha1.ResourceExploringWebhook) v1alpha1.ResourceExploringWebhookConfiguration {
	return v1alpha1.ResourceExploringWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// layerOf makes a layer with one configuration, "c", and a clock that stands still.
func layerOf(t testing.TB, o Options, hooks ...v1alpha1.ResourceExploringWebhook) (*Layer, *testclock.FakeClock) {
	t.Helper()
	clock := testclock.NewFakeClock(epoch)
	if o.Resources == nil {
		o.Resources = cluster
	}
	if o.Clock == nil {
		o.Clock = clock
	}
	l := New(o)
	t.Cleanup(l.Close)
	l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", hooks...)})
	return l, clock
}

const (
	desiredFoo  = `{"apiVersion":"foo.example.com/v1","kind":"Foo","metadata":{"name":"f","namespace":"n","uid":"u","labels":{"app":"a"}},"spec":{"replicas":1,"big":9007199254740993,"list":[1,2],"none":null}}`
	observedFoo = `{"apiVersion":"foo.example.com/v1","kind":"Foo","metadata":{"name":"f","namespace":"n","uid":"u"},"spec":{"replicas":5,"node":"x"},"status":{"phase":"Ready"}}`
)

// requestOf makes a request about a Foo.
func requestOf(t testing.TB, operation explore.Operation) explore.Request {
	t.Helper()
	r := explore.Request{Operation: operation, Object: exploretest.Object(t, desiredFoo)}
	switch operation {
	case explore.Retaining:
		r.Observed = exploretest.Object(t, observedFoo)
	case explore.ReplicaRevising:
		r.Replicas = 3
	case explore.StatusAggregating:
		r.Items = exploretest.Items([]string{"a", "b"}, `{"ready":1}`, "")
	}
	return r
}

// reply answers each review with a response written as JSON, in which UID stands for the request's uid.
func reply(response string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview","response":`+
			strings.ReplaceAll(response, "UID", string(uidOf(r)))+`}`)
	}
}

func uidOf(r *http.Request) types.UID {
	var review v1alpha1.ExploreReview
	if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
		return "none"
	}
	return review.Request.UID
}

// patch is a response with a JSON patch.
func patch(operations string) string {
	text, _ := json.Marshal([]byte(operations))
	return `{"uid":"UID","patchType":"JSONPatch","patch":` + string(text) + `}`
}

// refused asks, and wants an error with a text.
func refused(t *testing.T, reason string, l *Layer, r explore.Request, want string) {
	t.Helper()
	_, known, err := l.Explore(t.Context(), r)
	u, ok := explore.IsUnknown(err)
	if known || !ok || !strings.Contains(err.Error(), want) {
		t.Fatalf("%s: got known %v, error %v: want unknown with %q", reason, known, err, want)
	}
	if u.Layer != explore.Webhook || u.Who == "" {
		t.Errorf("%s: the error must say who was asked: %+v", reason, u)
	}
}
