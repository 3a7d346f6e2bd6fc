package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// accessed are the options that an access makes.
func accessed(t testing.TB, a Access) Options {
	t.Helper()
	var o Options
	if err := a.Apply(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// clientFiles are the files of a client certificate.
type clientFiles struct{ cert, key string }

func newClientFiles(t testing.TB) clientFiles {
	return clientFiles{filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")}
}

// write writes a certificate for a name, and returns its bundle. The time of the files tells them from those before.
func (f clientFiles) write(t testing.TB, name string, at time.Time) []byte {
	t.Helper()
	pair, bundle := certificateFor(t, name)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{f.cert: bundle, f.key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return bundle
}

// TestAccessCertificate checks C68: a webhook that asks for a certificate is shown that of the files, also after they have changed, and the
// former one while they do not belong together.
func TestAccessCertificate(t *testing.T) {
	files := newClientFiles(t)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(files.write(t, "first", epoch))
	var shown atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.TLS.PeerCertificates[0].DNSNames[0])
		reply(`{"uid":"UID","healthy":true}`)(w, r)
	}))
	server.Config.ErrorLog = quiet
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	hook := hookOf(nowhere, func(h *v1alpha1.ResourceExploringWebhook) {
		h.ClientConfig.URL, h.ClientConfig.CABundle = ptr.To(server.URL), bundleOf(server)
	})
	l, _ := layerOf(t, accessed(t, Access{CertFile: files.cert, KeyFile: files.key}), hook)
	asks := func(reason, want string) {
		t.Helper()
		if _, known, err := l.Explore(t.Context(), requestOf(t, explore.Healthy)); !known || err != nil || shown.Load() != want {
			t.Errorf("%s: known %t (%v), the server has seen %v, want %s", reason, known, err, shown.Load(), want)
		}
	}
	asks("the certificate of the files", "first")
	files.write(t, "second", epoch.Add(time.Second))
	asks("other files: the open connection is not used any more", "second")
	if err := os.WriteFile(files.key, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	asks("a key of another certificate: the former one", "second")
	files.write(t, "third", epoch.Add(2*time.Second))
	asks("both files are exchanged", "third")

	plain, _ := layerOf(t, accessed(t, Access{}), hook)
	refused(t, "without files, no certificate is shown", plain, requestOf(t, explore.Healthy), "certificate required")
}

// connectProxy forwards connections, and notes for which hosts.
type connectProxy struct {
	mu     sync.Mutex
	hosts  []string
	logins []string
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.hosts, p.logins = append(p.hosts, r.Method+" "+r.Host), append(p.logins, r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	target, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(target, client) }()
	_, _ = io.Copy(client, target)
}

// TestProxy checks C68: a webhook with a url is asked through the proxy, by TLS from end to end, and no password gets into an error.
func TestProxy(t *testing.T) {
	p := &connectProxy{}
	proxy := httptest.NewServer(p)
	t.Cleanup(proxy.Close)
	hook := hookOf(secure(t, reply(`{"uid":"UID","healthy":true}`)))
	address := strings.Replace(proxy.URL, "http://", "http://user:secret@", 1)
	l, _ := layerOf(t, accessed(t, Access{Proxy: address}), hook)
	if _, known, err := l.Explore(t.Context(), requestOf(t, explore.Healthy)); !known || err != nil {
		t.Fatalf("known %t, error %v", known, err)
	}
	l.Close()
	p.mu.Lock()
	want := "CONNECT " + strings.TrimPrefix(*hook.ClientConfig.URL, "https://")
	if len(p.hosts) != 1 || p.hosts[0] != want || p.logins[0] != "Basic dXNlcjpzZWNyZXQ=" {
		t.Errorf("the proxy was asked for %v with %v, want %s with the login of its URL", p.hosts, p.logins, want)
	}
	p.mu.Unlock()
	proxy.Close()
	_, _, err := l.Explore(t.Context(), requestOf(t, explore.Healthy))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a proxy that is down: error %v, want one without the password", err)
	}
}

// TestMaxTimeout checks C68: no call takes longer than the manager allows, and the message names the setting that bounds it.
func TestMaxTimeout(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		seconds int32
		want    string
	}{
		{"a webhook with more time", 30, "no whole answer within 2s (the manager's --explore-max-timeout)"},
		{"a webhook with less time", 1, "no whole answer within 1s (timeoutSeconds)"},
	} {
		g := newGate(t)
		hook := hookOf(secure(t, g), func(h *v1alpha1.ResourceExploringWebhook) { h.TimeoutSeconds = ptr.To(tc.seconds) })
		l, clock := layerOf(t, accessed(t, Access{MaxTimeout: 2 * time.Second}), hook)
		go func() {
			<-g.entered
			clock.Step(2 * time.Second)
		}()
		refused(t, tc.reason, l, requestOf(t, explore.Healthy), tc.want)
	}
}

// TestAccess checks C68: the flags that cannot be used are refused when the manager starts, by their names.
func TestAccess(t *testing.T) {
	files, other := newClientFiles(t), newClientFiles(t)
	files.write(t, "a", epoch)
	other.write(t, "b", epoch)
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxPEM+1), 0o600); err != nil {
		t.Fatal(err)
	}
	const proxy = "--explore-proxy must be the URL of a proxy"
	for _, tc := range []struct {
		reason string
		access Access
		want   string
	}{
		{"nothing", Access{}, ""},
		{"all", Access{files.cert, files.key, "https://proxy.example.org:3128/", 30 * time.Second}, ""},
		{"no key", Access{CertFile: files.cert}, "must be set together"},
		{"no certificate", Access{KeyFile: files.key}, "must be set together"},
		{"no file", Access{CertFile: filepath.Join(t.TempDir(), "none"), KeyFile: files.key}, "no such file"},
		{"a key of another certificate", Access{CertFile: files.cert, KeyFile: other.key}, "private key does not match"},
		{"a file that is no key", Access{CertFile: files.cert, KeyFile: large}, "more than 1048576 bytes"},
		{"a proxy without a scheme", Access{Proxy: "user:secret@proxy:3128"}, proxy},
		{"a proxy of another protocol", Access{Proxy: "ftp://user:secret@proxy"}, proxy},
		{"a proxy without a host", Access{Proxy: "http://:3128"}, proxy},
		{"a proxy with a path", Access{Proxy: "http://user:secret@proxy/path"}, proxy},
		{"text that is no URL", Access{Proxy: "http://user:secret@proxy:port"}, proxy},
		{"no time", Access{MaxTimeout: time.Millisecond}, "--explore-max-timeout is 1ms: it must be from 1s to 30s"},
		{"less than none", Access{MaxTimeout: -time.Second}, "--explore-max-timeout is -1s"},
		{"more than a webhook may have", Access{MaxTimeout: 31 * time.Second}, "--explore-max-timeout is 31s"},
	} {
		err := tc.access.Apply(&Options{})
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
}
