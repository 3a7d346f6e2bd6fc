package repository

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kudo.dev/kudo/pkg/registry"
)

// Client fetches from one repository, or from a URL that belongs to none.
type Client struct {
	repository Repository
	http       *http.Client
	timeout    time.Duration
}

// DefaultTimeout is how long one download may take in all.
const DefaultTimeout = 2 * time.Minute

const (
	// connectTimeout bounds how long a connection is made, and then again its TLS handshake.
	connectTimeout = 15 * time.Second
	// headerTimeout bounds how long a server takes to answer, and how long an idle connection is kept.
	headerTimeout = 30 * time.Second
	maxRedirects  = 5
)

// digestFragment stands before the digest of an archive at the end of its URL: https://host/x.tgz#sha256=….
const digestFragment = "sha256="

// NewClient makes a client of a repository; that is empty for URLs that belong to none. A timeout of zero means
// DefaultTimeout. The error says what is wrong with the file of certificates.
func NewClient(r Repository, timeout time.Duration) (*Client, error) {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CAFile != "" {
		var err error
		if config.RootCAs, err = registry.AddCertificates(nil, r.CAFile); err != nil {
			return nil, fmt.Errorf("certificates of repository %s: %w", r.Name, err)
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: headerTimeout,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 1 << 20, IdleConnTimeout: headerTimeout,
	}
	authorized := &authorized{base: transport, repository: r}
	if r.URL != "" {
		u, err := parseURL(r.URL)
		if err != nil {
			return nil, fmt.Errorf("repository %s: %w", r.Name, err)
		}
		if err := r.readable(u); err != nil { // the file of repositories may have been edited by hand
			return nil, err
		}
		authorized.origin = origin(u)
	}
	return &Client{repository: r, timeout: timeout, http: &http.Client{Transport: authorized, CheckRedirect: checkRedirect}}, nil
}

// Close releases idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// authorized sends credentials to where they belong, and nowhere else, whatever redirects say.
type authorized struct {
	base       *http.Transport
	repository Repository
	origin     string
}

// CloseIdleConnections is what http.Client calls.
func (a *authorized) CloseIdleConnections() { a.base.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Authorization")
	if origin(request.URL) == a.origin {
		switch {
		case a.repository.Token != "":
			request.Header.Set("Authorization", "Bearer "+string(a.repository.Token))
		case a.repository.Username != "":
			request.SetBasicAuth(a.repository.Username, string(a.repository.Password))
		}
	}
	return a.base.RoundTrip(request)
}

// origin is scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "" && u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func checkRedirect(request *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case request.URL.Scheme != "http" && request.URL.Scheme != "https":
		return fmt.Errorf("a redirect to %s, which is no http", redactURL(request.URL))
	case request.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return fmt.Errorf("a redirect from https to %s, which is less safe, is not followed", redactURL(request.URL))
	}
	request.Header.Del("Referer")
	return nil
}

// parseURL reads a URL that can be fetched from. Credentials in it are refused, for URLs are printed and logged.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read: it must be like https://host/folder")
	case u.User != nil:
		u.User = nil
		return nil, fmt.Errorf("the URL of %s holds credentials: give them to kubectl kudo repo add by --username and --password-stdin, or "+
			"--token-stdin", redactURL(u))
	case u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Opaque == "":
	default:
		return nil, fmt.Errorf("%q is not a URL like https://host/folder, or file:///folder", redactURL(u))
	}
	return u, nil
}

// isURL tells URLs from paths and names.
func isURL(text string) bool {
	for _, scheme := range []string{"https://", "http://", "file://"} {
		if len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}

// redactURL is a URL as it is printed: what may be signed into its query or fragment is left out.
func redactURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}

// validators are what a server said about the version of what it sent.
type validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
}

// FetchError says why something could not be had from a URL. It keeps what it wraps from being taken for a fault of the
// cluster.
type FetchError struct {
	// URL is without what may be secret in it.
	URL string
	Err error
}

// Error implements error.
func (e *FetchError) Error() string { return e.URL + ": " + e.Err.Error() }

// Unwrap implements what errors.Is and errors.As ask for.
func (e *FetchError) Unwrap() error { return e.Err }

// statusError is an answer that is not what was asked for.
type statusError struct {
	code   int
	status string
}

// Error implements error.
func (e *statusError) Error() string { return "the server answers " + e.status }

// errNotModified says that what is known already is up to date.
var errNotModified = errors.New("not modified")

// get fetches at most limit bytes. The bytes of archives are taken as they are stored, and others may be compressed on
// their way. The error is errNotModified if they are those that have the validators.
func (c *Client) get(ctx context.Context, u *url.URL, limit int64, asStored bool, known validators) ([]byte, validators, error) {
	if u.Scheme == "file" {
		data, err := readBounded(filepath.FromSlash(u.Path), limit)
		return data, validators{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	data, fresh, err := c.request(ctx, u, limit, asStored, known)
	var wrapped *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // a server that was hung up on may end its answer early, and well
		err = fmt.Errorf("it took longer than %s", c.timeout)
	case err == nil || errors.Is(err, errNotModified):
		return data, fresh, err
	case errors.As(err, &wrapped):
		err = wrapped.Err // the URL is said below, without what may be secret in it
	}
	return nil, validators{}, &FetchError{redactURL(u), err}
}

func (c *Client) request(ctx context.Context, u *url.URL, limit int64, asStored bool, known validators) ([]byte, validators, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, validators{}, err
	}
	request.Header.Set("User-Agent", "kudo")
	if asStored {
		request.Header.Set("Accept-Encoding", "identity")
	}
	if known.ETag != "" {
		request.Header.Set("If-None-Match", known.ETag)
	} else if known.LastModified != "" {
		request.Header.Set("If-Modified-Since", known.LastModified)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, validators{}, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotModified && known != validators{}:
		return nil, known, errNotModified
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, validators{}, fmt.Errorf("%w: credentials are given to kubectl kudo repo add by --username and "+
			"--password-stdin, or --token-stdin", &statusError{response.StatusCode, response.Status})
	case response.StatusCode != http.StatusOK:
		return nil, validators{}, &statusError{response.StatusCode, response.Status}
	case response.ContentLength > limit:
		return nil, validators{}, fmt.Errorf("has %d bytes, more than the %d allowed", response.ContentLength, limit)
	}
	data, err := readAll(response.Body, response.ContentLength, limit)
	return data, validators{response.Header.Get("ETag"), response.Header.Get("Last-Modified")}, err
}

// readAll reads at most limit bytes into memory that is not much larger.
func readAll(body io.Reader, expected, limit int64) ([]byte, error) {
	const step = 1 << 20
	data := make([]byte, 0, min(max(expected, 0)+512, 64*step))
	bounded := io.LimitReader(body, limit+1)
	for {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), len(data)+max(len(data)/2, step))
			copy(grown, data)
			data = grown
		}
		n, err := bounded.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, fmt.Errorf("has more than the %d bytes allowed", limit)
		}
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("was cut short on its way")
		case err != nil:
			return nil, err
		}
	}
}

// digestOf is the SHA-256 in hex.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ownFile reports whether a file of the cache is a regular one.
func ownFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
