package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/process"
)

const (
	// readyLimit is how long one component may take on a slow machine.
	readyLimit = 2 * time.Minute
	pollEvery  = 40 * time.Millisecond
)

// DeadError says that a component has ended that should run.
type DeadError struct {
	Component string
	// Log is the path of its log, LastLines the last lines of it.
	Log, LastLines string
}

func (e *DeadError) Error() string {
	return fmt.Sprintf("%s has died. The end of its log (%s):\n%s", e.Component, e.Log, indent(e.LastLines))
}

func (p *Plane) deadError(component string) error {
	return &DeadError{Component: component, Log: p.Log(component), LastLines: lastLines(p.Log(component), 15)}
}

// alive reports whether the process of a component runs.
func (p *Plane) alive(component string) bool {
	run, err := p.Run(component)
	return err == nil && run != nil && run.Alive()
}

// isCurrent reports whether a component runs, and in the way it would be started
// now.
func (p *Plane) isCurrent(c component) (bool, error) {
	run, err := p.Run(c.name)
	if err != nil || run == nil || !run.Alive() {
		return false, err
	}
	digest, err := p.digest(c)
	return run.Spec == digest, err
}

// launch starts a component. It does not wait until it is ready.
func (p *Plane) launch(ctx context.Context, c component) error {
	if err := p.stop(ctx, c.name); err != nil { // one that runs in an older way
		return err
	}
	digest, err := p.digest(c)
	if err != nil {
		return err
	}
	program, args := p.command(c)
	id, _, err := process.Start(process.Command{
		Path: program,
		Args: args,
		Dir:  p.Dir(),
		Log:  p.Log(c.name),
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	if err := p.SetRun(c.name, instance.Run{ID: id, Spec: digest}); err != nil {
		// Without the record, no later command finds the process.
		return errors.Join(err, id.Kill(context.WithoutCancel(ctx)))
	}
	return nil
}

// await waits until a component is ready, or is dead.
func (p *Plane) await(ctx context.Context, ask *prober, c component) error {
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	url := c.ready(p)
	for {
		err := ask.ask(limited, url)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && !p.alive(c.name) {
			return p.deadError(c.name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limited.Done():
			return fmt.Errorf("%s is not ready after %s: %w; read its log with 'kudo-local logs %s --name %s'",
				c.name, readyLimit, err, c.name, p.Name)
		case <-tick.C:
		}
	}
}
