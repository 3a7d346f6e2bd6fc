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
)

// insideRanges are addresses of this machine and of networks that are not the internet (RFC 6890): the API server and
// its neighbors have them, and the manager reaches what its tenants do not.
var insideRanges = prefixes("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24",
	"198.18.0.0/15", "fc00::/7", "fec0::/10", "64:ff9b:1::/48")

// neverRanges are addresses of no server, link-local ones, and those at which clouds hand out credentials.
var neverRanges = prefixes("0.0.0.0/8", "::/128", "169.254.0.0/16", "fe80::/10", "224.0.0.0/4", "ff00::/8", "240.0.0.0/4",
	"fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// embeddings are ranges of IPv6 whose addresses stand for one of IPv4, which begins at a byte: NAT64 (RFC 6052 and RFC
// 8215), 6to4 (RFC 3056), IPv4-compatible (RFC 4291) and IPv4-translated (RFC 2765) addresses.
var embeddings = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("64:ff9b:1::/48"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
}

// reach says who may dial an address.
type reach int

const (
	// reachPublic addresses may be dialed.
	reachPublic reach = iota
	// reachInside addresses may be dialed for hosts that the administrator has named.
	reachInside
	// reachNever addresses are never dialed.
	reachNever
)

// reachOf is the narrowest reach of an address and of that which it stands for.
func reachOf(address netip.Addr) reach {
	plain := address.Unmap().WithZone("")
	if !plain.IsValid() {
		return reachNever
	}
	in := func(ranges []netip.Prefix) bool {
		for _, r := range ranges {
			if r.Contains(plain) {
				return true
			}
		}
		return false
	}
	out := reachPublic
	if in(insideRanges) {
		out = reachInside
	}
	if in(neverRanges) {
		return reachNever
	}
	if plain.Is6() && !plain.IsLoopback() {
		sixteen := plain.As16()
		for _, e := range embeddings {
			if e.prefix.Contains(plain) {
				out = max(out, reachOf(netip.AddrFrom4([4]byte(sixteen[e.at:e.at+4]))))
			}
		}
	}
	return out
}

// checkAddress refuses an address that a host must not have. Named reports whether the administrator has named the host.
func checkAddress(host string, address netip.Addr, named bool) error {
	switch reach := reachOf(address); {
	case reach == reachNever:
		return fail(ReasonRefused, "the address %s is refused: it is link-local, the address of a cloud service, or no address of a server",
			address)
	case reach == reachInside && !named:
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
