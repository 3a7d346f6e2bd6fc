package plane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

// prober asks servers whether they are ready: etcd as the API server, and all others as the admin.
type prober struct{ client *http.Client }

func (p *Plane) prober() (*prober, error) {
	roots := x509.NewCertPool()
	for _, name := range []string{pki.CA, pki.EtcdCA} {
		ca, err := os.ReadFile(p.store.CertFile(name))
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority: %w", err)
		}
		roots.AppendCertsFromPEM(ca)
	}
	// A server names the authorities that it takes certificates of, and the client shows the one that fits.
	var clients []tls.Certificate
	for _, name := range []string{pki.Admin, pki.EtcdClient} {
		pair, err := tls.LoadX509KeyPair(p.store.CertFile(name), p.store.KeyFile(name))
		if err != nil {
			return nil, fmt.Errorf("reading the certificate %s: %w", name, err)
		}
		clients = append(clients, pair)
	}
	return &prober{client: &http.Client{
		Timeout: 3 * time.Second,
		Transport: &http.Transport{
			Proxy:             nil, // everything is on loopback
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: clients},
			DisableKeepAlives: true,
		},
	}}, nil
}

// ask returns nil when url answers that all is well.
func (p *prober) ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %.200s", url, response.Status, body)
	}
	return nil
}
