package plane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
)

// tries is how often ports are chosen: between the choice and the start of a
// server, another program may take one.
const tries = 3

// Up starts what does not run. When something goes wrong or ctx ends, it stops
// what it has started.
func (p *Plane) Up(ctx context.Context) (err error) {
	for range tries {
		if err = p.up(ctx); err == nil || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return err
		}
		p.say("another program has taken a port in the meantime: trying again\n")
	}
	return err
}

func (p *Plane) up(ctx context.Context) (err error) {
	begin := time.Now()
	var started []string
	defer func() {
		if err != nil {
			err = p.abandon(started, err)
		}
	}()
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.stopAll(ctx, p.staleComponents()); err != nil {
		return err
	}
	ask, err := p.prober()
	if err != nil {
		return err
	}
	for _, group := range p.groups() {
		if slices.ContainsFunc(group, func(c component) bool { return c.name == Manager }) {
			if err := p.installKudo(ctx); err != nil {
				return err
			}
		}
		if err := p.startGroup(ctx, ask, group, &started); err != nil {
			return err
		}
	}
	if len(started) > 0 {
		p.say("all is ready after %s\n", seconds(begin))
	}
	return nil
}

// staleComponents returns the components that may run from settings of before, and are
// not part of the instance any more.
func (p *Plane) staleComponents() []string {
	wanted := p.Components()
	return slices.DeleteFunc(slices.Clone(everything), func(name string) bool { return slices.Contains(wanted, name) })
}

// groups are the components in the order of their start. Those in one group do
// not need each other.
func (p *Plane) groups() [][]component {
	var server, others, manager []component
	etcd := []component{}
	for _, c := range p.components() {
		switch c.name {
		case components.Etcd:
			etcd = append(etcd, c)
		case components.APIServer:
			server = append(server, c)
		case Manager:
			manager = append(manager, c)
		default:
			others = append(others, c)
		}
	}
	groups := [][]component{etcd, server, others}
	if len(manager) > 0 {
		groups = append(groups, manager)
	}
	return groups
}

// startGroup starts those of a group that do not run, and waits until the
// group does its work. Names are added to started before anything can fail.
func (p *Plane) startGroup(ctx context.Context, ask *prober, group []component, started *[]string) error {
	var missing []component
	for _, c := range group {
		ok, err := p.isCurrent(c)
		if err != nil {
			return err
		}
		if !ok {
			missing = append(missing, c)
		}
	}
	begin := time.Now()
	if len(missing) > 0 {
		p.say("starting %s… ", names(missing))
	}
	for _, c := range missing {
		*started = append(*started, c.name)
		if err := p.launch(ctx, c); err != nil {
			p.say("failed\n")
			return err
		}
	}
	wait, waitCtx := errgroup.WithContext(ctx)
	for _, c := range group {
		wait.Go(func() error { return p.await(waitCtx, ask, c) })
	}
	if group[0].name == components.ControllerManager {
		wait.Go(func() error { return p.createNodes(waitCtx) })
	}
	err := wait.Wait()
	switch {
	case len(missing) == 0:
	case err != nil:
		p.say("failed\n")
	default:
		p.say("%s\n", seconds(begin))
	}
	return err
}

// abandon stops what a failed Up has started, and says so.
func (p *Plane) abandon(started []string, cause error) error {
	if len(started) == 0 {
		return cause
	}
	p.say("stopping what was started: %s\n", strings.Join(started, ", "))
	// The reason to stop may be that the context has ended.
	if err := p.stopAll(context.Background(), started); err != nil {
		return fmt.Errorf("%w\nand then: %w", cause, err)
	}
	return cause
}

func names(cs []component) string {
	var all []string
	for _, c := range cs {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

func seconds(since time.Time) string { return fmt.Sprintf("%.1fs", time.Since(since).Seconds()) }
