package reach

import (
	"net/netip"
	"testing"
)

// TestOf checks T35: who may dial which address.
func TestOf(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		addresses []string
		want      Reach
	}{
		{"the internet", []string{"1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "64:ff9b::101:101", "2002:101:101::1", "::ffff:1.1.1.1"}, Public},
		{"loopback", []string{"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "::127.0.0.1"}, Loopback},
		{"private networks", []string{"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1", "fec0::1", "198.18.0.1", "192.0.0.8"}, Inside},
		{"shared addresses of carriers", []string{"100.64.0.1", "100.127.255.255"}, Inside},
		{"private ones within IPv6", []string{"::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "64:ff9b:1::101:101", "2002:a00:1::1", "::10.0.0.1", "::ffff:0:10.0.0.1"}, Inside},
		{"link-local", []string{"169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"}, Never},
		{"services of clouds", []string{"fd00:ec2::254", "100.100.100.200", "168.63.129.16"}, Never},
		{"no server's", []string{"0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0.0.0.0"}, Never},
	} {
		for _, address := range tc.addresses {
			if got := Of(netip.MustParseAddr(address)); got != tc.want {
				t.Errorf("%s: the reach of %s is %d, not %d", tc.reason, address, got, tc.want)
			}
		}
	}
	if Of(netip.Addr{}) != Never {
		t.Error("no address at all is dialed")
	}
}
