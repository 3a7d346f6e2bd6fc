package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/pkg/reach"
)

// Services finds the addresses of a service.
type Services interface {
	// Addresses returns each `host:port` to connect to, in the order to try them, one at least. The certificate has to be one for
	// `name.namespace.svc` all the same.
	Addresses(ctx context.Context, namespace, name string, port int32) ([]string, error)
}

// maxAddresses is how many addresses of a service are tried: whoever answers for a name chooses how many there are.
const maxAddresses = 8

// Dial connects to the first of some addresses that accepts a connection. Each has an equal part of the dialer's timeout, so that one
// that does not respond leaves time for the others.
func Dial(ctx context.Context, dialer net.Dialer, addresses []string) (net.Conn, error) {
	addresses = addresses[:min(len(addresses), maxAddresses)]
	dialer.Timeout /= time.Duration(max(len(addresses), 1))
	if len(addresses) == 0 {
		return nil, errors.New("it has no address")
	}
	var problem error
	for _, address := range addresses {
		connection, err := dialer.DialContext(ctx, "tcp", address)
		switch {
		case err == nil:
			return connection, nil
		case problem == nil:
			problem = stableText(err)
		default:
			problem = fmt.Errorf("%w; %w", problem, stableText(err))
		}
	}
	return nil, problem
}

// Names resolves the names of hosts, as net.Resolver.
type Names interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// ClusterServices finds the addresses of Services by reading them.
type ClusterServices struct {
	// Get reads a Service.
	Get func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// Names resolves the names of Services of type ExternalName.
	Names Names
}

var _ Services = (*ClusterServices)(nil)

// Addresses implements Services.
func (s *ClusterServices) Addresses(ctx context.Context, namespace, name string, port int32) ([]string, error) {
	service, err := s.Get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errors.New("it does not exist: create it, or correct clientConfig.service")
	case err != nil:
		return nil, err
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return s.external(ctx, service.Spec.ExternalName, port)
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return nil, errors.New("it is headless (clusterIP None), and has no address: use a Service with a ClusterIP")
	case service.Spec.ClusterIP == "":
		return nil, errors.New("it has no clusterIP yet")
	}
	matches := func(p corev1.ServicePort) bool {
		return p.Port == port && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
	}
	if !slices.ContainsFunc(service.Spec.Ports, matches) {
		return nil, fmt.Errorf("it has no TCP port %d: correct clientConfig.service.port, or its ports", port)
	}
	return []string{net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port)))}, nil
}

// external returns the addresses of the name of a Service. Whoever may write Services in a namespace chooses the name, and must not
// lead the manager to the machine that it runs on, or to those who give credentials to machines. The addresses themselves are dialed,
// so that the name cannot mean another one by then.
func (s *ClusterServices) external(ctx context.Context, name string, port int32) ([]string, error) {
	found, err := s.Names.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, "."))
	if err != nil {
		return nil, fmt.Errorf("resolve its externalName %.253q: %w", name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("its externalName %.253q has no address", name)
	}
	slices.SortFunc(found, netip.Addr.Compare) // the same order in all calls, IPv4 first
	for _, address := range found {
		if reach.Of(address) >= reach.Loopback {
			return nil, fmt.Errorf("its externalName %.253q leads to %s, which is refused: it is loopback, link-local, the address of a cloud "+
				"service, or no address of a server", name, address)
		}
	}
	var out []string
	for _, address := range found {
		text := netip.AddrPortFrom(address.Unmap(), uint16(port)).String()
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, nil
}

// noServices is for layers that cannot read Services.
type noServices struct{}

// Addresses implements Services.
func (noServices) Addresses(context.Context, string, string, int32) ([]string, error) {
	return nil, errors.New("Services cannot be read here")
}
