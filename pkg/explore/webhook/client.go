package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

func serviceHost(namespace, name string) string { return name + "." + namespace + ".svc" }

// portOf is the port of a service; 443 if none is said.
func portOf(s *admissionregistrationv1.ServiceReference) int32 {
	if s.Port == nil {
		return 443
	}
	return *s.Port
}

// caller posts to one webhook.
type caller struct {
	url string
	// client is replaced when no call may continue over its connections.
	client  atomic.Pointer[http.Client]
	slots   chan struct{}
	breaker *breaker
	timeout time.Duration
	// version returns that of the client certificate, and shown is the one that the last call had.
	version func() string
	shown   atomic.Value
}

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

func (l *Layer) newCaller(spec v1alpha1.ResourceExploringWebhook, timeout time.Duration) (*caller, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: l.options.Certificate}
	if bundle := spec.ClientConfig.CABundle; len(bundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, errors.New("clientConfig.caBundle holds no certificate in PEM format")
		}
	}
	// The budget of a call ends a call; the limits here end connecting in the background after it. HTTP/1.1, so that
	// one connection that is dead does not hold up all calls.
	dialer := &net.Dialer{Timeout: timeout}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: timeout, Proxy: l.options.Proxy,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: MaxCalls, IdleConnTimeout: 90 * time.Second,
	}
	c := &caller{slots: make(chan struct{}, MaxCalls), timeout: timeout, version: l.options.CertificateVersion}
	c.shown.Store(c.version())
	c.breaker = &breaker{clock: l.options.Clock, changed: func() { l.options.Changed(l.changeOf(c)) }}
	if s := spec.ClientConfig.Service; s != nil {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			addresses, err := l.options.Services.Addresses(ctx, s.Namespace, s.Name, portOf(s))
			if err != nil {
				return nil, fmt.Errorf("find service %s/%s: %w", s.Namespace, s.Name, err)
			}
			return Dial(ctx, *dialer, addresses)
		}
		u := url.URL{Scheme: "https", Host: net.JoinHostPort(serviceHost(s.Namespace, s.Name), strconv.Itoa(int(portOf(s)))), Path: "/"}
		if s.Path != nil && *s.Path != "" {
			u.Path = *s.Path
		}
		c.url = u.String()
	} else {
		c.url = *spec.ClientConfig.URL
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.client.Store(&http.Client{Transport: transport, CheckRedirect: noRedirect})
	return c, nil
}

// renew has the calls from now on make connections of their own. To close idle connections is not enough: one that is busy at that moment
// would be used again afterwards, and be kept by its use.
func (c *caller) renew() {
	before := c.client.Load()
	transport, _ := before.Transport.(*http.Transport)
	after := *before
	after.Transport = transport.Clone()
	c.client.Store(&after)
	before.CloseIdleConnections()
}

// budgetError is the cause of a context whose budget is spent.
type budgetError struct {
	budget time.Duration
	// limit names the setting that the budget comes from.
	limit string
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("no whole answer within %s (%s)", e.budget, e.limit)
}

// Timeout is as in net.Error.
func (e *budgetError) Timeout() bool { return true }

// budget ends a context by the clock, with a budgetError that names the limit.
func budget(ctx context.Context, c clock.WithDelayedExecution, d time.Duration, limit string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.AfterFunc(d, func() { cancel(&budgetError{d, limit}) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// call posts a body and returns that of the answer. The context has the budget of the call.
func (c *caller) call(ctx context.Context, body []byte) ([]byte, error) {
	if c.breaker.refuses() {
		return nil, errOpen
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%d calls of it run already: %w", MaxCalls, context.Cause(ctx))
	}
	defer func() { <-c.slots }()
	record, err := c.breaker.allow()
	if err != nil {
		return nil, err
	}
	reply, err := c.post(ctx, body)
	if ctx.Err() == nil {
		record(finished)
		return reply, err
	}
	// An answer that slips in while the connection is closed comes too late all the same.
	var spent *budgetError
	if errors.As(context.Cause(ctx), &spent) {
		record(timedOut)
		return nil, spent
	}
	record(abandoned)
	return nil, context.Cause(ctx)
}

func (c *caller) post(ctx context.Context, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "kudo-explore")
	if version := c.version(); c.shown.Swap(version) != version {
		c.renew() // the connections show the former certificate
	}
	response, err := c.client.Load().Do(request)
	if err != nil {
		return nil, stableText(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := acceptable(response); err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", stableText(err))
	}
	if len(reply) > MaxAnswer {
		return nil, errTooLarge
	}
	return reply, nil
}

// stableText leaves out of an error what differs from call to call, such as the local port, so that messages made of it stay.
func stableText(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = fmt.Errorf("ask %s: %w", outer.URL, outer.Err)
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && !lookup.IsNotFound { // its text has the local port of the query
		return fmt.Errorf("look up %s: the DNS server cannot be asked, or gives no answer", lookup.Name)
	}
	var op *net.OpError
	if !errors.As(err, &op) {
		return err
	}
	if op.Addr == nil {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return fmt.Errorf("%s %s: %w", op.Op, op.Addr, op.Err)
}

var errTooLarge = fmt.Errorf("the answer has more than %d MiB", MaxAnswer>>20)

// acceptable judges an answer by its header.
func acceptable(response *http.Response) error {
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return fmt.Errorf("it redirects (status %d): redirects are not followed; set clientConfig to where it leads", code)
	case code != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(response.Body, 256)) // what is there helps; what is not does not matter
		return fmt.Errorf("it answered with status %d and %q: want 200", code, text)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fmt.Errorf("the answer is of Content-Type %.100q: want application/json", response.Header.Get("Content-Type"))
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return fmt.Errorf("the answer is of Content-Encoding %.100q, which was not asked for", encoding)
	}
	if response.ContentLength > MaxAnswer {
		return errTooLarge
	}
	return nil
}
