package faults

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kudo.dev/kudo/test/env"
)

// wire is a manager and the proxy through which it reaches the apiserver.
type wire struct {
	proxy *env.Proxy
	log   string

	mu      sync.Mutex
	process *process
	// exits are how often a manager ended that nobody had asked to.
	exits int
	// handle is asked for each request; nil sends it on.
	handle func(r *http.Request, forward env.Forward) (*http.Response, error)
}

// process is one life of a manager.
type process struct {
	*exec.Cmd
	// asked is set if it is to end; over is closed when it has.
	asked atomic.Bool
	over  chan struct{}
}

func (l *wire) open(e *env.Env, dir string) (err error) {
	l.log = filepath.Join(dir, "manager.log")
	l.proxy, err = e.Proxy(dir, l.pass)
	return err
}

func (l *wire) close() {
	l.kill()
	l.proxy.Close()
}

func (l *wire) pass(r *http.Request, forward env.Forward) (*http.Response, error) {
	l.mu.Lock()
	handle := l.handle
	l.mu.Unlock()
	if handle == nil {
		return forward(r)
	}
	return handle(r, forward)
}

// set changes what the proxy does; nil sends all on.
func (l *wire) set(handle func(r *http.Request, forward env.Forward) (*http.Response, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handle = handle
}

// manage makes sure that a manager runs. One that ends without being asked is started again, as a pod is. All that it says
// goes to a log.
func (l *wire) manage(args ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process != nil {
		return nil
	}
	out, err := os.OpenFile(l.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	m := suite.Manager(append([]string{"--kubeconfig", l.proxy.Kubeconfig, "--leader-elect=false", "--webhook-port=0"}, args...)...)
	m.Stdout, m.Stderr = out, out
	if err := m.Start(); err != nil {
		return err
	}
	p := &process{Cmd: m, over: make(chan struct{})}
	l.process = p
	go l.watch(p, args)
	return nil
}

// watch waits for the end of a manager.
func (l *wire) watch(p *process, args []string) {
	_ = p.Wait()
	close(p.over)
	if p.asked.Load() {
		return
	}
	time.Sleep(200 * time.Millisecond)
	l.mu.Lock()
	mine := l.process == p && !p.asked.Load()
	if mine {
		l.process = nil
		l.exits++
	}
	l.mu.Unlock()
	if mine {
		_ = l.manage(args...)
	}
}

// end signals the manager and waits for its end. It returns nil if none runs.
func (l *wire) end(signal os.Signal) *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.process
	if p == nil {
		return nil
	}
	p.asked.Store(true)
	l.process = nil
	_ = p.Process.Signal(signal)
	<-p.over
	return p
}

// kill kills the manager, as a crash of its machine would. When it returns, the manager is gone.
func (l *wire) kill() { l.end(syscall.SIGKILL) }

// freeze stops the manager for a while, without its knowing. The manager counts as gone for all else.
func (l *wire) freeze() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.process
	p.asked.Store(true)
	l.process = nil
	_ = p.Process.Signal(syscall.SIGSTOP)
	return p
}

// terminate asks the manager to end, and tells how long that took and with which exit code.
func (l *wire) terminate() (time.Duration, int) {
	began := time.Now()
	p := l.end(syscall.SIGTERM)
	return time.Since(began), p.ProcessState.ExitCode()
}

// tail is the end of what the managers have said.
func (l *wire) tail() string {
	text, err := os.ReadFile(l.log)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, said := range strings.Split(string(text[max(0, len(text)-20000):]), "\n") {
		if !strings.Contains(said, `"msg":"Starting `) {
			out = append(out, said)
		}
	}
	return strings.Join(out[max(0, len(out)-15):], "\n")
}

// strike is a fault that hits the n-th write.
type strike struct {
	name string
	// kills tells that the manager dies of it.
	kills bool
	// hit does it, and calls over when all is as it should be for what comes next.
	hit func(l *wire, r *http.Request, forward env.Forward, over func()) (*http.Response, error)
}

// counter counts the writes that concern a world, and strikes one of them.
type counter struct {
	mu sync.Mutex
	// word is in the path of each request that counts.
	word string
	at   int
	// seen are the writes, and hit is the one that was struck.
	seen   []string
	hit    string
	struck chan struct{}
}

// aim strikes the n-th write from now on that concerns a word; 0 strikes none.
func (l *wire) aim(word string, at int, s strike) *counter {
	c := &counter{word: word, at: at, struck: make(chan struct{})}
	dead := false
	l.set(func(r *http.Request, forward env.Forward) (*http.Response, error) {
		if !env.IsWrite(r) {
			return forward(r)
		}
		c.mu.Lock()
		if dead {
			c.mu.Unlock()
			return nil, env.ErrCut // it was on its way when the manager died
		}
		concerns, err := c.concerns(r)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		if concerns {
			c.seen = append(c.seen, r.Method+" "+strings.ReplaceAll(r.URL.Path, word, "NS"))
		}
		now := concerns && len(c.seen) == c.at
		if !now {
			c.mu.Unlock()
			return forward(r)
		}
		c.hit, dead = c.seen[len(c.seen)-1], s.kills
		c.mu.Unlock()
		return s.hit(l, r, forward, sync.OnceFunc(func() { close(c.struck) }))
	})
	return c
}

// concerns looks for the word in a request's path, and in the body of one that creates.
func (c *counter) concerns(r *http.Request) (bool, error) {
	if strings.Contains(r.URL.Path, c.word) {
		return true, nil
	}
	if r.Method != http.MethodPost || r.Body == nil {
		return false, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(strings.NewReader(string(text)))
	return strings.Contains(string(text), c.word), nil
}

// writes are those that were seen so far.
func (c *counter) writes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.seen...)
}
