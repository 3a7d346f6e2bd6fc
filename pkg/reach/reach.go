// Package reach says who may dial an IP address, by what the address stands for.
package reach

import "net/netip"

// loopbackRanges are addresses of this machine.
var loopbackRanges = prefixes("127.0.0.0/8", "::1/128")

// insideRanges are addresses of networks that are not the internet (RFC 6890): the API server and
// its neighbors have them, and the manager reaches what its tenants do not.
var insideRanges = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24",
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

// Reach says who may dial an address.
type Reach int

const (
	// Public addresses may be dialed.
	Public Reach = iota
	// Inside addresses are of private networks. Of these, and of what is further down, a host needs an administrator's word.
	Inside
	// Loopback addresses are of the machine that dials.
	Loopback
	// Never addresses are never dialed.
	Never
)

// Of returns the narrowest reach of an address and of that which it stands for.
func Of(address netip.Addr) Reach {
	plain := address.Unmap().WithZone("")
	if !plain.IsValid() {
		return Never
	}
	in := func(ranges []netip.Prefix) bool {
		for _, r := range ranges {
			if r.Contains(plain) {
				return true
			}
		}
		return false
	}
	out := Public
	if in(insideRanges) {
		out = Inside
	}
	if in(loopbackRanges) {
		out = Loopback
	}
	if in(neverRanges) {
		return Never
	}
	if plain.Is6() && !plain.IsLoopback() {
		sixteen := plain.As16()
		for _, e := range embeddings {
			if e.prefix.Contains(plain) {
				out = max(out, Of(netip.AddrFrom4([4]byte(sixteen[e.at:e.at+4]))))
			}
		}
	}
	return out
}
