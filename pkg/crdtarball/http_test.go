package crdtarball

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// objects are Secrets and ConfigMaps by `<namespace>/<name>`.
type objects struct {
	secrets    map[string]map[string]string
	configMaps map[string]*corev1.ConfigMap
}

func (o objects) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	values, ok := o.secrets[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for key, value := range values {
		secret.Data[key] = []byte(value)
	}
	return secret, nil
}

func (o objects) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	found, ok := o.configMaps[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return found, nil
}

// heardRequest is what a server saw.
type heardRequest struct{ host, path, authorization, proxyAuthorization, certificate string }

// recorder keeps what servers saw.
type recorder struct {
	mu   sync.Mutex
	seen []heardRequest
}

func (r *recorder) add(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heard := heardRequest{request.Host, request.URL.Path, request.Header.Get("Authorization"), request.Header.Get("Proxy-Authorization"), ""}
	if request.TLS != nil && len(request.TLS.PeerCertificates) > 0 {
		heard.certificate = request.TLS.PeerCertificates[0].Subject.CommonName
	}
	r.seen = append(r.seen, heard)
}

// redirecting serves a tarball at /x, and redirects at other paths as `to` says.
func redirecting(t *testing.T, tlsServer bool, data []byte, to map[string]string) (*httptest.Server, *recorder) {
	t.Helper()
	r := &recorder{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.add(request)
		if target, ok := to[request.URL.Path]; ok {
			http.Redirect(w, request, target, http.StatusFound)
			return
		}
		_, _ = w.Write(data)
	}))
	if tlsServer {
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, r
}

func caOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// clientPair makes a certificate and key in PEM.
func clientPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mirror-client"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}))
}

// newTestSource makes a source that has no digest, even if it is of http.
func newTestSource(t testing.TB, spec v1beta1.HTTPSource, access Access) Source {
	t.Helper()
	source, err := newHTTPSource(spec, "ns", access)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func anyHost(secrets map[string]map[string]string) Access {
	return Access{Hosts: Hosts{Any: true}, InsideHosts: []string{"127.0.0.1"}, Secrets: objects{secrets: secrets}, Timeout: 5 * time.Second}
}

func TestCredentialsAndRedirects(t *testing.T) {
	data := tarball(t, "a.example.org")
	certificate, key := clientPair(t)
	other, atOther := redirecting(t, true, data, nil)
	here := map[string]string{"/away": other.URL + "/x", "/near": "/x"}
	own, atOwn := redirecting(t, true, data, here)
	ca := append(caOf(own), caOf(other)...)
	for name, tc := range map[string]struct {
		secret map[string]string
		want   heardRequest
	}{
		"Basic":       {map[string]string{"username": "u", "password": "hidden"}, heardRequest{authorization: "Basic dTpoaWRkZW4="}},
		"Bearer":      {map[string]string{"token": "hidden\n"}, heardRequest{authorization: "Bearer hidden"}},
		"Certificate": {map[string]string{"tls.crt": certificate, "tls.key": key}, heardRequest{certificate: "mirror-client"}},
	} {
		for _, path := range []string{"/x", "/near", "/away"} {
			t.Run(name+path, func(t *testing.T) {
				atOwn.seen, atOther.seen = nil, nil
				spec := v1beta1.HTTPSource{URL: own.URL + path, CABundle: ca, SecretRef: &v1beta1.SecretReference{Name: "s"}}
				resolve(t, openCache(t, t.TempDir()), newTestSource(t, spec, anyHost(map[string]map[string]string{"ns/s": tc.secret})), "")
				for _, seen := range atOwn.seen {
					if seen.authorization != tc.want.authorization || seen.certificate != tc.want.certificate {
						t.Errorf("the source sees the credentials: %+v", seen)
					}
				}
				for _, seen := range atOther.seen {
					if seen.authorization != "" || seen.certificate != "" {
						t.Errorf("another host sees credentials: %+v", seen)
					}
				}
				if (path == "/away") != (len(atOther.seen) == 1) {
					t.Errorf("asked the other host: %+v", atOther.seen)
				}
			})
		}
	}
}

func TestRedirectRefusals(t *testing.T) {
	data := tarball(t, "a.example.org")
	plain, _ := redirecting(t, false, data, nil)
	loop := map[string]string{"/weak": plain.URL + "/x", "/user": "https://u:hidden@example.org/x?q=hidden", "/file": "ftp://example.org/x", "/meta": "https://169.254.169.254/latest"}
	for i := range 6 {
		loop[fmt.Sprintf("/%d", i)] = fmt.Sprintf("/%d", i+1)
	}
	secure, _ := redirecting(t, true, data, loop)
	for path, want := range map[string]string{"/weak": "which is less secure", "/user": "a URL with a user in it", "/file": "less secure", "/0": "more than 5 redirects", "/meta": "169.254.169.254 is refused"} {
		source := newTestSource(t, v1beta1.HTTPSource{URL: secure.URL + path, CABundle: caOf(secure)}, anyHost(nil))
		e := refuse(t, openCache(t, t.TempDir()), source, "", ReasonRefused, want)
		if e.Temporary || strings.Contains(e.Error(), "hidden") {
			t.Errorf("%s: %v", path, e)
		}
	}
	five := newTestSource(t, v1beta1.HTTPSource{URL: secure.URL + "/1", CABundle: caOf(secure)}, anyHost(nil))
	resolve(t, openCache(t, t.TempDir()), five, "")
}

func TestWrongCA(t *testing.T) {
	own, _ := redirecting(t, true, tarball(t, "a.example.org"), nil)
	certificate, _ := clientPair(t)
	for name, ca := range map[string][]byte{"another": []byte(certificate), "system": nil} {
		source := newTestSource(t, v1beta1.HTTPSource{URL: own.URL + "/x", CABundle: ca}, anyHost(nil))
		if e := refuse(t, openCache(t, t.TempDir()), source, "", ReasonCertificate, "certificate is not trusted"); e.Temporary {
			t.Errorf("%s: %v is temporary, want final", name, e)
		}
	}
	refuse(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: own.URL, CABundle: []byte("x")}, anyHost(nil)), "", ReasonSpec, "caBundle")
}

