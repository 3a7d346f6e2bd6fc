package crdtarball

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// foreigner is a server of another host. It keeps what it is sent, and answers as a token service, a store and a registry.
type foreigner struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
	body []byte
	// challenge is the realm that it names when it is asked.
	challenge string
}

func newForeigner(t *testing.T, body []byte) *foreigner {
	f := &foreigner{body: body}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *foreigner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.mu.Lock()
	f.seen = append(f.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header["Authorization"], r.Header["Cookie"], r.PostForm))
	f.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/token"):
		_, _ = w.Write([]byte(`{"token":"pass","access_token":"pass"}`))
	case f.challenge != "" && r.Header.Get("Authorization") == "":
		w.Header().Set("Www-Authenticate", f.challenge)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		_, _ = w.Write(f.body)
	}
}

// secrets reports whether it has seen anything that it must not.
func (f *foreigner) secrets() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.seen, "\n")
	for _, secret := range []string{"hidden", "pass", base64.StdEncoding.EncodeToString([]byte("puller:hidden")), "Bearer", "Basic"} {
		if strings.Contains(all, secret) {
			return true
		}
	}
	return false
}

func (f *foreigner) host() string { return strings.TrimPrefix(f.URL, "https://") }

// T35, S16: where the credentials of a registry go. The foreign host is a real server, on another port: the registry
// client below lets the same host with another port pass.
func TestForeignHostsSeeNoCredentials(t *testing.T) {
	data := tarball(t, "a.example.org")
	basic := map[string]string{"username": "puller", "password": "hidden"}
	docker := func(host string) map[string]string {
		return map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:{"auth":%q,"identitytoken":"hidden"}}}`, host, base64.StdEncoding.EncodeToString([]byte("puller:hidden")))}
	}
	for _, tc := range []struct {
		reason string
		secret func(host string) map[string]string
		answer func(r *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool
		want   string
		asked  bool
	}{
		{"a realm of another host (GHSA-28r5-37g7-p6mp)", func(string) map[string]string { return basic }, realmElsewhere, "is not a host of", false},
		{"a realm of another host, asked by POST", docker, realmElsewhere, "is not a host of", false},
		{"a realm of another host, without credentials", func(string) map[string]string { return nil }, realmElsewhere, "is not a host of", false},
		{"a realm by http on the registry's own host", func(string) map[string]string { return basic }, realmByHTTP, "uses http but registry", false},
		{"the token service redirects", func(string) map[string]string { return basic }, tokenElsewhere, "", true},
		{"the token service redirects a POST with its body (GHSA-xc97-9f2f-9hrx)", docker, tokenElsewhere, "another", false},
		{"the token service redirects to the metadata of a cloud (GHSA-mm27-wq9c-mxxr)", func(string) map[string]string { return basic }, tokenInside, "redirect of token request rejected", false},
		{"a blob is redirected (GHSA-vh4v-2xq2-g5cg)", func(string) map[string]string { return basic }, blobElsewhere, "", true},
		{"a manifest is redirected, and the store wants credentials", func(string) map[string]string { return basic }, manifestElsewhere, "", true},
	} {
		f := newForeigner(t, data)
		r := &hostileRegistry{fakeRegistry: newRegistry(t, data), foreign: f, answer: tc.answer}
		r.Config.Handler = r
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
		source := r.source(t, r.ref(), tc.secret(strings.TrimPrefix(r.URL, "https://")), Hosts{Any: true}, ca...)
		_, err := openCache(t, t.TempDir()).Resolve(t.Context(), Request{Source: source})
		if f.secrets() {
			t.Errorf("%s: the foreign host saw %q", tc.reason, f.seen)
		}
		if (len(f.seen) > 0) != tc.asked {
			t.Errorf("%s: the foreign host was asked %q", tc.reason, f.seen)
		}
		if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// T35: the words, and the host that the administrator has listed.
func TestTokenRealms(t *testing.T) {
	data := tarball(t, "a.example.org")
	f := newForeigner(t, data)
	r := &hostileRegistry{fakeRegistry: newRegistry(t, data), foreign: f, answer: realmElsewhere}
	r.Config.Handler = r
	own := strings.TrimPrefix(r.URL, "https://")
	for _, tc := range []struct {
		reason string
		realms []string
		hosts  Hosts
		want   string
	}{
		{"it is not listed", nil, Hosts{Any: true}, "realm " + f.host() + " is not a host of " + own + ": it would get the credentials of the registry; if it issues its tokens, list it in oci-token-realms"},
		{"another one is listed", []string{"evil.example"}, Hosts{Any: true}, "is not a host of"},
		{"the same host of another port is listed", []string{"127.0.0.1:1"}, Hosts{Any: true}, "is not a host of"},
		{"to be an allowed host is not enough", nil, Hosts{Names: []string{"127.0.0.1"}}, "is not a host of"},
		{"it is listed", []string{f.host()}, Hosts{Any: true}, ""},
		{"a realm that is listed need not be an allowed host", []string{f.host()}, Hosts{Names: []string{own}}, ""},
	} {
		f.seen = nil
		source := v1beta1.OCISource{Ref: r.ref(), CABundle: append(caOf(r.Server), caOf(f.Server)...), SecretRef: &v1beta1.SecretReference{Name: "s"}}
		access := Access{Hosts: tc.hosts, InsideHosts: []string{"127.0.0.1"}, TokenRealms: tc.realms, Timeout: 5 * time.Second,
			Secrets: objects{secrets: map[string]map[string]string{"ns/s": {"username": "puller", "password": "hidden"}}}}
		made, err := newOCISource(source, "ns", access)
		if err != nil {
			t.Fatal(err)
		}
		c := openCache(t, t.TempDir())
		if tc.want != "" {
			refuse(t, c, made, "", ReasonRefused, tc.want)
			if len(f.seen) != 0 {
				t.Errorf("%s: it was asked %q", tc.reason, f.seen)
			}
			continue
		}
		resolve(t, c, made, "")
		if len(f.seen) != 1 || !strings.Contains(f.seen[0], "Basic") {
			t.Errorf("%s: it was asked %q", tc.reason, f.seen)
		}
	}
}

// S5, S16: a manifest that says or is too much.
func TestHostileManifests(t *testing.T) {
	data := tarball(t, "a.example.org")
	for _, tc := range []struct {
		reason string
		text   []byte
		want   string
	}{
		{"too large", []byte(`{"layers":[` + strings.Repeat(" ", maxManifest) + `]}`), "more than"},
		{"a layer of a size that cannot be allocated (GHSA-f36w-mj3v-6jqv)", []byte(`{"layers":[{"mediaType":"x","digest":"sha256:` + sum(data) + `","size":4611686018427387904}]}`), "more than the"},
		{"a negative size", []byte(`{"layers":[{"mediaType":"x","digest":"sha256:` + sum(data) + `","size":-1}]}`), "in a wrong way"},
		{"a digest that is a path", []byte(`{"layers":[{"mediaType":"x","digest":"sha256:../../../x","size":1}]}`), "in a wrong way"},
		{"a size that is a lie", []byte(`{"layers":[{"mediaType":"x","digest":"sha256:` + sum(data) + `","size":7}]}`), ""},
		{"not JSON", []byte(`<html>`), "no manifest"},
	} {
		r := newRegistry(t, data)
		r.open, r.manifest = true, tc.text
		_, err := openCache(t, t.TempDir()).Resolve(t.Context(), Request{Source: r.source(t, r.ref(), nil, Hosts{Any: true})})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// FuzzManifest reads whatever a registry sends as a manifest.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"layers":[{"mediaType":"application/x.tar+gzip","digest":"sha256:` + strings.Repeat("a", 64) + `","size":3}]}`))
	f.Add([]byte(`{"layers":[{"digest":"sha256:../x","size":-1},{}]}`))
	f.Add([]byte(`{"manifests":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		layer, err := parseManifest(text)
		if err == nil && (layer.Size < 0 || layer.Digest.Validate() != nil) {
			t.Errorf("%+v is no layer", layer)
		}
	})
}

// hostileRegistry is a registry that answers some requests in a way of its own.
type hostileRegistry struct {
	*fakeRegistry
	foreign *foreigner
	answer  func(r *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool
}

// ServeHTTP implements http.Handler.
func (r *hostileRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !r.answer(r, r.foreign, w, q) {
		r.fakeRegistry.ServeHTTP(w, q)
	}
}

func challenge(w http.ResponseWriter, realm string) bool {
	w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="lab",scope="repository:lab/crds:pull"`, realm))
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func realmElsewhere(_ *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool {
	return q.Header.Get("Authorization") != "Bearer pass" && challenge(w, f.URL+"/token")
}

func realmByHTTP(r *hostileRegistry, _ *foreigner, w http.ResponseWriter, q *http.Request) bool {
	return q.Header.Get("Authorization") != "Bearer pass" && challenge(w, strings.Replace(r.URL, "https://", "http://", 1)+"/token")
}

func tokenElsewhere(_ *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool {
	if q.URL.Path != "/token" {
		return false
	}
	http.Redirect(w, q, f.URL+"/token", http.StatusTemporaryRedirect)
	return true
}

func tokenInside(_ *hostileRegistry, _ *foreigner, w http.ResponseWriter, q *http.Request) bool {
	if q.URL.Path != "/token" {
		return false
	}
	http.Redirect(w, q, "https://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
	return true
}

func blobElsewhere(_ *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool {
	if !strings.Contains(q.URL.Path, "/blobs/") || q.Header.Get("Authorization") == "" {
		return false
	}
	http.Redirect(w, q, f.URL+"/x", http.StatusTemporaryRedirect)
	return true
}

func manifestElsewhere(_ *hostileRegistry, f *foreigner, w http.ResponseWriter, q *http.Request) bool {
	if !strings.Contains(q.URL.Path, "/manifests/") || q.Header.Get("Authorization") == "" {
		return false
	}
	f.challenge = `Basic realm="lab"`
	http.Redirect(w, q, f.URL+"/x", http.StatusTemporaryRedirect)
	return true
}
