// Package registry connects to registries of OCI artifacts, so that credentials reach the registry that they are for, and no other host.
package registry

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// knownTokenHosts are the hosts that issue the tokens of registries that many users have, and that do not issue tokens themselves.
var knownTokenHosts = map[string]string{"registry-1.docker.io": "auth.docker.io"}

// Guard keeps what the client of a registry sends to the registry and its token hosts. It is a transport below the client, so that
// none of the client's ways to another host is forgotten: realms, redirects, the Location of an upload, links to further pages.
type Guard struct {
	// Origin has the scheme, the host and the port of the registry.
	Origin *url.URL
	// TokenHosts reports whether a user has listed the host of a URL as one that gets the credentials.
	TokenHosts func(*url.URL) bool
	// Remedy says how a user lists a token host, in the imperative.
	Remedy string
	// Anonymous lets tokens be fetched from other hosts, without credentials.
	Anonymous bool
	// Transport sends the requests.
	Transport http.RoundTripper
}

// IsTokenHost reports whether a URL is of a host that gets the credentials of the registry, to issue a token.
func (g *Guard) IsTokenHost(u *url.URL) bool {
	return u.Scheme == "https" && (g.TokenHosts(u) || knownTokenHosts[g.Origin.Hostname()] == strings.ToLower(u.Host))
}

// isOrigin reports whether a URL is of the registry itself.
func (g *Guard) isOrigin(u *url.URL) bool {
	return u.Scheme == g.Origin.Scheme && strings.EqualFold(u.Hostname(), g.Origin.Hostname()) && port(u) == port(g.Origin)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// RoundTrip implements http.RoundTripper.
func (g *Guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.Check(request); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	return g.Transport.RoundTrip(g.Withhold(request))
}

// Check refuses a request that the client of the registry makes to a host that it must not ask:
//
//	host                 first request                        after a redirect
//	the registry         sent                                 sent
//	a token host         sent                                 without credentials
//	any other            refused; with Anonymous only a GET   without credentials, and GET or HEAD only
//	                     or HEAD without credentials is sent
//
// Hosts other than the registry are asked by https only.
func (g *Guard) Check(request *http.Request) error {
	u, redirected := request.URL, request.Response != nil
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead
	token := g.Anonymous && reads && isAnonymous(request)
	switch {
	case g.isOrigin(u), g.IsTokenHost(u) && !redirected:
		return nil
	case u.Scheme != "https":
		return fmt.Errorf("%s names %s://%s, another host without TLS: refused", g.Origin.Host, u.Scheme, u.Host)
	case !redirected && !token:
		return fmt.Errorf("realm %s is not a host of %s: it would get the credentials of the registry; if it issues its tokens, %s",
			u.Host, g.Origin.Host, g.Remedy)
	case !reads:
		return fmt.Errorf("%s redirects a %s to %s, another host", request.Response.Request.URL.Host, request.Method, u.Host)
	}
	return nil
}

// credentialHeaders are the headers of a request that may be secret.
var credentialHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization"}

func isAnonymous(request *http.Request) bool {
	for _, name := range credentialHeaders {
		if request.Header.Get(name) != "" {
			return false
		}
	}
	return request.URL.User == nil && (request.Body == nil || request.Body == http.NoBody)
}

// Withhold returns a request as it may be sent: without credentials to any host but the registry and its token hosts, after a redirect
// to any host but the registry, and without TLS.
func (g *Guard) Withhold(request *http.Request) *http.Request {
	u := request.URL
	if u.Scheme == "https" && (g.isOrigin(u) || g.IsTokenHost(u) && request.Response == nil) {
		return request
	}
	plain := request.Clone(request.Context())
	plain.URL.User = nil
	for _, name := range credentialHeaders {
		plain.Header.Del(name)
	}
	return plain
}
