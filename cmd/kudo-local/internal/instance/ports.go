package instance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges from which systems give ports to
// outgoing connections, so that none of those takes one while its server is
// down.
const (
	firstPort = 20000
	lastPort  = 31999
)

// Free reports whether a server could listen on a port now.
func Free(port int) bool {
	l, err := net.Listen("tcp", Address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Address is the host and port of a server of an instance: all of them are on
// loopback.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// EnsurePorts gives a port to each use that has none, or whose port another
// process listens on; inUse says which of them our own components listen on
// now. It returns the uses whose port has changed.
func (i *Instance) EnsurePorts(uses []string, inUse func(use string) bool) (moved []string, err error) {
	taken, err := i.portsOfAll()
	if err != nil {
		return nil, err
	}
	for _, use := range uses {
		old, had := i.Ports[use]
		if had && (inUse(use) || Free(old)) {
			continue
		}
		port, err := pick(taken)
		if err != nil {
			return nil, err
		}
		taken[port] = true
		i.Ports[use] = port
		if had {
			moved = append(moved, use)
		}
	}
	return moved, nil
}

func pick(taken map[int]bool) (int, error) {
	for range 2000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !taken[port] && Free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d on 127.0.0.1: stop what holds them", firstPort, lastPort)
}

// portsOfAll are the ports of all instances in the state folder, also of those
// that are down: they will want them again.
func (i *Instance) portsOfAll() (map[int]bool, error) {
	names, err := List(i.root)
	if err != nil {
		return nil, err
	}
	taken := map[int]bool{}
	for _, port := range i.Ports {
		taken[port] = true
	}
	for _, name := range names {
		other, err := Load(i.root, name)
		if err != nil {
			continue // a broken neighbor must not stop this instance
		}
		for _, port := range other.Ports {
			taken[port] = true
		}
	}
	return taken, nil
}

// EnsureSubnet chooses the number of the networks of a real node, from 1 to 255, unless the instance has one. No other instance in the
// state folder has the same number, and used reports whether the machine has a network of a number.
func (i *Instance) EnsureSubnet(used func(number int) bool) error {
	if i.Subnet != 0 {
		return nil
	}
	names, err := List(i.root)
	if err != nil {
		return err
	}
	taken := map[int]bool{}
	for _, name := range names {
		if other, err := Load(i.root, name); err == nil {
			taken[other.Subnet] = true
		}
	}
	for range 1000 {
		if number := 1 + rand.IntN(255); !taken[number] && !used(number) {
			i.Subnet = number
			return nil
		}
	}
	return errors.New("found no free network 10.201.N.0 for a real node: remove instances by 'kudo-local down --delete'")
}
