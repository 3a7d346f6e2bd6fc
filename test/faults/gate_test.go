package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
)

// clientGate keeps the requests of the tests themselves out of the way while the apiserver is dead: what is tested is how the
// manager comes through it. The zero value is open.
type clientGate struct {
	mu sync.RWMutex
	// direct is a connection that does not pass the gate.
	direct *env.Cluster
}

// connect returns a connection that passes the gate.
func (g *clientGate) connect(e *env.Env) (*env.Cluster, error) {
	var err error
	if g.direct, err = e.Connect(); err != nil {
		return nil, err
	}
	through, err := e.Connect()
	if err != nil {
		return nil, err
	}
	through.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &gated{g, next} })
	through.WithWatch, err = client.NewWithWatch(through.Config, client.Options{Scheme: through.Scheme()})
	return through, err
}

// closed does something while no request passes. What is watched goes on.
func (g *clientGate) closed(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

// local runs kudo-local on the control plane, once for each verb.
func local(component string, verbs ...string) error {
	for _, verb := range verbs {
		if out, err := suite.Local(verb, component); err != nil {
			return fmt.Errorf("%s %s: %w: %s", verb, component, err, out)
		}
	}
	return nil
}

// started starts a part of the control plane that was killed, and waits until the apiserver answers. What plays the nodes
// is begun anew, as it does not always try again what has failed meanwhile, which nodes do.
func started(component string) error {
	if err := local(component, "start"); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, env.DefaultTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = connection.direct.Namespace(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the apiserver does not answer after %s was started: %w", component, errors.Join(err, last))
	}
	for _, c := range []string{"kube-scheduler", "kwok"} {
		if err := local(c, "kill", "start"); err != nil {
			return err
		}
	}
	return nil
}

type gated struct {
	gate *clientGate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Who has passed has all of the answer, but for watches.
func (g *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	g.gate.mu.RLock()
	defer g.gate.mu.RUnlock()
	answer, err := g.next.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") != "" {
		return answer, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}
