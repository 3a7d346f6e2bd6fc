package env

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between a manager and the apiserver, and may break what passes.
type Proxy struct {
	server *httptest.Server
	// Kubeconfig leads through the proxy, which adds the rights of the manager's ServiceAccount.
	Kubeconfig string
}

// Forward sends a request on to the apiserver.
type Forward func(r *http.Request) (*http.Response, error)

// ErrCut is the answer of a handler that cuts the connection: the client learns nothing of what became of its request.
var ErrCut = errors.New("the proxy cuts the connection")

// Proxy starts a proxy. handle is given each request, and how to send it on; nil sends all on. Only for a control plane
// of the test's own.
func (e *Env) Proxy(dir string, handle func(r *http.Request, forward Forward) (*http.Response, error)) (*Proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.ManagerKubeconfig())
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config) // adds the token: clients send none without TLS
	if err != nil {
		return nil, err
	}
	forward := Forward(transport.RoundTrip)
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if handle == nil {
				return forward(r)
			}
			return handle(r, forward)
		}),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // cuts the connection
	}
	p := &Proxy{server: httptest.NewServer(reverse)}
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	file, err := os.CreateTemp(dir, "proxy-*.kubeconfig")
	if err != nil {
		return nil, err
	}
	p.Kubeconfig = file.Name()
	if err := file.Close(); err != nil {
		return nil, err
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" {
		return nil, fmt.Errorf("the manager's kubeconfig has no token")
	}
	return p, clientcmd.WriteToFile(*through, p.Kubeconfig)
}

// Cut cuts what passes, watches among it. The proxy goes on.
func (p *Proxy) Cut() { p.server.CloseClientConnections() }

// Close stops the proxy, and cuts what passes.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// IsWrite reports whether a request changes anything that counts: events, leases and reviews of rights are written at times
// of their own, and dry runs change nothing.
func IsWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Get("dryRun") != "" {
		return false
	}
	for _, part := range strings.Split(r.URL.Path, "/") {
		if part == "events" || part == "leases" || strings.HasSuffix(part, "reviews") {
			return false
		}
	}
	return true
}

// IsWatch reports whether a request is a watch.
func IsWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

// Twice sends a request two times, as a network may, and returns the second answer, or the first.
func Twice(r *http.Request, forward Forward, second bool) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var answers [2]*http.Response
	for n := range answers {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if answers[n], err = forward(r); err != nil {
			return nil, err
		}
	}
	keep, drop := answers[0], answers[1]
	if second {
		keep, drop = drop, keep
	}
	_, _ = io.Copy(io.Discard, drop.Body)
	return keep, drop.Body.Close()
}

// Refuse is an answer of the apiserver's form with an HTTP status. A 429 and a 503 ask to come back after a second, as the
// apiserver's do.
func Refuse(r *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	return RefuseWithMessage(r, code, reason, "refused by a test: "+http.StatusText(code))
}

// RefuseWithMessage is Refuse with a text of its own.
func RefuseWithMessage(r *http.Request, code int, reason metav1.StatusReason, text string) (*http.Response, error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text}
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}
