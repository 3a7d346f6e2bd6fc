package ui

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// attempts is how many free ports are tried.
const attempts = 16

// listen listens on both loopback addresses, at a port or at any free one. Browsers resolve names below localhost to either address:
// another user of the machine who listened on the other one would get the requests of the page, with its cookie. Where the host is an
// address, that one is enough.
func listen(port uint16, host string) ([]net.Listener, error) {
	for attempt := 1; ; attempt++ {
		first, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err != nil {
			return nil, fmt.Errorf("listen on port %d: %w: use another --port, or none for any free one", port, err)
		}
		if host == "127.0.0.1" {
			return []net.Listener{first}, nil
		}
		_, number, err := net.SplitHostPort(first.Addr().String())
		if err != nil {
			return nil, errors.Join(err, first.Close())
		}
		second, err := net.Listen("tcp6", net.JoinHostPort("::1", number))
		switch {
		case err == nil:
			return []net.Listener{first, second}, nil
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT): // the machine has no IPv6
			return []net.Listener{first}, nil
		}
		_ = first.Close()
		if port != 0 || attempt == attempts {
			return nil, fmt.Errorf("listen on [::1]:%s, to which browsers may resolve the address, too: %w: use another --port, or --host "+
				"127.0.0.1", number, err)
		}
	}
}
