package ui

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

// TestListen shows U7 and U8: both loopback addresses are taken at the port, so that no one else gets what a browser sends to the name.
func TestListen(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("the machine has no IPv6: %v", err)
	}
	taken := probe.Addr().(*net.TCPAddr).Port
	if _, err := listen(uint16(taken), ""); err == nil || !strings.Contains(err.Error(), "listen on [::1]:"+strconv.Itoa(taken)+", to which browsers may resolve the address, too: ") {
		t.Errorf("with [::1]:%d taken by another program, the error is %v", taken, err)
	}
	only, err := listen(uint16(taken), "127.0.0.1")
	if err != nil || len(only) != 1 {
		t.Fatalf("with --host 127.0.0.1, %d listeners, error %v", len(only), err)
	}
	all, err := listen(0, "")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d listeners, error %v", len(all), err)
	}
	port := all[0].Addr().(*net.TCPAddr).Port
	for _, host := range []string{"127.0.0.1", "::1"} {
		if second, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			t.Errorf("another program may listen on %s", second.Addr())
			_ = second.Close()
		}
	}
	for _, l := range append(append(all, only...), probe) {
		_ = l.Close()
	}
}