// TestProxy goes through a proxy that wants a password, which no other host sees, for http and (by CONNECT) for https.
func TestProxy(t *testing.T) {
	data := tarball(t, "a.example.org")
	secure, atSecure := redirecting(t, true, data, nil)
	asked := &recorder{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.add(r)
		if r.Header.Get("Proxy-Authorization") != "Basic cDpoaWRkZW4=" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			_, _ = w.Write(data)
			return
		}
		tunnel(t, w, r.Host)
	}))
	defer proxy.Close()
	secrets := map[string]map[string]string{"ns/s": {"proxyUsername": "p", "proxyPassword": "hidden"}}
	for _, target := range []string{"http://nowhere.invalid/x", secure.URL + "/x"} {
		spec := v1beta1.HTTPSource{URL: target, ProxyURL: proxy.URL, CABundle: caOf(secure), SecretRef: &v1beta1.SecretReference{Name: "s"}}
		resolve(t, openCache(t, t.TempDir()), newTestSource(t, spec, anyHost(secrets)), "")
	}
	if len(asked.seen) != 2 || len(atSecure.seen) != 1 || atSecure.seen[0].proxyAuthorization != "" {
		t.Errorf("the proxy saw %+v, the server %+v", asked.seen, atSecure.seen)
	}
	access := anyHost(nil)
	access.Hosts = Hosts{Names: []string{"nowhere.invalid"}}
	source := newTestSource(t, v1beta1.HTTPSource{URL: "http://nowhere.invalid/x", ProxyURL: proxy.URL}, access)
	refuse(t, openCache(t, t.TempDir()), source, "", ReasonRefused, "is not among the allowed hosts")
	refuse(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: "http://nowhere.invalid/x", ProxyURL: proxy.URL}, anyHost(nil)), "", ReasonStatus, "407")
	access = anyHost(secrets)
	access.Proxy = func(*http.Request) (*url.URL, error) {
		return url.Parse(strings.Replace(proxy.URL, "://", "://p:hidden@", 1))
	}
	resolve(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: "http://nowhere.invalid/x"}, access), "")
}

// tunnel joins a client with a server, as CONNECT asks.
func tunnel(t *testing.T, w http.ResponseWriter, host string) {
	server, err := net.Dial("tcp", host)
	if err != nil {
		t.Error(err)
		return
	}
	client, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = client.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	pipe := func(to, from net.Conn) {
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			if _, e := to.Write(buffer[:n]); err != nil || e != nil {
				_, _ = to.Close(), from.Close()
				return
			}
		}
	}
	go pipe(server, client)
	go pipe(client, server)
}

