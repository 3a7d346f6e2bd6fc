package crdtarball

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"kudo.dev/kudo/pkg/reach"
)

// checkAddress refuses an address that a host must not have. Named reports whether the administrator has named the host.
func checkAddress(host string, address netip.Addr, named bool) error {
	switch found := reach.Of(address); {
	case found == reach.Never:
		return fail(ReasonRefused, "the address %s is refused: it is link-local, the address of a cloud service, or no address of a server",
			address)
	case found != reach.Public && !named:
		return fail(ReasonRefused, "the address %s of the host %s is refused: it is loopback or private; if this is intended, list the host in "+
			"crd-allowed-hosts (kubectl kudo init --crd-allowed-hosts)", address, quoteShort(host))
	}
	return nil
}

// checkHost refuses hosts that stand for addresses which are refused, before a proxy dials them in our place. Names that
// resolve to such addresses are refused when they are dialed.
func checkHost(u *url.URL, named bool) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return checkAddress(host, address, named)
	}
	last := host[strings.LastIndex(host, ".")+1:]
	switch {
	case strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		// What it means is decided by who resolves it.
		return fail(ReasonRefused, "the host %s is refused: write it in ASCII, such as xn--…", quoteShort(host))
	case named:
	case last == "localhost":
		return checkAddress(host, netip.IPv6Loopback(), false)
	case last != "" && strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		// Some resolvers take numbers of many forms for addresses: 2130706433, 0177.1, 0x7f.1.
		return fail(ReasonRefused, "the host %s is refused: it is a number, not an address", quoteShort(host))
	}
	return nil
}

// dialer dials what its rules allow. They are asked with each address that is about to be dialed, after names were
// resolved: a name that resolves otherwise the second time, and a redirect, come by here too.
type dialer struct {
	net.Dialer
	// inside are hosts that the administrator has named.
	inside Hosts

	mu sync.Mutex
	// proxies of the manager's environment, by host and port: the administrator has named these by setting them.
	proxies map[string]bool
}

func newDialer(access Access) *dialer {
	timeout := access.timeout()
	return &dialer{
		Dialer: net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second, Resolver: access.Resolver},
		inside: Hosts{Names: access.InsideHosts}, proxies: map[string]bool{},
	}
}

// DialContext dials a host and port.
func (d *dialer) DialContext(ctx context.Context, network, target string) (net.Conn, error) {
	d.mu.Lock()
	proxy := d.proxies[strings.ToLower(target)]
	d.mu.Unlock()
	one := d.Dialer
	if !proxy {
		u := &url.URL{Scheme: "https", Host: target}
		named := d.inside.Allows(u)
		one.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fail(ReasonRefused, "the address %s is refused", quoteShort(address))
			}
			return checkAddress(u.Hostname(), at.Addr(), named)
		}
	}
	return one.DialContext(ctx, network, target)
}

// surroundings notes which proxies the environment names.
func (d *dialer) surroundings(find func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	if find == nil {
		return nil
	}
	return func(request *http.Request) (*url.URL, error) {
		proxy, err := find(request)
		if err == nil && proxy != nil {
			d.mu.Lock()
			d.proxies[strings.ToLower(net.JoinHostPort(proxy.Hostname(), proxyPort(proxy)))] = true
			d.mu.Unlock()
		}
		return proxy, err
	}
}

func proxyPort(u *url.URL) string {
	if u.Port() == "" && strings.HasPrefix(u.Scheme, "socks5") {
		return "1080"
	}
	return port(u)
}
