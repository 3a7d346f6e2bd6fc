package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
)

// manager is a process of the manager of a version, behind a proxy.
type manager struct {
	*exec.Cmd
	version version
	proxy   *apiproxy.Proxy
	// dir is a folder of the manager, and log the file of what it says.
	dir, log string
	over     chan struct{}

	mu sync.Mutex
	// stops are where the manager is stopped, by a word that the writes of a testbed have in common.
	stops map[string]*stop
	// written are how many writes have passed.
	written int
	// hold keeps a write that it returns true for; nil keeps none.
	hold func(r *http.Request) bool
	held chan *heldWrite
}

// stop is the write of a testbed at which the manager is stopped: from there on, none passes, as if the manager had died.
type stop struct {
	at int
	// after is set if the write itself arrives, and its answer does not.
	after   bool
	writes  []string
	reached bool
}

// heldWrite is a write that is on its way until free is closed.
type heldWrite struct {
	free chan struct{}
	code chan int
}

// started are the managers of the suite.
var started []*manager

// stopManagers stops all managers.
func stopManagers() {
	for _, m := range started {
		_ = m.Process.Signal(syscall.SIGCONT)
		m.end(syscall.SIGTERM)
		m.proxy.Close()
		_ = os.RemoveAll(m.dir)
	}
}

// saidByManagers is the end of what each manager has said.
func saidByManagers() string {
	var out strings.Builder
	for _, m := range started {
		fmt.Fprintf(&out, "the manager of %s said:\n%s\n", m.version.Name, m.tail())
	}
	return out.String()
}

// start starts the manager of a version. It waits for the lease if another one has it.
func start(t testing.TB, v version, kubeconfig string) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "kudo-manager-")
	env.Must(t, err)
	m := &manager{version: v, dir: dir, log: filepath.Join(dir, "log"), over: make(chan struct{}), stops: map[string]*stop{}, held: make(chan *heldWrite, 1)}
	m.proxy, err = apiproxy.Start(kubeconfig, dir, m.pass)
	env.Must(t, err)
	out, err := os.Create(m.log)
	env.Must(t, err)
	m.Cmd = exec.Command(filepath.Join(v.Bin, "manager"), "--kubeconfig", m.proxy.Kubeconfig, "--webhook-port=0", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--cache-dir", filepath.Join(dir, "cache"))
	m.Stdout, m.Stderr = out, out
	env.Must(t, m.Cmd.Start())
	go func() {
		_ = m.Wait()
		_ = out.Close()
		close(m.over)
	}()
	started = append(started, m)
	return m
}

// end signals the manager and waits for its end.
func (m *manager) end(signal os.Signal) {
	_ = m.Process.Signal(signal)
	<-m.over
}

// tail is the end of what the manager has said.
func (m *manager) tail() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// stopAt stops the manager at a write of a testbed; 0 counts its writes only.
func (m *manager) stopAt(word string, at int, after bool) *stop {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stops[word] = &stop{at: at, after: after}
	return m.stops[word]
}

// isReached reports whether the manager was stopped, and which writes it has made until then.
func (m *manager) isReached(s *stop) (bool, []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.reached, s.writes
}

// writes is how many writes of the manager have passed.
func (m *manager) writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written
}

// pass is asked for each request of the manager.
func (m *manager) pass(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	if !apiproxy.IsWrite(r) {
		return forward(r)
	}
	said := r.URL.Path
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		if r.Method == http.MethodPost {
			said += string(text)
		}
	}
	pass, answer := m.count(said, r.Method+" "+r.URL.Path)
	if !pass {
		return nil, apiproxy.ErrCut
	}
	if m.isHeld(r) {
		return m.keep(r, forward)
	}
	out, err := forward(r)
	if err == nil && !answer {
		_ = out.Body.Close()
		return nil, apiproxy.ErrCut
	}
	return out, err
}

// count counts a write, and reports whether it and its answer may pass.
func (m *manager) count(said, name string) (pass, answer bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written++
	for word, s := range m.stops {
		if !strings.Contains(said, word) {
			continue
		}
		if s.reached {
			return false, false
		}
		s.writes = append(s.writes, strings.ReplaceAll(name, word, "NS"))
		if s.reached = len(s.writes) == s.at; s.reached {
			return s.after, false
		}
	}
	return true, true
}

// holdNext keeps the next write for which match returns true, until it is freed.
func (m *manager) holdNext(match func(r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = match
}

func (m *manager) isHeld(r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil || !m.hold(r) {
		return false
	}
	m.hold = nil
	return true
}

// keep keeps a write until it is freed, whatever becomes of the manager meanwhile.
func (m *manager) keep(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	kept := &heldWrite{free: make(chan struct{}), code: make(chan int, 1)}
	m.held <- kept
	<-kept.free
	out, err := forward(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		kept.code <- 0
		return nil, err
	}
	kept.code <- out.StatusCode
	return out, nil
}
