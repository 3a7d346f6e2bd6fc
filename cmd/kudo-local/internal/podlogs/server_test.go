package podlogs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

// lab has one pod.
var lab = PodsFn(func(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	switch {
	case name == "broken":
		return nil, errors.New("no API server")
	case namespace != "lab" || name != "report":
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return report("a\nb\n", running(), corev1.ContainerState{}), nil
})

func TestHandler(t *testing.T) {
	tests := []struct {
		reason, method, path string
		code                 int
		body                 string
	}{
		{"a log", http.MethodGet, "/containerLogs/lab/report/main", http.StatusOK, "a\nb\n"},
		{"the options are those of the API", http.MethodGet, "/containerLogs/lab/report/main?tailLines=1&limitBytes=1&follow=true", http.StatusOK, "b"},
		{"options of another form", http.MethodGet, "/containerLogs/lab/report/main?tailLines=x", http.StatusBadRequest, "decoding the options"},
		{"options that have no meaning", http.MethodGet, "/containerLogs/lab/report/main?tailLines=-1", http.StatusUnprocessableEntity, "tailLines"},
		{"no run before", http.MethodGet, "/containerLogs/lab/report/main?previous=true", http.StatusBadRequest, "previous terminated container"},
		{"no such pod", http.MethodGet, "/containerLogs/lab/other/main", http.StatusNotFound, "not found"},
		{"the API fails", http.MethodGet, "/containerLogs/lab/broken/main", http.StatusInternalServerError, "no API server"},
		{"nothing else is there", http.MethodPost, "/exec/lab/report/main?command=id", http.StatusNotImplemented, "no container runs"},
		{"nor are statistics", http.MethodGet, "/stats/summary", http.StatusNotImplemented, "no container runs"},
	}
	for _, tc := range tests {
		w := httptest.NewRecorder()
		Handler(lab).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil))
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || tc.code == http.StatusOK && w.Body.String() != tc.body {
			t.Errorf("%s: %d %q, want %d %q", tc.reason, w.Code, w.Body, tc.code, tc.body)
		}
	}
}

// TestServe: the server speaks to the API server only, and ends with its context.
func TestServe(t *testing.T) {
	store, err := pki.Open(t.TempDir(), net.IPv4(10, 96, 0, 1), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := Files{Cert: store.CertFile(pki.PodLogsServer), Key: store.KeyFile(pki.PodLogsServer), ClientCA: store.CertFile(pki.PodLogsCA)}.TLS()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- Serve(ctx, listener, config, lab) }()

	tests := []struct {
		reason, pair string
		want         string
	}{
		{"the API server", pki.PodLogsClient, "a\nb\n"},
		{"a stranger", "", "certificate required"},
		{"the administrator of the cluster, whose authority signs for users, too", pki.Admin, "tls: "},
		{"a server of the cluster", pki.Serving, "tls: "},
	}
	for _, tc := range tests {
		if got := ask(t, store, tc.pair, listener.Addr().String()); !strings.Contains(got, tc.want) {
			t.Errorf("%s gets %q, want %q", tc.reason, got, tc.want)
		}
	}
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ended with %v", err)
	}
	if c, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the port is still listened on")
	}
}

// ask returns the answer of the server to a client with a pair, or its error.
func ask(t *testing.T, store *pki.Store, pair, address string) string {
	t.Helper()
	ca, err := os.ReadFile(store.CertFile(pki.PodLogsCA))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ca)
	if pair != "" {
		cert, err := tls.LoadX509KeyPair(store.CertFile(pair), store.KeyFile(pair))
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Get(fmt.Sprintf("https://%s/containerLogs/lab/report/main", address))
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
