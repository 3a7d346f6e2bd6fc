package env

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between a manager and the apiserver, and may break what passes.
type Proxy struct {
	server *httptest.Server
	// Kubeconfig leads through the proxy, with the rights of the manager's ServiceAccount.
	Kubeconfig string
}

// Forward sends a request on to the apiserver.
type Forward func(r *http.Request) (*http.Response, error)

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
	anonymous := rest.AnonymousClientConfig(config) // the token comes with each request
	transport, err := rest.TransportFor(anonymous)
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
	through.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, TokenFile: config.BearerTokenFile}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "manager"}
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

// Close stops the proxy, and cuts what passes.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// IsWrite tells whether a request changes anything that counts: events, leases and reviews of rights are written at times
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
