// Package plane brings one control plane up and down: it knows which servers
// there are, how each is configured, and when each is ready.
package plane

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/node"
	"kudo.dev/kudo/cmd/kudo-local/internal/pki"
	"kudo.dev/kudo/cmd/kudo-local/internal/stages"
)

// serviceRange is where Services get their addresses; the first of them is the
// API server's.
const serviceRange = "10.96.0.0/16"

var serviceIP = net.IPv4(10, 96, 0, 1)

// Plane works on one instance. Methods that change something expect that the
// caller holds the lock of the instance.
type Plane struct {
	*instance.Instance

	root       string
	executable string
	store      *pki.Store
	progress   io.Writer
}

// New returns the plane of an instance in the state folder root. Progress is
// where people are told what happens.
func New(root string, i *instance.Instance, progress io.Writer) (*Plane, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, which has to start itself: %w", err)
	}
	return &Plane{Instance: i, root: root, executable: executable, progress: progress}, nil
}

// prepare writes all that the components read: certificates, kubeconfigs,
// configuration; and chooses ports.
func (p *Plane) prepare(ctx context.Context) error {
	if err := p.Save(); err != nil {
		return err
	}
	if err := p.choosePorts(ctx); err != nil {
		return err
	}
	store, err := pki.Open(p.Path("pki"), serviceIP, time.Now())
	if err != nil {
		return err
	}
	p.store = store
	if err := p.prepareNode(); err != nil {
		return err
	}
	if err := p.writeKubeconfigs(); err != nil {
		return err
	}
	config, err := stages.Config(p.Settings.PodReadyDelay)
	if err != nil {
		return err
	}
	if err := p.writeAuditPolicy(); err != nil {
		return err
	}
	return instance.WriteFile(p.Path("kwok.yaml"), config)
}

func (p *Plane) choosePorts(ctx context.Context) error {
	unlock, err := instance.LockPorts(ctx, p.root, p.progress)
	if err != nil {
		return err
	}
	defer unlock()
	owner := map[string]string{}
	var uses []string
	for _, c := range p.components() {
		for _, use := range c.ports {
			owner[use] = c.name
			uses = append(uses, use)
		}
	}
	moved, err := p.EnsurePorts(uses, func(use string) bool { return p.alive(owner[use]) })
	if err != nil {
		return err
	}
	if p.Settings.RealNodes {
		if err := p.EnsureSubnet(subnetUsed); err != nil {
			return err
		}
	}
	for _, use := range moved {
		p.say("the port of %s was taken by another program; it is %d now\n", use, p.Ports[use])
	}
	return p.Save()
}

func (p *Plane) writeKubeconfigs() error {
	files := map[string]string{
		p.Kubeconfig(): pki.Admin,
		p.Path(clientConfig(components.ControllerManager)): components.ControllerManager,
		p.Path(clientConfig(components.Scheduler)):         components.Scheduler,
		p.Path(clientConfig(components.Kwok)):              components.Kwok,
	}
	for path, user := range files {
		if err := p.store.WriteKubeconfig(path, p.Context(), p.Server(), user); err != nil {
			return err
		}
	}
	if !p.Settings.RealNodes {
		return nil
	}
	hostIP, _, _ := node.Addresses(p.Subnet)
	server := fmt.Sprintf("https://%s:%d", hostIP, p.Ports[components.APIServer])
	for user, path := range p.nodeConfig().Kubeconfigs {
		if err := p.store.WriteKubeconfig(path, p.Context(), server, user); err != nil {
			return err
		}
	}
	return nil
}

// clientConfig is the kubeconfig, in the folder of the instance, with which a
// component logs in.
func clientConfig(component string) string { return filepath.Join("kubeconfigs", component) }

// Server is the URL of the API server.
func (p *Plane) Server() string { return "https://" + p.address(components.APIServer) }

func (p *Plane) address(use string) string { return instance.Address(p.Ports[use]) }

func (p *Plane) say(format string, args ...any) { fmt.Fprintf(p.progress, format, args...) }
