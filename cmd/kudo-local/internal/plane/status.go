package plane

import (
	"context"
	"sync"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
)

// State is what can be said about a component from outside.
type State string

const (
	// Running is a component whose process answers that it is ready.
	Running State = "running"
	// NotReady is a component whose process runs, and does not answer that it is ready.
	NotReady State = "not ready"
	// Dead is a component whose process has ended without being stopped.
	Dead State = "dead"
	// Stopped is a component that was stopped, or never started.
	Stopped State = "stopped"
)

// Status is one line of the status of an instance.
type Status struct {
	Component string
	PID       int
	State     State
	Address   string
	// Detail is why it is not ready, or the end of the log of a dead one.
	Detail string
}

// Status asks all components at the same time.
func (p *Plane) Status(ctx context.Context) ([]Status, error) {
	store, err := pki.Open(p.Path("pki"), serviceIP, time.Now())
	if err != nil {
		return nil, err
	}
	p.store = store
	ask, err := p.prober()
	if err != nil {
		return nil, err
	}
	all := p.components()
	result := make([]Status, len(all))
	var wait sync.WaitGroup
	for i, c := range all {
		wait.Go(func() { result[i] = p.statusOf(ctx, ask, c) })
	}
	wait.Wait()
	return result, nil
}

func (p *Plane) statusOf(ctx context.Context, ask *prober, c component) Status {
	s := Status{Component: c.name, State: Stopped}
	if len(c.ports) > 0 && p.Ports[c.ports[0]] != 0 {
		s.Address = p.address(c.ports[0])
	}
	run, err := p.Run(c.name)
	switch {
	case err != nil:
		s.State, s.Detail = Dead, err.Error()
	case run == nil:
	case !run.Alive():
		s.State, s.Detail = Dead, lastLines(p.Log(c.name), 15)
	default:
		s.PID, s.State = run.PID, Running
		if err := ask.ask(ctx, c.ready(p)); err != nil {
			s.State, s.Detail = NotReady, err.Error()
		}
	}
	return s
}
