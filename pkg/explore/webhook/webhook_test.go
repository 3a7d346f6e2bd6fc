package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/server"
)

// allOperations answers every operation, by the library for people who write webhooks.
var allOperations = server.Operations{
	explore.Packing: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
		return edit(r, func(o map[string]any) { o["spec"].(map[string]any)["packed"] = true })
	},
	explore.Retaining: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
		var observed map[string]any
		if err := r.DecodeObserved(&observed); err != nil {
			return nil, err
		}
		return edit(r, func(o map[string]any) {
			o["spec"].(map[string]any)["node"] = observed["spec"].(map[string]any)["node"]
		})
	},
	explore.Healthy: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
		return server.Healthy(false, "its  phase\nis Starting"), nil
	},
	explore.Dependencies: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
		return server.Dependencies(v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: r.Namespace, Name: "s"}), nil
	},
	explore.Replica: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
		return server.Replicas(7, &v1alpha1.ReplicaRequirements{NodeClaim: &v1alpha1.NodeClaim{NodeSelector: map[string]string{"a": "b"}}}), nil
	},
	explore.Components: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
		return server.Components(v1alpha1.Component{Name: "a", Replicas: 2}), nil
	},
	explore.ReplicaRevising: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
		return edit(r, func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = *r.DesiredReplicas })
	},
	explore.Status: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
		return server.Status(map[string]any{"n": int64(9007199254740993)})
	},
	explore.StatusAggregating: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
		return edit(r, func(o map[string]any) { o["status"] = map[string]any{"copies": len(r.AggregatedStatus)} })
	},
}

func edit(r *server.Request, change func(map[string]any)) (*v1alpha1.ExploreResponse, error) {
	var before, after map[string]any
	if err := r.Decode(&before); err != nil {
		return nil, err
	}
	if err := r.Decode(&after); err != nil {
		return nil, err
	}
	change(after)
	return r.Patch(before, after)
}

// TestConformance asks every operation over TLS.
func TestConformance(t *testing.T) {
	l, _ := layerOf(t, Options{}, hookOf(secure(t, allOperations)))
	field := func(want any, path ...string) func(*testing.T, explore.Answer) {
		return func(t *testing.T, a explore.Answer) {
			got, _, _ := unstructured.NestedFieldNoCopy(a.Object.Object, path...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v: -want +got:\n%s", path, diff)
			}
			if big, _, _ := unstructured.NestedInt64(a.Object.Object, "spec", "big"); big != 9007199254740993 {
				t.Errorf("whole numbers keep 64 bits: got %d", big)
			}
			if none, has := a.Object.Object["spec"].(map[string]any)["none"]; !has || none != nil {
				t.Error("null is kept")
			}
			if a.Who != "c/foo.example.com" {
				t.Errorf("the answer must say who gave it: got %q", a.Who)
			}
		}
	}
	value := func(want explore.Answer) func(*testing.T, explore.Answer) {
		want.Who = "c/foo.example.com"
		return func(t *testing.T, a explore.Answer) {
			if diff := cmp.Diff(want, a); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
	checks := map[explore.Operation]func(*testing.T, explore.Answer){
		explore.Packing:           field(true, "spec", "packed"),
		explore.Retaining:         field("x", "spec", "node"),
		explore.ReplicaRevising:   field(int64(3), "spec", "replicas"),
		explore.StatusAggregating: field(int64(2), "status", "copies"),
		explore.Healthy:           value(explore.Answer{Message: "its phase is Starting"}),
		explore.Dependencies:      value(explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "s"}}}),
		explore.Replica:           value(explore.Answer{Replicas: 7, Requirements: &v1alpha1.ReplicaRequirements{NodeClaim: &v1alpha1.NodeClaim{NodeSelector: map[string]string{"a": "b"}}}}),
		explore.Components:        value(explore.Answer{Components: []v1alpha1.Component{{Name: "a", Replicas: 2}}}),
		explore.Status:            value(explore.Answer{Status: map[string]any{"n": int64(9007199254740993)}}),
	}
	var cases []exploretest.Case
	for _, operation := range explore.Operations() {
		cases = append(cases, exploretest.Case{Name: string(operation), Request: requestOf(t, operation), Check: checks[operation]})
	}
	broken, _ := layerOf(t, Options{}, hookOf(secure(t, http.NotFoundHandler())))
	exploretest.Run(t, l, cases...)
	exploretest.Run(t, broken, exploretest.Case{Name: "unknown", Request: requestOf(t, explore.Healthy), Unknown: true})
}

