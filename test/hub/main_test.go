// Package hub checks that a hub places Instances on clusters, on three control planes: a hub with the definitions of Karmada, and two
// clusters. A player does what the controllers of Karmada do.
package hub

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// plane is one control plane.
type plane struct {
	*env.Env
	*env.Cluster
}

// planes are a hub with its manager, and clusters with theirs.
type planes struct {
	hub     plane
	members map[string]plane
	manager *hubManager
	player  *player
	faults  faulter
}

// faulter keeps the engine of a hub from its clusters.
type faulter interface {
	// cut cuts a cluster off, or connects it again.
	cut(member string)
	// disturb makes another fault of the engine, or ends it.
	disturb()
	// repair ends all faults.
	repair()
}

// startPlanes brings the control planes up. They go with the test.
func startPlanes(t *testing.T) *planes {
	t.Helper()
	ctrllog.SetLogger(zap.New())
	definitions := corpus.Karmada(t)
	p := &planes{members: map[string]plane{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := func(name string, up func(...string) (*env.Env, error), args ...string) {
		defer wg.Done()
		e, err := up(append([]string{"--profile", "api"}, args...)...)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(e.Stop)
		c, err := e.Connect()
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if name == "hub" {
			p.hub = plane{e, c}
		} else {
			p.members[name] = plane{e, c}
		}
	}
	wg.Add(3)
	go start("hub", env.StartBare)
	go start("m1", env.Start, "--privileged")
	go start("m2", env.Start, "--privileged")
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	p.hub.Define(t, []byte(corpus.KarmadaCluster))
	p.hub.DefineFiles(t, definitions, "policy/*.yaml", "work/*.yaml", "config/*.yaml")
	p.manager = newHubManager(t, p.hub)
	p.player = startPlayer(t, p)
	p.faults = p.player
	p.manager.start(t)
	return p
}

// hubManager is the manager of the hub, a process with the rights that init --hub gives.
type hubManager struct {
	bin, kubeconfig, dir, address string
	// args are those of the engine.
	args []string
	cmd  *exec.Cmd
	log  *safeBuffer
	over chan struct{}
}

// safeBuffer is written by a process, and read by the test.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newHubManager makes the control plane a hub.
func newHubManager(t *testing.T, hub plane, more ...string) *hubManager {
	t.Helper()
	m := &hubManager{bin: filepath.Join(hub.Bin, "manager"), dir: t.TempDir(), address: env.FreeAddress(t), log: &safeBuffer{}}
	m.kubeconfig = filepath.Join(m.dir, "kubeconfig")
	hub.MustKudo(t, 0, append([]string{"init", "--hub", "--external-manager", "--manager-kubeconfig", m.kubeconfig, "--webhook-url",
		"https://" + m.address}, more...)...)
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("the manager of the hub said:\n%s", tail(m.log.String(), 60))
		}
	})
	return m
}

// start starts the manager, and waits until it serves the webhooks.
func (m *hubManager) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(m.address)
	env.Must(t, err)
	m.cmd = exec.Command(m.bin, append([]string{"--hub", "--kubeconfig", m.kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--webhook-port=" + port, "--webhook-bind-address=127.0.0.1",
		"--webhook-cert-dir=" + filepath.Join(m.dir, "cert")}, m.args...)...)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	env.Must(t, m.cmd.Start())
	m.over = make(chan struct{})
	go func(cmd *exec.Cmd, over chan struct{}) {
		_ = cmd.Wait()
		close(over)
	}(m.cmd, m.over)
	env.Within(t, time.Minute, "the manager of the hub serves its webhooks", func() string {
		select {
		case <-m.over:
			t.Fatalf("the manager of the hub has ended:\n%s", tail(m.log.String(), 40))
		default:
		}
		conn, err := net.DialTimeout("tcp", m.address, time.Second)
		if err != nil {
			return err.Error()
		}
		_ = conn.Close()
		return ""
	})
}

// kill ends the manager as a crash does.
func (m *hubManager) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		<-m.over
		m.cmd = nil
	}
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// newNamespace makes a namespace of the same name on all planes.
func (p *planes) newNamespace(t *testing.T) string {
	t.Helper()
	name := p.hub.NewBareNamespace(t)
	for _, member := range p.members {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(name)
		env.Must(t, member.Create(t.Context(), ns))
		t.Cleanup(func() { _ = member.Delete(context.Background(), ns) })
	}
	return name
}

// wait waits until a condition on something that is read again and again holds.
func wait(t *testing.T, what string, holds func() error) {
	t.Helper()
	env.Within(t, time.Minute, what, func() string {
		if err := holds(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// get reads an object, or returns an error that names it.
func get[T client.Object](c client.Reader, obj T, namespace, name string) (T, error) {
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		return obj, fmt.Errorf("get %s: %w", name, err)
	}
	return obj, nil
}
