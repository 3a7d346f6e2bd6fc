package crdtarball

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kudo.dev/kudo/pkg/registry"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// parseURL reads a URL that another client has written, and refuses what is never right.
func parseURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fail(ReasonSpec, "%s is no URL", field)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fail(ReasonSpec, "%s %s must begin with https:// or http://", field, quoteShort(Display(raw)))
	case u.Hostname() == "":
		return nil, fail(ReasonSpec, "%s has no host", field)
	case u.User != nil:
		return nil, fail(ReasonSpec, "%s has a user or a password in it: put them into a Secret, and its name into secretRef", field)
	}
	return u, nil
}

// clientConfig is what the HTTP client of one fetch is made of.
type clientConfig struct {
	access      Access
	origin      *url.URL
	proxy       string
	ca          []byte
	credentials credentials
	// registry is set for the client of a registry, which answers where its tokens come from.
	registry bool
}

// newClient makes the client of one fetch. It follows redirects within the rules, and reaches allowed hosts only. The
// function ends its connections.
func newClient(c clientConfig) (*http.Client, func(), error) {
	plain, err := newTransport(c, nil)
	if err != nil {
		return nil, nil, err
	}
	g := &hostGuard{hosts: c.access.Hosts, inside: Hosts{Names: c.access.InsideHosts}, origin: c.origin, plain: plain, own: plain}
	if c.registry {
		g.registry = &registry.Guard{
			Origin: c.origin, TokenHosts: Hosts{Names: c.access.TokenRealms}.Allows, Remedy: "list it in oci-token-realms",
		}
	}
	if c.credentials.certificate != nil {
		own, err := newTransport(c, c.credentials.certificate)
		if err != nil {
			return nil, nil, err
		}
		g.own = own
	}
	closeAll := func() { g.plain.CloseIdleConnections(); g.own.CloseIdleConnections() }
	return &http.Client{Transport: g, CheckRedirect: checkRedirect}, closeAll, nil
}

func newTransport(c clientConfig, certificate *tls.Certificate) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.ca) {
			return nil, fail(ReasonSpec, "caBundle holds no certificate in PEM")
		}
	}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	timeout, dialer := c.access.timeout(), newDialer(c.access)
	proxy, err := proxyOf(c, dialer)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy: proxy, DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, ExpectContinueTimeout: time.Second, MaxIdleConns: 4,
		// A tarball is to come as it is, and its digest is that of what comes.
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}, nil
}

// proxyOf returns the proxy that a source names, else that of the surroundings.
func proxyOf(c clientConfig, dialer *dialer) (func(*http.Request) (*url.URL, error), error) {
	if c.proxy == "" {
		return dialer.surroundings(c.access.Proxy), nil
	}
	u, err := parseURL("proxyURL", c.proxy)
	if err != nil {
		return nil, err
	}
	if !c.access.Hosts.Allows(u) {
		return nil, fail(ReasonRefused, "the proxy %s is not among the allowed hosts", u.Host)
	}
	if u.Scheme == "https" && c.credentials.certificate != nil {
		return nil, fail(ReasonSpec, "a client certificate cannot be used through an https proxy, which would read it: use an http proxy")
	}
	if c.credentials.proxyUsername != "" {
		u.User = url.UserPassword(c.credentials.proxyUsername, c.credentials.proxyPassword)
	}
	return http.ProxyURL(u), nil
}

// hostGuard lets requests to allowed hosts through, whoever makes them: the first one, redirects, and requests for tokens.
// The client certificate is shown to the source itself only.
type hostGuard struct {
	hosts Hosts
	// inside are hosts that may have private addresses.
	inside     Hosts
	origin     *url.URL
	plain, own *http.Transport
	// registry is nil for what is no registry.
	registry *registry.Guard
}

// RoundTrip implements http.RoundTripper.
func (g *hostGuard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.check(request); err != nil {
		return nil, err
	}
	if g.registry != nil {
		request = g.registry.Withhold(request)
	}
	if sameHost(g.origin, request.URL) {
		return g.own.RoundTrip(request)
	}
	return g.plain.RoundTrip(request)
}

func (g *hostGuard) check(request *http.Request) error {
	u := request.URL
	if u.Scheme != "http" && u.Scheme != "https" {
		return fail(ReasonRefused, "the scheme of %s is refused: it must be https or http", quoteShort(Display(u.String())))
	}
	if g.registry != nil {
		if err := g.registry.Check(request); err != nil {
			return fail(ReasonRefused, "%w", err)
		}
	}
	// Who lists a realm allows it.
	if token := g.registry != nil && request.Response == nil && g.registry.IsTokenHost(u); !token && !g.hosts.Allows(u) {
		return fail(ReasonRefused, "the host %s is not among the allowed hosts: add it to crd-allowed-hosts (kubectl kudo init "+
			"--crd-allowed-hosts), or name it in the OperatorVersion", u.Host)
	}
	return checkHost(u, g.inside.Allows(u))
}

// sameHost reports whether credentials for one URL may be shown to another: that of the same host and port, or of the
// same host by https in place of http.
func sameHost(origin, u *url.URL) bool {
	if !strings.EqualFold(origin.Hostname(), u.Hostname()) {
		return false
	}
	if origin.Scheme == u.Scheme {
		return port(origin) == port(u)
	}
	return origin.Scheme == "http" && port(origin) == "80" && port(u) == "443"
}

// checkRedirect implements the rules of redirects: at most maxRedirects, never to a weaker scheme, and no credentials
// once another host was asked.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fail(ReasonRefused, "more than %d redirects, the last to %s", maxRedirects, quoteShort(Display(next.URL.String())))
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fail(ReasonRefused, "it redirects from https to %s, which is less secure", quoteShort(Display(next.URL.String())))
	}
	if next.URL.User != nil {
		return fail(ReasonRefused, "it redirects to a URL with a user in it, on %s", next.URL.Host)
	}
	next.Header.Del("Referer")
	for _, request := range slices.Concat(via[1:], []*http.Request{next}) {
		if !sameHost(via[0].URL, request.URL) {
			next.Header.Del("Authorization")
			next.Header.Del("Cookie")
			break
		}
	}
	return nil
}

// networkError puts an error of a request into words, and reports whether to try again.
func networkError(ctx context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.As(cause, &known) {
			return known
		}
		return &Error{Reason: ReasonCanceled, Err: cause, Temporary: true}
	}
	e := &Error{Reason: ReasonConnection, Err: errors.New(withoutSecrets(err)), Temporary: true}
	var (
		verification *tls.CertificateVerificationError
		operation    *net.OpError
		record       tls.RecordHeaderError
		timeout      net.Error
	)
	switch {
	case errors.As(err, &verification):
		e.Reason, e.Temporary = ReasonCertificate, false
		e.Err = fmt.Errorf("the server's certificate is not trusted: %w; set caBundle to the certificate of its issuer%s", verification.Err,
			rootsHint())
	case errors.As(err, &operation) && operation.Op == "remote error": // a TLS alert: the server wants another certificate
		e.Reason, e.Temporary = ReasonCertificate, false
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Temporary = false
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Reason = ReasonTimeout
	}
	return e
}

// rootsHint explains why no server of the internet is trusted where the system has no certificate authorities, as in a
// container image that was made without them; empty otherwise.
func rootsHint() string {
	if roots, err := x509.SystemCertPool(); err == nil && !roots.Equal(x509.NewCertPool()) {
		return ""
	}
	return ". The system that the manager runs on holds no certificate authorities at all: its image needs /etc/ssl/certs/ca-certificates.crt"
}
