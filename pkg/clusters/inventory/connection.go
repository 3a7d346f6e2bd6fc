package inventory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/reach"
)

const (
	// requestTimeout bounds a request to a cluster, other than a watch.
	requestTimeout = 10 * time.Second
	// readyTimeout bounds the question whether a cluster is there.
	readyTimeout = 5 * time.Second
)

// connection is a way to a cluster, from when it has answered until it no longer does.
type connection struct {
	// ctx ends with the connection; its cause says why.
	ctx  context.Context
	fail context.CancelCauseFunc

	hub     types.UID
	dynamic dynamic.Interface
	rest    rest.Interface
	http    *http.Client
	// needs are the objects that the worker has written by this connection, each with its version on the hub.
	needs map[string]string
}

// connect reaches a cluster: reads on the hub where it is, and asks it whether it is ready.
func (m *member) connect(ctx context.Context) (*connection, error) {
	hubCtx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	hub, err := m.engine.uid.get(hubCtx, m.engine.Live)
	if err != nil {
		return nil, err
	}
	config, err := m.engine.config(hubCtx, m.profile)
	if err != nil {
		return nil, err
	}
	c, err := newConnection(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("ClusterProfile %s: %w", m.profile, err)
	}
	c.hub = hub
	if err := c.ready(); err != nil {
		c.close(err)
		return nil, err
	}
	return c, nil
}

func newConnection(ctx context.Context, config *rest.Config) (*connection, error) {
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // with a proxy of its own, client-go keeps no transport when the connection has ended
	}
	config.QPS = -1 // the worker sends one request at a time
	apply.EscapeApplyBodies(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &connection{http: client, needs: map[string]string{}}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	raw := dynamic.ConfigFor(config)
	raw.GroupVersion = &apiVersion
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(raw, client); err != nil {
		return nil, err
	}
	c.ctx, c.fail = context.WithCancelCause(ctx)
	return c, nil
}

// ready asks whether the cluster is there. One that lets the account do nothing is.
func (c *connection) ready() error {
	ctx, cancel := context.WithTimeout(c.ctx, readyTimeout)
	defer cancel()
	_, err := c.rest.Get().AbsPath("/readyz").MaxRetries(0).DoRaw(ctx)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// close ends the connection.
func (c *connection) close(err error) {
	c.fail(err)
	utilnet.CloseIdleConnectionsFor(c.http.Transport)
}

// isLost reports whether an error says that the cluster does not answer, or not to this account, rather than that it refuses a request.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) && !errors.As(err, new(*problemError)) || apierrors.IsUnauthorized(err)
}

// reason returns what an error means, without ports and times, which change from one attempt to the next.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the cluster does not answer in time"
	case errors.As(err, &op):
		return fmt.Sprintf("the cluster cannot be reached: %s: %v", op.Op, innermost(op.Err))
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept the credentials: renew them on the hub"
	}
	return message(err.Error())
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// newDialer returns how to connect to clusters: never to addresses that no cluster has, such as those at which clouds give credentials. A
// connection whose other end has vanished is noticed in 20 seconds.
func newDialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{
		Timeout:         requestTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeEvery, Interval: probeEvery / 2, Count: 2},
		Control:         func(_, address string, _ syscall.RawConn) error { return mayDial(address) },
	}).DialContext
}

func mayDial(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if reach.Of(at.Addr()) == reach.Never {
		return fmt.Errorf("%s is no address of a cluster", at.Addr())
	}
	return nil
}
