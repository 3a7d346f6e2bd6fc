package crdtarball

import (
	"net/http"
	"net/url"
	"strings"
)

// knownRealms are the token hosts of registries that everybody uses, and that do not issue tokens themselves.
var knownRealms = map[string]string{"registry-1.docker.io": "auth.docker.io"}

// registryGuard keeps what the registry client sends to the registry, and to the token hosts that the administrator has
// listed. It stands below the client, so that none of its ways to ask another host is forgotten: realms, redirects, links.
type registryGuard struct {
	origin *url.URL
	realms Hosts
}

// isOwn reports whether a URL is of the registry itself.
func (g *registryGuard) isOwn(u *url.URL) bool { return u.Scheme == "https" && sameHost(g.origin, u) }

// isRealm reports whether a URL is of a token host that the administrator has listed.
func (g *registryGuard) isRealm(u *url.URL) bool {
	return u.Scheme == "https" && (g.realms.Allows(u) || knownRealms[g.origin.Hostname()] == strings.ToLower(u.Host))
}

// check refuses a request that the registry client makes to a host that it must not ask:
//
//	host                 first request   after a redirect
//	the registry         sent            sent
//	a listed realm       sent            without credentials
//	any other            refused         without credentials, and GET or HEAD only
func (g *registryGuard) check(request *http.Request) error {
	u, redirected := request.URL, request.Response != nil
	switch {
	case g.isOwn(u), g.isRealm(u) && !redirected:
		return nil
	case !redirected:
		return fail(ReasonRefused, "realm %s is not a host of %s: it would get the credentials of the registry; if it issues its tokens, list it in oci-token-realms", u.Host, g.origin.Host)
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		return fail(ReasonRefused, "%s redirects a %s to %s, another host", request.Response.Request.URL.Host, request.Method, u.Host)
	}
	return nil
}

// withheld returns a request as it may be sent: one that a redirect has led elsewhere carries no credentials.
func (g *registryGuard) withheld(request *http.Request) *http.Request {
	if g.isOwn(request.URL) || request.Response == nil {
		return request
	}
	plain := request.Clone(request.Context())
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		plain.Header.Del(name)
	}
	return plain
}