// TestReview is what a webhook gets.
func TestReview(t *testing.T) {
	var got v1alpha1.ExploreReview
	var header http.Header
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		_ = json.NewDecoder(r.Body).Decode(&got)
	})
	l, _ := layerOf(t, Options{}, hookOf(secure(t, handler)))
	for _, operation := range explore.Operations() {
		got = v1alpha1.ExploreReview{}
		r := requestOf(t, operation)
		refused(t, "an empty body is no answer", l, r, "Content-Type")
		q := got.Request
		if got.APIVersion != "config.kudo.dev/v1alpha1" || got.Kind != "ExploreReview" || q == nil || q.UID == "" || q.Operation != operation {
			t.Fatalf("%s: a request that says what it is: %+v", operation, got)
		}
		if q.Kind.Group != "foo.example.com" || q.Kind.Version != "v1" || q.Kind.Kind != "Foo" || q.Name != "f" || q.Namespace != "n" {
			t.Errorf("%s: the request names the object: %+v", operation, q)
		}
		if (q.ObservedObject != nil) != (operation == explore.Retaining) || (q.DesiredReplicas != nil) != (operation == explore.ReplicaRevising) || (q.AggregatedStatus != nil) != (operation == explore.StatusAggregating) {
			t.Errorf("%s: only its own fields are set: %+v", operation, q)
		}
	}
	if header.Get("Content-Type") != "application/json" || header.Get("User-Agent") == "" {
		t.Errorf("the header says what is sent: %v", header)
	}
}

// TestRedirect must not carry the object elsewhere.
func TestRedirect(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		reached := false
		target := secure(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
		client := secure(t, http.RedirectHandler(*target.URL, code))
		l, _ := layerOf(t, Options{}, hookOf(client))
		refused(t, "redirects are refused", l, requestOf(t, explore.Healthy), fmt.Sprintf("it redirects (status %d)", code))
		if reached {
			t.Errorf("status %d: the target of the redirect was asked", code)
		}
	}
}

// TestHuge is an answer over 3 MiB: declared, and not; and a header without end.
func TestHuge(t *testing.T) {
	sent := 0
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"declared": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1099511627776")
			w.WriteHeader(200)
		}, "more than 3 MiB"},
		"streamed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := make([]byte, 1<<16); sent < 1<<30; sent += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 3 MiB"},
		"header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			w.WriteHeader(200)
		}, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := layerOf(t, Options{}, hookOf(secure(t, tc.handler)))
			refused(t, "answers are bounded", l, requestOf(t, explore.Healthy), tc.want)
		})
	}
	if sent >= 1<<26 {
		t.Errorf("an answer is not read to its end once it is too large: %d bytes were sent", sent)
	}
}

// TestTLS is who is believed to be the webhook.
func TestTLS(t *testing.T) {
	handler := reply(`{"uid":"UID","healthy":true}`)
	good := secure(t, handler)
	noBundle, otherBundle := good, good
	noBundle.CABundle = nil
	otherBundle.CABundle = foreignBundle(t)
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	cleartext := good
	cleartext.URL = ptr.To(plain.URL)
	downgraded := good
	downgraded.URL = ptr.To(strings.Replace(plain.URL, "http:", "https:", 1))
	for name, tc := range map[string]struct {
		client admissionregistrationv1.WebhookClientConfig
		want   string
	}{
		"no bundle":      {noBundle, "certificate"},
		"foreign bundle": {otherBundle, "certificate"},
		"http":           {cleartext, "'https' is the only allowed URL scheme"},
		"no TLS":         {downgraded, "HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := layerOf(t, Options{}, hookOf(tc.client))
			refused(t, "only the right certificate is believed", l, requestOf(t, explore.Healthy), tc.want)
		})
	}
}

// TestClientCertificate is offered to a webhook that asks for one.
func TestClientCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(reply(`{"uid":"UID","healthy":true}`))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	client := admissionregistrationv1.WebhookClientConfig{URL: ptr.To(s.URL), CABundle: bundleOf(s)}
	l, _ := layerOf(t, Options{}, hookOf(client))
	refused(t, "a webhook may insist", l, requestOf(t, explore.Healthy), "certificate required")
	l, _ = layerOf(t, Options{Certificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.TLS.Certificates[0], nil }}, hookOf(client))
	if _, known, err := l.Explore(t.Context(), requestOf(t, explore.Healthy)); !known || err != nil {
		t.Errorf("with a certificate it answers: got known %v, error %v", known, err)
	}
}

