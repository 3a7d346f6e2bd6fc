package plane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kudo.dev/kudo/cmd/kudo-local/internal/components"
	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

// Manager is the component that is not linked into this binary: kudo's own.
const Manager = "manager"

// Uses of ports beside the one that is named like its component.
const (
	managerWebhook = "manager-webhook"
	managerMetrics = "manager-metrics"
	// podLogs is where kwok's process answers as the kubelet of all simulated nodes.
	podLogs = "pod-logs"
)

// component is one server of the plane.
type component struct {
	name string
	// ports are the uses of ports it listens on. The first is the address
	// that people are shown.
	ports []string
	args  func(*Plane) []string
	// ready is the URL that answers 200 when the component does its work.
	ready func(*Plane) string
	// reads are files whose change needs a restart.
	reads []string
	// program is another binary; this one when nil.
	program func(*Plane) string
}

// components are the servers of this instance, in the order in which they need
// each other.
func (p *Plane) components() []component {
	all := []component{
		{
			name:  components.Etcd,
			ports: []string{components.Etcd, etcdPeer},
			args:  (*Plane).etcdArgs,
			ready: (*Plane).etcdHealth,
		},
		{
			name:  components.APIServer,
			ports: []string{components.APIServer},
			args:  (*Plane).apiServerArgs,
			ready: func(p *Plane) string { return p.Server() + "/readyz" },
		},
		{
			name:  components.ControllerManager,
			ports: []string{components.ControllerManager},
			args:  (*Plane).controllerManagerArgs,
			ready: func(p *Plane) string { return "https://" + p.address(components.ControllerManager) + "/healthz" },
			reads: []string{clientConfig(components.ControllerManager)},
		},
	}
	if p.Settings.Profile != instance.API {
		all = append(all, component{
			name:  components.Scheduler,
			ports: []string{components.Scheduler},
			args:  (*Plane).schedulerArgs,
			ready: (*Plane).schedulerHealth,
			reads: []string{clientConfig(components.Scheduler)},
		}, p.nodeComponent())
	}
	for i := range all {
		if p.Settings.KubernetesDir != "" && slices.Contains(components.Kubernetes, all[i].name) {
			all[i].program = func(p *Plane) string { return filepath.Join(p.Settings.KubernetesDir, all[i].name) }
		}
	}
	if p.Settings.WithKudo {
		all = append(all, component{
			name:    Manager,
			ports:   []string{managerWebhook, managerMetrics, Manager},
			args:    (*Plane).managerArgs,
			ready:   func(p *Plane) string { return "http://" + p.address(Manager) + "/readyz" },
			reads:   []string{"manager.kubeconfig"},
			program: (*Plane).managerProgram,
		})
	}
	return all
}

// schedulerHealth is where the scheduler says that it is ready. Before 1.31, it had one page for all that can be asked.
func (p *Plane) schedulerHealth() string {
	path := "/readyz"
	if p.Settings.KubernetesDir != "" {
		path = "/healthz"
	}
	return "https://" + p.address(components.Scheduler) + path
}

// nodeComponent is what runs pods: a real node, or kwok, which plays them.
func (p *Plane) nodeComponent() component {
	if p.Settings.RealNodes {
		return component{
			name:    components.Node,
			args:    func(p *Plane) []string { return []string{"run", p.nodeConfigFile()} },
			ready:   func(p *Plane) string { return p.nodeConfig().HealthURL() },
			reads:   []string{nodeConfigName},
			program: func(p *Plane) string { return p.binary(nodeProgram) },
		}
	}
	return component{
		name:  components.Kwok,
		ports: []string{components.Kwok, podLogs},
		args:  (*Plane).kwokArgs,
		ready: func(p *Plane) string { return "http://" + p.address(components.Kwok) + "/readyz" },
		reads: []string{"kwok.yaml", clientConfig(components.Kwok)},
	}
}

// Components are the names of the servers of this instance.
func (p *Plane) Components() []string {
	var names []string
	for _, c := range p.components() {
		names = append(names, c.name)
	}
	return names
}

func (p *Plane) component(name string) (component, error) {
	all := p.components()
	at := slices.IndexFunc(all, func(c component) bool { return c.name == name })
	if at < 0 {
		return component{}, fmt.Errorf("instance %q has no component %q: it has %s", p.Name, name, strings.Join(p.Components(), ", "))
	}
	return all[at], nil
}

// command is the program of a component and its arguments.
func (p *Plane) command(c component) (program string, args []string) {
	if c.program != nil {
		return c.program(p), c.args(p)
	}
	return p.executable, components.Args(c.name, c.args(p))
}

// digest tells one way to run a component from another. The servers in this
// binary are the same after a rebuild more often than not, so only another
// program counts as changed when its content has.
func (p *Plane) digest(c component) (string, error) {
	program, args := p.command(c)
	h := sha256.New()
	for _, a := range args {
		fmt.Fprintf(h, "%s\x00", a)
	}
	files := []string{}
	for _, f := range c.reads {
		files = append(files, p.Path(f))
	}
	if c.program != nil {
		files = append(files, program)
	}
	for _, f := range files {
		if err := hashFile(h, f); err != nil {
			return "", fmt.Errorf("reading what %s is started with: %w", c.name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
