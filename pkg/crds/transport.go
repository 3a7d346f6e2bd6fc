package crds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// parseURL reads a URL that somebody has written, and refuses what is never right.
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
}

// newClient makes the client of one fetch. It follows redirects within the rules, and reaches allowed hosts only. The
// function ends its connections.
func newClient(c clientConfig) (*http.Client, func(), error) {
	plain, err := newTransport(c, nil)
	if err != nil {
		return nil, nil, err
	}
	g := &guard{hosts: c.access.Hosts, origin: c.origin, plain: plain, own: plain}
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
	proxy, err := proxyOf(c)
	if err != nil {
		return nil, err
	}
	timeout := c.access.timeout()
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second, Resolver: c.access.Resolver, ControlContext: refuseAddresses}
	return &http.Transport{
		Proxy: proxy, DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, ExpectContinueTimeout: time.Second, MaxIdleConns: 4,
		// A tarball is to come as it is, and its digest is that of what comes.
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}, nil
}

// proxyOf returns the proxy that a source names, else that of the surroundings.
func proxyOf(c clientConfig) (func(*http.Request) (*url.URL, error), error) {
	if c.proxy == "" {
		return c.access.Proxy, nil
	}
	u, err := parseURL("proxyURL", c.proxy)
	if err != nil {
		return nil, err
	}
	if !c.access.Hosts.Allows(u) {
		return nil, fail(ReasonRefused, "the proxy %s is not among the allowed hosts", u.Host)
	}
	if u.Scheme == "https" && c.credentials.certificate != nil {
		return nil, fail(ReasonSpec, "a client certificate cannot be used through a proxy of https, which would get to see it: use a proxy of http")
	}
	if c.credentials.proxyUsername != "" {
		u.User = url.UserPassword(c.credentials.proxyUsername, c.credentials.proxyPassword)
	}
	return http.ProxyURL(u), nil
}

// guard lets requests to allowed hosts through, whoever makes them: the first one, redirects, and requests for tokens.
// The client certificate is shown to the source itself only.
type guard struct {
	hosts      Hosts
	origin     *url.URL
	plain, own *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.check(request.URL); err != nil {
		return nil, err
	}
	if sameHost(g.origin, request.URL) {
		return g.own.RoundTrip(request)
	}
	return g.plain.RoundTrip(request)
}

func (g *guard) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fail(ReasonRefused, "the scheme of %s is refused: it must be https or http", quoteShort(Display(u.String())))
	}
	if !g.hosts.Allows(u) {
		return fail(ReasonRefused, "the host %s is not among the allowed hosts: ask for it to be added to --crd-allowed-hosts, or name it in the OperatorVersion", u.Host)
	}
	// A proxy would dial it in our place.
	if address, err := netip.ParseAddr(u.Hostname()); err == nil {
		return refuseAddress(address)
	}
	return nil
}

// sameHost tells whether credentials for one URL may be shown to another: that of the same host and port, or of the
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
		return fail(ReasonRefused, "it redirects from https to %s, which is weaker", quoteShort(Display(next.URL.String())))
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

// refuseAddresses is called with each address that is about to be dialled, after its name was resolved.
func refuseAddresses(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fail(ReasonRefused, "the address %s is refused", quoteShort(address))
	}
	return refuseAddress(at.Addr())
}

// refuseAddress refuses link-local addresses, at which clouds hand out credentials, and those that are no host's.
func refuseAddress(address netip.Addr) error {
	plain := address.Unmap().WithZone("")
	// An IPv4 address in the well-known prefix of RFC 6052.
	if netip.PrefixFrom(netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}), 96).Contains(plain) {
		sixteen := plain.As16()
		plain = netip.AddrFrom4([4]byte(sixteen[12:]))
	}
	refused := plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()
	switch plain.String() {
	// Services of clouds that hand out credentials, beyond the link-local ones.
	case "fd00:ec2::254", "100.100.100.200", "168.63.129.16":
		refused = true
	}
	if refused {
		return fail(ReasonRefused, "the address %s is refused: it is link-local, or a service of a cloud, or no address of a server", address)
	}
	return nil
}

// networkError puts an error of a request into words, and tells whether to try again.
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
		e.Err = fmt.Errorf("the server's certificate is not trusted: %s; caBundle must hold the certificate that it is signed by", verification.Err)
	case errors.As(err, &operation) && operation.Op == "remote error": // a TLS alert: the server wants another certificate
		e.Reason, e.Temporary = ReasonCertificate, false
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Temporary = false
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Reason = ReasonTimeout
	}
	return e
}
