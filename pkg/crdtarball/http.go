package crdtarball

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// httpSource downloads a tarball by HTTP or HTTPS.
type httpSource struct {
	spec      v1beta1.HTTPSource
	url       *url.URL
	namespace string
	access    Access
}

func newHTTPSource(spec v1beta1.HTTPSource, namespace string, access Access) (Source, error) {
	u, err := parseURL("httpSource.url", spec.URL)
	if err != nil {
		return nil, err
	}
	if err := checkPin(spec.SHA256); err != nil {
		return nil, err
	}
	s := &httpSource{spec: spec, url: u, namespace: namespace, access: access}
	return s, nil
}

// checkPin refuses what is no SHA-256 in hex.
func checkPin(pin string) error {
	if pin == "" || len(pin) == 64 && strings.Trim(pin, "0123456789abcdef") == "" {
		return nil
	}
	return fail(ReasonSpec, "sha256 %s must be 64 hexadecimal digits in lower case", quoteShort(pin))
}

// Identity implements Source.
func (s *httpSource) Identity() string { return s.spec.URL }

// Pin implements Source.
func (s *httpSource) Pin() string { return s.spec.SHA256 }

// Access implements Source.
func (s *httpSource) Access() string {
	return accessKey(s.namespace, s.spec.SecretRef, s.spec.ProxyURL, s.spec.CABundle, s.access.Hosts)
}

// Fetch implements Source.
func (s *httpSource) Fetch(ctx context.Context, to Target, known Validators) (Fetched, error) {
	secret, err := readCredentials(ctx, s.access.Secrets, s.namespace, s.spec.SecretRef)
	if err != nil {
		return Fetched{}, err
	}
	client, done, err := newClient(clientConfig{access: s.access, origin: s.url, proxy: s.spec.ProxyURL, ca: s.spec.CABundle,
		credentials: secret})
	if err != nil {
		return Fetched{}, err
	}
	defer done()
	ctx, watch := watchSilence(ctx, s.access.timeout())
	defer watch.stop()
	request, err := s.request(ctx, secret, known)
	if err != nil {
		return Fetched{}, err
	}
	// The transport has time limits of its own until the answer begins.
	watch.pause()
	response, err := client.Do(request)
	if err != nil {
		return Fetched{}, networkError(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	conditional := known != Validators{}
	if conditional && response.StatusCode == http.StatusNotModified {
		return Fetched{NotModified: true, Validators: known}, nil
	}
	if response.StatusCode != http.StatusOK {
		return Fetched{}, statusError(response, s.access.now())
	}
	if response.ContentLength >= 0 {
		if err := to.Expect(response.ContentLength); err != nil {
			return Fetched{}, networkError(ctx, err)
		}
	}
	if _, err := io.Copy(to, watch.reader(response.Body)); err != nil {
		return Fetched{}, networkError(ctx, fmt.Errorf("the connection was closed: %w", err))
	}
	return Fetched{Validators: Validators{ETag: response.Header.Get("ETag"), LastModified: response.Header.Get("Last-Modified")}}, nil
}

func (s *httpSource) request(ctx context.Context, secret credentials, known Validators) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.spec.URL, nil)
	if err != nil {
		return nil, fail(ReasonSpec, "httpSource.url is no URL")
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/gzip, application/x-gzip, application/octet-stream, */*;q=0.5")
	switch {
	case secret.token != "":
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(secret.token))
	case secret.username != "":
		request.SetBasicAuth(secret.username, secret.password)
	}
	if known.ETag != "" {
		request.Header.Set("If-None-Match", known.ETag)
	}
	if known.LastModified != "" {
		request.Header.Set("If-Modified-Since", known.LastModified)
	}
	return request, nil
}

// userAgent names the project to servers.
const userAgent = "kudo-crds"

// statusError says what a status means. The body is not shown: it is of any size and content.
func statusError(response *http.Response, now time.Time) *Error {
	code := response.StatusCode
	e := fail(ReasonStatus, "%s answers %d %s%s", response.Request.URL.Host, code, http.StatusText(code), statusHint(code))
	e.Temporary = code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
	if e.Temporary {
		e.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	}
	return e
}

func statusHint(code int) string {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ": check the credentials in the Secret that secretRef names"
	case http.StatusNotFound, http.StatusGone:
		return ": check the URL, and whether a tarball of this version exists"
	case http.StatusProxyAuthRequired:
		return ": the proxy wants proxyUsername and proxyPassword in the Secret that secretRef names"
	case http.StatusNotModified:
		return ", though it was not asked whether anything is newer"
	}
	return ""
}

// retryAfter reads the header of that name: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 24*3600)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// idleTimeout ends a context when a source was silent for too long.
type idleTimeout struct {
	timer  *time.Timer
	limit  time.Duration
	cancel context.CancelCauseFunc
}

func watchSilence(ctx context.Context, limit time.Duration) (context.Context, *idleTimeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &idleTimeout{limit: limit, cancel: cancel}
	s.timer = time.AfterFunc(limit, func() {
		cancel(&Error{Reason: ReasonTimeout, Err: fmt.Errorf("no data received for %s", limit), Temporary: true})
	})
	return ctx, s
}

func (s *idleTimeout) pause() { s.timer.Stop() }

func (s *idleTimeout) stop() {
	s.timer.Stop()
	s.cancel(nil)
}

func (s *idleTimeout) reader(r io.Reader) io.Reader {
	s.timer.Reset(s.limit)
	return &idleReader{s, r}
}

// idleReader starts the time anew with each block of bytes.
type idleReader struct {
	silence *idleTimeout
	r       io.Reader
}

// Read implements io.Reader.
func (h *idleReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if n > 0 {
		h.silence.timer.Reset(h.silence.limit)
	}
	return n, err
}
