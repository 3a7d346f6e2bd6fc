package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// TestServe runs the command until its context ends.
func TestServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- serve(ctx, options{listen: "127.0.0.1:0", hosts: "127.0.0.1", configuration: file}, func(base string) { ready <- base })
	}()
	var base string
	select {
	case base = <-ready:
	case err := <-ended:
		t.Fatalf("ended at once: %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c v1alpha1.ResourceExploringWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	if url := *c.Webhooks[0].ClientConfig.URL; !strings.HasPrefix(url, base) {
		t.Errorf("the configuration names %s, but the command serves at %s", url, base)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.Webhooks[0].ClientConfig.CABundle) {
		t.Fatal("the configuration has no caBundle")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	response, err := client.Get(*c.Webhooks[0].ClientConfig.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got status %d", response.StatusCode)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an end that was asked for is no error: %v", err)
	}
}