// resolver finds every service at one address.
type resolver struct {
	address string
	asked   string
}

func (r *resolver) Addresses(_ context.Context, namespace, name string, port int32) ([]string, error) {
	r.asked = fmt.Sprintf("%s/%s:%d", namespace, name, port)
	if r.address == "" {
		return nil, errNoKind
	}
	return []string{r.address}, nil
}

// TestService is asked by the address that the resolver gives, and has to have the service's certificate.
func TestService(t *testing.T) {
	certificate, bundle := certificateFor(t, "hook.ns.svc")
	path := ""
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Host + r.URL.Path
		reply(`{"uid":"UID","healthy":true}`)(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	services := &resolver{address: s.Listener.Addr().String()}
	service := &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "hook", Path: ptr.To("/explore"), Port: ptr.To[int32](8443)}
	client := admissionregistrationv1.WebhookClientConfig{Service: service, CABundle: bundle}
	l, _ := layerOf(t, Options{Services: services}, hookOf(client))
	if _, known, err := l.Explore(t.Context(), requestOf(t, explore.Healthy)); !known || err != nil {
		t.Fatalf("a service answers: got known %v, error %v", known, err)
	}
	if path != "hook.ns.svc:8443/explore" || services.asked != "ns/hook:8443" {
		t.Errorf("asked %s at %s", path, services.asked)
	}
	other := *service
	other.Name = "another"
	l, _ = layerOf(t, Options{Services: services}, hookOf(admissionregistrationv1.WebhookClientConfig{Service: &other, CABundle: bundle}))
	refused(t, "a service has to have its own certificate", l, requestOf(t, explore.Healthy), "another.ns.svc")
	l, _ = layerOf(t, Options{Services: &resolver{}}, hookOf(client))
	refused(t, "a service that is not found", l, requestOf(t, explore.Healthy), "find service ns/hook")
}

// TestBudget is one time for the whole call, whatever the webhook is slow at.
func TestBudget(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"header": func(http.ResponseWriter) {},
		"body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":`)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}, 1), make(chan struct{})
			client := secure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				entered <- struct{}{}
				<-release
			}))
			t.Cleanup(func() { close(release) })
			l, clock := layerOf(t, Options{}, hookOf(client, func(h *v1alpha1.ResourceExploringWebhook) { h.TimeoutSeconds = ptr.To[int32](2) }))
			go func() {
				<-entered
				clock.Step(2 * time.Second)
			}()
			refused(t, "the budget is kept", l, requestOf(t, explore.Healthy), "no whole answer within 2s")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-entered
				cancel()
			}()
			if _, known, err := l.Explore(ctx, requestOf(t, explore.Healthy)); known || err == nil || !strings.Contains(err.Error(), "context canceled") {
				t.Errorf("the caller's context ends a call: got known %v, error %v", known, err)
			}
		})
	}
}

// TestPolicies is who is asked after a webhook that fails.
func TestPolicies(t *testing.T) {
	bad := secure(t, http.NotFoundHandler())
	good := secure(t, reply(`{"uid":"UID","healthy":true}`))
	l, _ := layerOf(t, Options{}, hookOf(good, named("b")), hookOf(bad, named("a"), ignore))
	a, known, err := l.Explore(t.Context(), requestOf(t, explore.Healthy))
	if !known || err != nil || a.Who != "c/b" {
		t.Errorf("with Ignore the next in the alphabet is asked: got %+v, %v, %v", a, known, err)
	}
	l, _ = layerOf(t, Options{}, hookOf(good, named("b")), hookOf(bad, named("a")))
	refused(t, "with Fail no other webhook is asked", l, requestOf(t, explore.Healthy), "webhook c/a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, _ = layerOf(t, Options{}, hookOf(bad, ignore))
	if _, known, err := l.Explore(ctx, requestOf(t, explore.Healthy)); known || err == nil {
		t.Errorf("with Ignore too, the answer is unknown if the context is canceled: got known %v, error %v", known, err)
	}
	if _, _, err := New(Options{Resources: cluster}).Explore(t.Context(), requestOf(t, explore.Healthy)); err == nil || !strings.Contains(err.Error(), "not loaded yet") {
		t.Errorf("before configurations are loaded, answers are unknown: got %v", err)
	}
}