func TestRetry(t *testing.T) {
	data := tarball(t, "a.example.org")
	for name, tc := range map[string]struct {
		reason   string
		answers  []int
		requests int64
		err      string
		wait     time.Duration
	}{
		"Unavailable": {"5xx is tried again", []int{503, 500}, 3, "", 0},
		"TooMany":     {"429 is tried again, as asked", []int{429}, 2, "", 7 * time.Second},
		"Often":       {"not for ever", []int{502, 502, 502, 502, 502}, 4, "answers 502 Bad Gateway (attempt 4 of 4)", 0},
		"NotFound":    {"404 is not", []int{404}, 1, "answers 404 Not Found: check the URL", 0},
		"Forbidden":   {"403 is not", []int{403}, 1, "check the credentials", 0},
		"NoContent":   {"204 is no tarball", []int{204}, 1, "answers 204", 0},
		"Long":        {"who asks for an hour is left alone", []int{-429}, 1, "answers 429", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]byte{"/x": data})
			s.before = func(w http.ResponseWriter, _ *http.Request) bool {
				n := int(s.requests.Load())
				if n > len(tc.answers) {
					return false
				}
				w.Header().Set("Retry-After", "7")
				if tc.answers[n-1] < 0 {
					w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				}
				w.WriteHeader(max(tc.answers[n-1], -tc.answers[n-1]))
				return true
			}
			fake := testclock.NewFakeClock(time.Now())
			c := openCache(t, t.TempDir(), func(o *Options) {
				o.Retry, o.Clock = Retry{Attempts: 4, InitialDelay: time.Second, MaxDelay: time.Minute}, fake
			})
			done := make(chan error, 1)
			var attempts []int
			go func() {
				_, err := c.Resolve(context.Background(), Request{Source: fromURL(t, s.URL+"/x"), Progress: func(p Progress) {
					attempts = append(attempts, p.Attempt)
					if (p.Last == nil) != (p.Attempt == 1) {
						t.Errorf("progress tells why it is tried again: %+v", p)
					}
				}})
				done <- err
			}()
			start := fake.Now()
			err := stepUntil(t, fake, done)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || s.requests.Load() != tc.requests {
				t.Errorf("%s: %d requests, error %v", tc.reason, s.requests.Load(), err)
			}
			if passed := fake.Since(start); passed < tc.wait {
				t.Errorf("%s: waited %s only", tc.reason, passed)
			}
			if int64(len(attempts)) != tc.requests {
				t.Errorf("%s: attempts %v", tc.reason, attempts)
			}
		})
	}
}

// stepUntil lets the clock advance while a timer waits for it.
func stepUntil(t *testing.T, fake *testclock.FakeClock, done <-chan error) error {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Millisecond):
			if fake.HasWaiters() {
				fake.Step(time.Second)
			}
		}
	}
	t.Fatal("it does not end")
	return nil
}

func TestBackOff(t *testing.T) {
	r := Retry{InitialDelay: time.Second, MaxDelay: 10 * time.Second}.withDefaults()
	for _, tc := range []struct {
		attempt int
		random  float64
		asked   time.Duration
		want    time.Duration
	}{{1, 0, 0, 500 * time.Millisecond}, {1, 1, 0, time.Second}, {3, 0.5, 0, 3 * time.Second}, {30, 1, 0, 10 * time.Second}, {1, 0, 8 * time.Second, 8 * time.Second}} {
		if got := r.wait(tc.attempt, tc.random, tc.asked); got != tc.want {
			t.Errorf("after attempt %d: %s, want %s", tc.attempt, got, tc.want)
		}
	}
}

func TestSilence(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, nil)
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/half" {
			_, _ = w.Write(make([]byte, 10))
			w.(http.Flusher).Flush()
		}
		<-release
		return true
	}
	defer close(release)
	for _, path := range []string{"/none", "/half"} {
		source := newTestSource(t, v1beta1.HTTPSource{URL: s.URL + path}, Access{Hosts: Hosts{Any: true}, InsideHosts: []string{"127.0.0.1"}, Timeout: 50 * time.Millisecond})
		if e := refuse(t, openCache(t, t.TempDir()), source, "", ReasonTimeout, ""); !e.Temporary {
			t.Errorf("%s: %v may go away", path, e)
		}
	}
}

func TestTooLarge(t *testing.T) {
	data := tarball(t, "a.example.org")
	s := serve(t, map[string][]byte{"/x": data})
	dir := t.TempDir()
	c := openCache(t, dir, func(o *Options) { o.Limits.Compressed = int64(len(data)) - 1 })
	refuse(t, c, fromURL(t, s.URL+"/x"), "", ReasonArchive, "more than the")
	s.before = func(w http.ResponseWriter, _ *http.Request) bool { // without a length
		w.(http.Flusher).Flush()
		_, _ = w.Write(data)
		return true
	}
	refuse(t, c, fromURL(t, s.URL+"/x"), "", ReasonArchive, "more than the")
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}
