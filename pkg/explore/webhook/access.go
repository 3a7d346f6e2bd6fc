package webhook

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Access is what an administrator decides about the calls of all webhooks.
type Access struct {
	// CertFile and KeyFile are of the client certificate, in PEM format; both are empty for none. They are read again when they
	// have changed.
	CertFile, KeyFile string
	// Proxy is the URL of the proxy for webhooks with a url; empty for none.
	Proxy string
	// MaxTimeout bounds the timeoutSeconds of all webhooks; 0 is DefaultMaxTimeout.
	MaxTimeout time.Duration
}

// DefaultMaxTimeout is the longest time that a webhook may have.
const DefaultMaxTimeout = v1alpha1.MaxTimeoutSeconds * time.Second

// Apply writes the access into the options of a layer. The errors name the flags of the manager.
func (a Access) Apply(o *Options) error {
	a.MaxTimeout = cmp.Or(a.MaxTimeout, DefaultMaxTimeout)
	if a.MaxTimeout < time.Second || a.MaxTimeout > DefaultMaxTimeout {
		return fmt.Errorf("--explore-max-timeout is %s: it must be from 1s to %s", a.MaxTimeout, DefaultMaxTimeout)
	}
	o.MaxTimeout = a.MaxTimeout
	if a.Proxy != "" {
		proxy, err := parseProxy(a.Proxy)
		if err != nil {
			return err
		}
		o.Proxy = http.ProxyURL(proxy)
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		return errors.New("--explore-client-cert-file and --explore-client-key-file must be set together")
	}
	if a.CertFile == "" {
		return nil
	}
	files := &certificateFiles{cert: a.CertFile, key: a.KeyFile}
	if _, err := files.offer(nil); err != nil {
		return err
	}
	o.Certificate, o.CertificateVersion = files.offer, files.version
	return nil
}

// parseProxy reads the URL of a proxy, which errors do not repeat: it may have a password.
func parseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return nil, errors.New("--explore-proxy must be the URL of a proxy, such as http://proxy.example.org:3128")
	}
	return u, nil
}

// certificateFiles read a client certificate from its files.
type certificateFiles struct {
	cert, key string

	mu   sync.Mutex
	last *tls.Certificate
}

// offer implements tls.Config.GetClientCertificate. While the files are exchanged, one of them may belong to another certificate: then the
// one that was read last is offered.
func (f *certificateFiles) offer(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read, err := f.read()
	switch {
	case err == nil:
		f.last = read
	case f.last == nil:
		return nil, fmt.Errorf("read the client certificate of explore webhooks (--explore-client-cert-file, --explore-client-key-file): %w", err)
	}
	return f.last, nil
}

// version returns a text that differs when the files have changed.
func (f *certificateFiles) version() string {
	out := ""
	for _, name := range []string{f.cert, f.key} {
		if info, err := os.Stat(name); err == nil { // else the certificate that was read last counts
			out += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
		}
	}
	return out
}

func (f *certificateFiles) read() (*tls.Certificate, error) {
	cert, err := readPEM(f.cert)
	if err != nil {
		return nil, err
	}
	key, err := readPEM(f.key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.cert, f.key, err)
	}
	return &pair, nil
}

// maxPEM bounds the size of a file with a certificate or a key, in bytes.
const maxPEM = 1 << 20

func readPEM(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err == nil && len(text) > maxPEM {
		err = fmt.Errorf("%s has more than %d bytes", name, maxPEM)
	}
	return text, err
}
