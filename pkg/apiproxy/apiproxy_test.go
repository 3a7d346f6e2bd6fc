package apiproxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// start starts an apiserver that says who asks for what, and a proxy before it. It returns a client of the proxy and its URL.
func start(t *testing.T, handle func(r *http.Request, forward Forward) (*http.Response, error)) (*http.Client, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			echo(w)
			return
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Impersonate-User"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "clusters: [{name: c, cluster: {insecure-skip-tls-verify: true, server: '" + server.URL + "'}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Start(file, t.TempDir(), handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, config.Host
}

// echo upgrades a connection, and sends back what comes.
func echo(w http.ResponseWriter) {
	hijacker, can := w.(http.Hijacker)
	if !can { // HTTP/2
		w.WriteHeader(http.StatusHTTPVersionNotSupported)
		return
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(connection, connection)
}

// TestUpgrade: a command in a container passes, although the apiserver speaks HTTP/2.
func TestUpgrade(t *testing.T) {
	client, url := start(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/namespaces/ns/pods/p/exec", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	if IsWrite(r) {
		t.Error("a command in a container counts as a write")
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	stream, both := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !both {
		t.Fatalf("the answer is %s", answer.Status)
	}
	defer func() { _ = stream.Close() }()
	if _, err := io.WriteString(stream, "hello"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("hello"))
	if _, err := io.ReadFull(stream, text); err != nil || string(text) != "hello" {
		t.Errorf("the answer is %q, %v", text, err)
	}
}

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func TestForward(t *testing.T) {
	client, url := start(t, nil)
	if got, err := get(t, client, url+"/api/v1/pods?watch=1"); err != nil || got != "GET /api/v1/pods?watch=1 Bearer secret ann" {
		t.Errorf("the apiserver was asked %q, %v", got, err)
	}
	host := url[:strings.LastIndex(url, "/")]
	if got, err := get(t, client, host+"/api/v1/pods"); err != nil || strings.Contains(got, "secret") {
		t.Errorf("without the random path, the rights of the manager are given away: %q, %v", got, err)
	}
}

func TestCut(t *testing.T) {
	client, url := start(t, func(r *http.Request, forward Forward) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/cut") {
			return nil, ErrCut
		}
		return forward(r)
	})
	if got, err := get(t, client, url+"/cut"); !errors.Is(err, io.EOF) {
		t.Errorf("the connection was not cut: %q, %v", got, err)
	}
	if _, err := get(t, client, url+"/other"); err != nil {
		t.Error(err)
	}
}

func TestIsWrite(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodPost, "/api/v1/namespaces/a/configmaps", true},
		{http.MethodPatch, "/apis/kudo.dev/v1beta1/namespaces/a/instances/b/status", true},
		{http.MethodDelete, "/api/v1/namespaces/a/configmaps/b", true},
		{http.MethodGet, "/api/v1/namespaces/a/configmaps/b", false},
		{http.MethodPatch, "/api/v1/namespaces/a/configmaps/b?dryRun=All", false},
		{http.MethodPost, "/api/v1/namespaces/a/events", false},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", false},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", false},
	} {
		if got := IsWrite(httptest.NewRequest(tc.method, tc.path, nil)); got != tc.want {
			t.Errorf("%s %s: %t", tc.method, tc.path, got)
		}
	}
}
