package explore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/cmd/explore-sample/sample"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// clientCertificate writes a certificate that a manager may show, for manager.example.com, and returns its files.
func clientCertificate(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	pair, bundle, err := sample.SelfSigned([]string{"manager.example.com"}, time.Now())
	env.Must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	env.Must(t, err)
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	env.Must(t, os.WriteFile(certFile, bundle, 0o600))
	env.Must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	return certFile, keyFile
}

// restartManager ends the manager of the control plane, and starts one with other flags until the test ends.
func restartManager(t testing.TB, flags ...string) {
	t.Helper()
	local := func(args ...string) {
		if out, err := suite.Local(args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	local("kill", "manager")
	process := suite.Manager(append([]string{"--leader-elect=false", "--webhook-port=0", "--cache-dir", t.TempDir()}, flags...)...)
	env.Must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		local("start", "manager")
	})
}

// forwardProxy forwards connections, and counts them.
func forwardProxy(t testing.TB) (url string, forwarded *atomic.Int64) {
	t.Helper()
	forwarded = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "no connection", http.StatusBadGateway)
			return
		}
		defer func() { _ = to.Close() }()
		forwarded.Add(1)
		w.WriteHeader(http.StatusOK)
		from, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = from.Close() }()
		go func() { _, _ = io.Copy(to, buffered) }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(s.Close)
	return s.URL, forwarded
}

var _ = It("A manager shows its certificate to webhooks, by its proxy, and bounds how long it waits for them (C68)", Serial, func() {
	t := GinkgoTB()
	if !suite.IsDisposable() {
		Skip("needs a manager that may be ended, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	define(t, gadgets)
	certFile, keyFile := clientCertificate(t)
	certificate, bundle, err := sample.SelfSigned([]string{"127.0.0.1"}, time.Now())
	env.Must(t, err)
	var shown atomic.Value
	answers := make(chan struct{})
	operations := server.Operations{v1alpha1.ExploreHealthy: func(ctx context.Context, _ *server.Request) (*v1alpha1.ExploreResponse, error) {
		select {
		case <-answers:
		case <-ctx.Done():
		}
		return server.Healthy(true, ""), nil
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.TLS.PeerCertificates[0].DNSNames[0])
		operations.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	hook := gadgetHook("[ExploreHealthy]", s.URL, base64.StdEncoding.EncodeToString(bundle))
	configure(t, strings.Replace(hook, "timeoutSeconds: 1\n", "timeoutSeconds: 10\n", 1))

	ns := suite.NewNamespace(t)
	i := install(t, operator(ns, [][2]string{{"gadget", gadget}}, gen.Param("SIZE", "3", "")), nil)
	says(t, i, "its health is not known", "certificate required")
	proxy, forwarded := forwardProxy(t)
	restartManager(t, "--explore-client-cert-file", certFile, "--explore-client-key-file", keyFile, "--explore-proxy", proxy, "--explore-max-timeout=1s")
	says(t, i, "its health is not known", "--explore-max-timeout")
	close(answers)
	complete(t, i, 1)
	if shown.Load() != "manager.example.com" || forwarded.Load() == 0 {
		t.Errorf("the webhook has seen the certificate of %v, and the proxy has forwarded %d connections", shown.Load(), forwarded.Load())
	}
})
