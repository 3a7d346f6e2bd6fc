package apply

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/test/apitest"
)

// roundTripper sees each request before it is sent.
type roundTripper struct {
	http.RoundTripper
	see func(*http.Request)
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	r.see(request)
	return r.RoundTripper.RoundTrip(request)
}

// TestExists is C63: whether an object exists is one request for metadata, as the account; what cannot be asked is unknown.
func TestExists(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "key", Labels: map[string]string{"app": "tea"}}}
	server := apitest.Start(t, secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	var sent []string
	config := server.Config()
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next, func(r *http.Request) {
			accept := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
			if r.Header.Get("Impersonate-User") != "system:serviceaccount:ns:kudo" || !accept {
				t.Errorf("%s is asked for as %q, and accepts %q", r.URL, r.Header.Get("Impersonate-User"), r.Header.Get("Accept"))
			}
			sent = append(sent, r.Method+" "+r.URL.String()[len(config.Host):])
		}}
	}
	engine, err := NewAccounts(config, nil, NewKinds(server.Mapper(), nil, nil), nil, nil).Engine(Account{Namespace: "ns", Name: "kudo"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason                        string
		apiVersion, kind, namespace   string
		name, selector, request, text string
		want                          bool
	}{
		{"it exists", "v1", "Secret", "ns", "key", "", "GET /api/v1/namespaces/ns/secrets/key", "", true},
		{"it does not", "v1", "Secret", "ns", "lock", "", "GET /api/v1/namespaces/ns/secrets/lock", "", false},
		{"one has the labels", "v1", "Secret", "ns", "", "app=tea", "GET /api/v1/namespaces/ns/secrets?labelSelector=app%3Dtea&limit=1", "", true},
		{"none has them", "v1", "Secret", "ns", "", "app=mate", "GET /api/v1/namespaces/ns/secrets?labelSelector=app%3Dmate&limit=1", "", false},
		{"a kind without namespaces has none", "v1", "Namespace", "other", "ns", "", "GET /api/v1/namespaces/ns", "", true},
		{"a namespace is missing", "v1", "Secret", "", "key", "", "", "Secret has a namespace", false},
		{"a kind is not served", "example.com/v1", "Pot", "ns", "key", "", "", "no matches for kind", false},
		{"a name is a path", "v1", "Secret", "ns", "../key", "", "", `"../key" may not contain '/'`, false},
		{"a namespace is a path", "v1", "Secret", "..", "key", "", "", `".." may not be '..'`, false},
	} {
		sent = nil
		selector, err := labels.Parse(tc.selector)
		if err != nil {
			t.Fatal(err)
		}
		id := ID{schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind), types.NamespacedName{Namespace: tc.namespace, Name: tc.name}}
		got, err := engine.Exists(t.Context(), id, selector)
		if got != tc.want || (err != nil) != (tc.text != "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %t, %v", tc.reason, got, err)
		}
		if diff := cmp.Diff(tc.request, strings.Join(sent, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
