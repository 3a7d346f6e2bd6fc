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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/pkg/reach"
)

// Services finds the address of a service.
type Services interface {
	// Address returns `host:port` to connect to. The certificate has to be one for `name.namespace.svc` all the same.
	Address(ctx context.Context, namespace, name string, port int32) (string, error)
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

// Address implements Services.
func (s *ClusterServices) Address(ctx context.Context, namespace, name string, port int32) (string, error) {
	service, err := s.Get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return "", errors.New("it does not exist: create it, or correct clientConfig.service")
	case err != nil:
		return "", err
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return s.external(ctx, service.Spec.ExternalName, port)
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return "", errors.New("it is headless (clusterIP None), and has no address: use a Service with a ClusterIP")
	case service.Spec.ClusterIP == "":
		return "", errors.New("it has no clusterIP yet")
	}
	matches := func(p corev1.ServicePort) bool {
		return p.Port == port && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
	}
	if !slices.ContainsFunc(service.Spec.Ports, matches) {
		return "", fmt.Errorf("it has no TCP port %d: correct clientConfig.service.port, or its ports", port)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port))), nil
}

// external returns an address of the name of a Service. Whoever may write Services in a namespace chooses the name, and must not lead the
// manager to the machine that it runs on, or to those who give credentials to machines. The address itself is dialed, so that the name
// cannot mean another one by then.
func (s *ClusterServices) external(ctx context.Context, name string, port int32) (string, error) {
	found, err := s.Names.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, "."))
	if err != nil {
		return "", fmt.Errorf("resolve its externalName %.253q: %w", name, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("its externalName %.253q has no address", name)
	}
	for _, address := range found {
		if reach.Of(address) >= reach.Loopback {
			return "", fmt.Errorf("its externalName %.253q leads to %s, which is refused: it is loopback, link-local, the address of a cloud "+
				"service, or no address of a server", name, address)
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)                              // one address for all calls, IPv4 first
	return netip.AddrPortFrom(found[0].Unmap(), uint16(port)).String(), nil //nolint:gosec // validated: a port
}

// noServices is for layers that cannot read Services.
type noServices struct{}

// Address implements Services.
func (noServices) Address(context.Context, string, string, int32) (string, error) {
	return "", errors.New("Services cannot be read here")
}
