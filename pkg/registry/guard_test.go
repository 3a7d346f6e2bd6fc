package registry

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func newGuard() *Guard {
	return &Guard{
		Origin:     &url.URL{Scheme: "https", Host: "registry.example.org"},
		TokenHosts: func(u *url.URL) bool { return u.Host == "auth.example.org" },
		Remedy:     "list it",
	}
}

// TestGuard checks S16: an address of another host that a registry names otherwise than by a redirect is not asked, whatever the client wants
// there; with Anonymous it is asked for a token, without credentials.
func TestGuard(t *testing.T) {
	for _, tc := range []struct {
		reason, method, url, body, authorization string
		want, anonymous                          bool
	}{
		{"the registry", http.MethodGet, "https://registry.example.org/v2/a/manifests/b", "", "Basic x", true, true},
		{"the registry with its port", http.MethodPut, "https://Registry.example.org:443/v2/a/manifests/b", "x", "Basic x", true, true},
		{"a listed realm", http.MethodPost, "https://auth.example.org/token", "x", "", true, true},
		{"a listed realm without TLS", http.MethodPost, "http://auth.example.org/token", "x", "", false, false},
		{"a realm of another host (GHSA-28r5-37g7-p6mp)", http.MethodGet, "https://evil.example.org/token", "", "Basic x", false, false},
		{"a realm of another host, without credentials", http.MethodGet, "https://evil.example.org/token", "", "", false, true},
		{"a realm of another host, with credentials in its body", http.MethodPost, "https://evil.example.org/token", "password=x", "", false, false},
		{"a realm of another host, with credentials in its address", http.MethodGet, "https://a:b@evil.example.org/token", "", "", false, false},
		{"a subdomain", http.MethodGet, "https://a.registry.example.org/token", "", "Basic x", false, false},
		{"the Location of an upload (GHSA-xf85-363p-868w)", http.MethodPut, "https://evil.example.org/v2/a/blobs/uploads/1", "x", "", false, false},
		{"a Link to the next page (GHSA-jxpm-75mh-9fp7)", http.MethodGet, "https://evil.example.org/v2/a/tags/list?last=b", "", "Bearer x", false, false},
		{"a Link to another port", http.MethodGet, "https://registry.example.org:8443/v2/a/tags/list?last=b", "", "Bearer x", false, false},
		{"a Link without TLS", http.MethodGet, "http://registry.example.org/v2/a/tags/list?last=b", "", "", false, false},
	} {
		request := newRequest(t, tc.method, tc.url, tc.body, tc.authorization)
		g := newGuard()
		if err := g.Check(request); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.reason, err)
		}
		g.Anonymous = true
		if err := g.Check(request); (err == nil) != tc.anonymous {
			t.Errorf("%s, anonymously: %v", tc.reason, err)
		}
	}
	hub := &Guard{Origin: &url.URL{Scheme: "https", Host: "registry-1.docker.io"}, TokenHosts: func(*url.URL) bool { return false }}
	for address, want := range map[string]bool{"https://auth.docker.io/token": true, "http://auth.docker.io/token": false, "https://auth.docker.io:8443/token": false} {
		if got := hub.IsTokenHost(&url.URL{Scheme: address[:strings.Index(address, ":")], Host: strings.Split(address, "/")[2]}); got != want {
			t.Errorf("%s is a token host: %t", address, got)
		}
	}
}

// TestRedirect checks S16: a redirect to another host is followed without credentials, and only to read.
func TestRedirect(t *testing.T) {
	for _, tc := range []struct {
		reason, method, url string
		refused, credential bool
	}{
		{"within the registry", http.MethodGet, "https://registry.example.org/b", false, true},
		{"to a store (GHSA-vh4v-2xq2-g5cg)", http.MethodGet, "https://store.example.org/b", false, false},
		{"to a subdomain", http.MethodHead, "https://a.registry.example.org/b", false, false},
		{"to a token host", http.MethodGet, "https://auth.example.org/b", false, false},
		{"without TLS", http.MethodGet, "http://store.example.org/b", true, false},
		{"of an upload", http.MethodPut, "https://store.example.org/b", true, false},
		{"of a token request with its body (GHSA-xc97-9f2f-9hrx)", http.MethodPost, "https://store.example.org/b", true, false},
	} {
		var sent *http.Request
		g := newGuard()
		g.Transport = roundTripper(func(r *http.Request) (*http.Response, error) { sent = r; return &http.Response{}, nil })
		body := &closing{Reader: strings.NewReader("x")}
		request := newRequest(t, tc.method, tc.url, "", "Basic x")
		request.Header.Set("Cookie", "a=b")
		request.Body = body
		request.Response = &http.Response{Request: newRequest(t, tc.method, "https://registry.example.org/a", "", "")}
		_, err := g.RoundTrip(request)
		if (err != nil) != tc.refused || tc.refused && !body.closed {
			t.Errorf("%s: %v, and the body is closed: %t", tc.reason, err, body.closed)
		}
		if got := sent != nil && (sent.Header.Get("Authorization") != "" || sent.Header.Get("Cookie") != ""); got != tc.credential {
			t.Errorf("%s: credentials are sent: %t", tc.reason, got)
		}
	}
	g := newGuard()
	g.Origin.Scheme = "http"
	request := newRequest(t, http.MethodGet, "http://registry.example.org/a", "", "Basic x")
	if err := g.Check(request); err != nil || g.Withhold(request).Header.Get("Authorization") != "" {
		t.Errorf("a registry without TLS is asked (%v), without credentials", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func newRequest(t *testing.T, method, address, body, authorization string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if body != "" {
		request, err = http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return request
}
