// Package apiproxy stands between kudo's manager and the apiserver, and may break what passes: tests use it to see what a fault leaves.
package apiproxy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy forwards requests to the apiserver. It listens on loopback only, below a path with a random name, since it adds the
// rights of the manager.
type Proxy struct {
	server *http.Server
	conns  *connections
	// Kubeconfig is the file of a kubeconfig that leads through the proxy.
	Kubeconfig string
}

// Forward sends a request on to the apiserver.
type Forward func(r *http.Request) (*http.Response, error)

// ErrCut is the answer of a handler that cuts the connection: the client learns nothing of what became of its request.
var ErrCut = errors.New("the proxy cuts the connection")

// Start starts a proxy with the rights of a kubeconfig, and writes the kubeconfig that leads through it to a folder. handle is given
// each request, and how to send it on; nil sends all on. An error is a kubeconfig that cannot be read, or has no token.
func Start(kubeconfig, dir string, handle func(r *http.Request, forward Forward) (*http.Response, error)) (*Proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" {
		return nil, fmt.Errorf("the kubeconfig %s has no token", kubeconfig)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	forward, err := newForward(config)
	if err != nil {
		return nil, err
	}
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
	secret := "/" + rand.Text()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{conns: newConnections(), server: &http.Server{Handler: http.StripPrefix(secret, reverse), ReadHeaderTimeout: time.Minute}}
	p.server.ConnState = p.conns.changed
	p.Kubeconfig, err = writeKubeconfig(dir, "http://"+listener.Addr().String()+secret)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// newForward returns a function that sends requests to an apiserver, and adds the token: clients send none without TLS. A request that
// upgrades its connection, as that of a command in a container, needs HTTP/1.1.
func newForward(config *rest.Config) (Forward, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	upgradable := rest.CopyConfig(config)
	upgradable.NextProtos = []string{"http/1.1"}
	upgrades, err := rest.TransportFor(upgradable)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) (*http.Response, error) {
		if isUpgrade(r) {
			return upgrades.RoundTrip(r)
		}
		return transport.RoundTrip(r)
	}, nil
}

// isUpgrade reports whether a request asks for another protocol than HTTP.
func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

func writeKubeconfig(dir, server string) (string, error) {
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	file, err := os.CreateTemp(dir, "proxy-*.kubeconfig")
	if err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return file.Name(), clientcmd.WriteToFile(*through, file.Name())
}

// Cut cuts what passes, watches among it. The proxy continues.
func (p *Proxy) Cut() { p.conns.closeAll() }

// Close stops the proxy, and cuts what passes.
func (p *Proxy) Close() { _ = p.server.Close() }

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// IsWrite reports whether a request changes anything that counts: events, leases and reviews of rights are written at times
// of their own, and neither dry runs nor commands in containers change an object.
func IsWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Get("dryRun") != "" || isUpgrade(r) {
		return false
	}
	for part := range strings.SplitSeq(r.URL.Path, "/") {
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
