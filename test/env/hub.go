package env

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// HubManager is the manager of a hub, a process of the test's own with the rights that init --hub gives.
type HubManager struct {
	// Address of its webhooks, and the file with its rights.
	Address, Kubeconfig string
	// Args are arguments beside those that every hub has.
	Args []string

	bin, dir string
	cmd      *exec.Cmd
	log      *safeBuffer
	over     chan struct{}
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

// NewHubManager makes a bare control plane a hub. The arguments go to init. The manager does not run before Start, and ends with the test.
func (e *Env) NewHubManager(t testing.TB, args ...string) *HubManager {
	t.Helper()
	m := &HubManager{bin: filepath.Join(e.Bin, "manager"), dir: t.TempDir(), Address: FreeAddress(t), log: &safeBuffer{}}
	m.Kubeconfig = filepath.Join(m.dir, "kubeconfig")
	e.MustKudo(t, 0, append([]string{"init", "--hub", "--external-manager", "--manager-kubeconfig", m.Kubeconfig, "--webhook-url",
		"https://" + m.Address}, args...)...)
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() {
			t.Logf("the manager of the hub said:\n%s", Tail(m.log.String(), 60))
		}
	})
	return m
}

// Start starts the manager, and waits until it serves the webhooks.
func (m *HubManager) Start(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(m.Address)
	Must(t, err)
	m.cmd = exec.Command(m.bin, append([]string{"--hub", "--kubeconfig", m.Kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--webhook-port=" + port, "--webhook-bind-address=127.0.0.1",
		"--webhook-cert-dir=" + filepath.Join(m.dir, "cert")}, m.Args...)...)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	Must(t, m.cmd.Start())
	m.over = make(chan struct{})
	go func(cmd *exec.Cmd, over chan struct{}) {
		_ = cmd.Wait()
		close(over)
	}(m.cmd, m.over)
	Within(t, 3*time.Minute, "the manager of the hub serves its webhooks", func() string {
		select {
		case <-m.over:
			t.Fatalf("the manager of the hub has ended:\n%s", Tail(m.log.String(), 40))
		default:
		}
		conn, err := net.DialTimeout("tcp", m.Address, time.Second)
		if err != nil {
			return err.Error()
		}
		_ = conn.Close()
		return ""
	})
}

// PID returns the process of the manager, which runs.
func (m *HubManager) PID() int { return m.cmd.Process.Pid }

// Kill ends the manager as a crash does.
func (m *HubManager) Kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		<-m.over
		m.cmd = nil
	}
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
