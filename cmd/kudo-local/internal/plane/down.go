package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

// grace is how long a component may take to end by itself.
const grace = 8 * time.Second

// everything are all components that an instance could have, also those of
// settings it no longer has.
var everything = []string{
	components.Etcd, components.APIServer, components.ControllerManager, components.Scheduler, components.Kwok, components.Node, Manager,
}

// Down stops all components, and makes sure that neither a process nor a port
// is left. It returns the names of those that ran.
func (p *Plane) Down(ctx context.Context) ([]string, error) {
	var ran []string
	for _, name := range everything {
		if p.alive(name) {
			ran = append(ran, name)
		}
	}
	if err := p.stopAll(ctx, everything); err != nil {
		return ran, err
	}
	if err := p.cleanNode(); err != nil {
		return ran, err
	}
	for use, port := range p.Ports {
		if slices.ContainsFunc(ran, func(name string) bool { return listens(name, use) }) && !instance.Free(port) {
			return ran, fmt.Errorf("port %d of %s is still listened on, though its process has ended: another program has taken it", port, use)
		}
	}
	return ran, nil
}

// listens reports whether a use of a port belongs to a component.
func listens(component, use string) bool {
	full := &Plane{Instance: &instance.Instance{Settings: instance.Settings{Profile: instance.Full, WithKudo: true}}}
	c, err := full.component(component)
	return err == nil && slices.Contains(c.ports, use)
}

// stopAll stops the named components, the clients of a server before the
// server: first all others, then the API server, then etcd.
func (p *Plane) stopAll(ctx context.Context, names []string) error {
	last := []string{components.APIServer, components.Etcd}
	var group errgroup.Group
	for _, name := range names {
		if !slices.Contains(last, name) {
			group.Go(func() error { return p.stop(ctx, name) })
		}
	}
	errs := []error{group.Wait()}
	for _, name := range last {
		if slices.Contains(names, name) {
			errs = append(errs, p.stop(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// stop ends the process of a component, if there is one, and forgets it.
func (p *Plane) stop(ctx context.Context, name string) error {
	run, err := p.Run(name)
	if err != nil || run == nil {
		return err
	}
	if err := run.Stop(ctx, grace); err != nil {
		return fmt.Errorf("stopping %s: %w", name, err)
	}
	return p.ClearRun(name)
}

// Kill ends a component as a crash would. Its record stays, so that status
// tells that it is dead.
func (p *Plane) Kill(ctx context.Context, name string) error {
	if server, is := p.nodeServer(name); is {
		return p.killNodeServer(server)
	}
	if _, err := p.component(name); err != nil {
		return err
	}
	run, err := p.Run(name)
	if err != nil {
		return err
	}
	if run == nil || !run.Alive() {
		return fmt.Errorf("%s of instance %q does not run", name, p.Name)
	}
	if err := run.Kill(ctx); err != nil {
		return fmt.Errorf("killing %s: %w", name, err)
	}
	return nil
}

// Start starts one component and waits until it is ready.
func (p *Plane) Start(ctx context.Context, name string) error {
	if _, is := p.nodeServer(name); is {
		return p.startNodeServers()
	}
	c, err := p.component(name)
	if err != nil {
		return err
	}
	if p.alive(name) {
		p.say("%s runs already\n", name)
		return nil
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	ask, err := p.prober()
	if err != nil {
		return err
	}
	begin := time.Now()
	p.say("starting %s… ", name)
	if err := p.launch(ctx, c); err != nil {
		p.say("failed\n")
		return err
	}
	if err := p.await(ctx, ask, c); err != nil {
		p.say("failed\n")
		return p.abandon([]string{name}, err)
	}
	p.say("%s\n", seconds(begin))
	return nil
}

// Empty removes the data of the cluster. Certificates, ports and kubeconfigs
// stay, so that what was given to other programs still works.
func (p *Plane) Empty() error {
	paths := []string{p.Path("etcd"), p.ManagerKubeconfig(), p.Path("manager-certs"), p.initRecord()}
	for _, dir := range []string{"kubelet", "volumes", "pod-logs", "ipam"} { // the images of a real node stay
		paths = append(paths, p.nodeConfig().Path(dir))
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing the data of instance %q: %w", p.Name, err)
		}
	}
	return nil
}
