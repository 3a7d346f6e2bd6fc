package faults

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
)

// managerProxy is a manager and the proxy through which it reaches the apiserver.
type managerProxy struct {
	proxy      *apiproxy.Proxy
	log, cache string
	// program is the manager with its arguments.
	program func(args ...string) *exec.Cmd

	mu      sync.Mutex
	process *process
	// fenced is set while the manager is being killed: no write of it passes any more.
	fenced bool
	// exits are how often a manager ended that the test had not stopped.
	exits int
	// handle is asked for each request without a fault; nil sends it on.
	handle handler
	// counters are of the testbeds whose writes count.
	counters []*counter
}

// handler does something with a request.
type handler = func(r *http.Request, forward apiproxy.Forward) (*http.Response, error)

// process is one life of a manager.
type process struct {
	*exec.Cmd
	// asked is set if it is to end; over is closed when it has.
	asked atomic.Bool
	over  chan struct{}
}

func (l *managerProxy) open(e *env.Env, dir string) (err error) {
	l.log, l.cache, l.program = filepath.Join(dir, "manager.log"), filepath.Join(dir, "cache"), e.Manager
	l.proxy, err = apiproxy.Start(e.ManagerKubeconfig(), dir, l.pass)
	return err
}

func (l *managerProxy) close() {
	l.kill()
	l.proxy.Close()
}

func (l *managerProxy) pass(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	if apiproxy.IsWrite(r) {
		occurred, err := l.count(r)
		if err != nil {
			return nil, err
		}
		if occurred != nil {
			return occurred.by.hit(l, r, forward, sync.OnceFunc(func() { close(occurred.occurred) }))
		}
	}
	l.mu.Lock()
	handle := l.handle
	l.mu.Unlock()
	if handle == nil {
		return forward(r)
	}
	return handle(r, forward)
}

// intercept changes what the proxy does; nil sends all on.
func (l *managerProxy) intercept(handle handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handle = handle
}

// start makes sure that a manager runs. One that ends without being asked is started again, as a pod is. All that it says
// goes to a log.
func (l *managerProxy) start(args ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process != nil || l.fenced {
		return nil // who has fenced one makes the next
	}
	out, err := os.OpenFile(l.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	m := l.program(append([]string{"--kubeconfig", l.proxy.Kubeconfig, "--leader-elect=false", "--webhook-port=0", "--cache-dir", l.cache}, args...)...)
	m.Stdout, m.Stderr = out, out
	if err := m.Start(); err != nil {
		return err
	}
	p := &process{Cmd: m, over: make(chan struct{})}
	l.process = p
	go l.watch(p, args)
	return nil
}

// restartDelay keeps a manager that ends at once from being started all the time.
const restartDelay = 200 * time.Millisecond

// watch waits for the end of a manager.
func (l *managerProxy) watch(p *process, args []string) {
	_ = p.Wait()
	close(p.over)
	if p.asked.Load() {
		return
	}
	time.AfterFunc(restartDelay, func() { l.restart(p, args) })
}

// restart starts a manager in the place of one that has ended by itself.
func (l *managerProxy) restart(p *process, args []string) {
	l.mu.Lock()
	mine := l.process == p && !p.asked.Load()
	if mine {
		l.process = nil
		l.exits++
	}
	l.mu.Unlock()
	if mine {
		_ = l.start(args...)
	}
}

// exitCount is how often a manager ended by itself.
func (l *managerProxy) exitCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.exits
}

// stop signals the manager and waits for its end. It returns nil if none runs. What passes meanwhile passes.
func (l *managerProxy) stop(signal os.Signal) *process {
	l.mu.Lock()
	p := l.process
	if p == nil {
		l.mu.Unlock()
		return nil
	}
	p.asked.Store(true)
	_ = p.Process.Signal(signal)
	l.mu.Unlock()
	<-p.over
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process == p {
		l.process = nil
	}
	return p
}

// kill kills the manager, as a crash of its machine would. When it returns, the manager has ended.
func (l *managerProxy) kill() { l.stop(syscall.SIGKILL) }

// signal signals the manager, if one runs.
func (l *managerProxy) signal(signal os.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process == nil {
		return nil
	}
	if err := l.process.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// freeze stops the manager for a while, without its knowing. The manager counts as gone for all else.
func (l *managerProxy) freeze() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.process
	p.asked.Store(true)
	l.process = nil
	_ = p.Process.Signal(syscall.SIGSTOP)
	return p
}

// terminate asks the manager to end, and tells how long that took and with which exit code.
func (l *managerProxy) terminate() (time.Duration, int) {
	began := time.Now()
	p := l.stop(syscall.SIGTERM)
	return time.Since(began), p.ProcessState.ExitCode()
}

// tail is the end of what the managers have said.
func (l *managerProxy) tail() string {
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

// writeFault is a fault that hits the n-th write.
type writeFault struct {
	name string
	// kills is set if the manager is killed by it: until it has, no other write that concerns the testbed passes.
	kills bool
	// hit does it, and calls over when all is as it should be for what comes next.
	hit func(l *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error)
}

// counter counts the writes that concern a testbed, and injects a fault into one of them.
type counter struct {
	// word is in the path of each request that counts, or in what it creates.
	word string
	at   int
	by   writeFault
	// seen are the writes, and hit is the one with the fault; the lock of managerProxy guards both.
	seen     []string
	hit      string
	occurred chan struct{}
}

// aim injects the fault into the n-th write from now on that names a word; 0 injects none.
func (l *managerProxy) aim(word string, at int, by writeFault) *counter {
	c := &counter{word: word, at: at, by: by, occurred: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters = append(l.counters, c)
	return c
}

// leave ends the counting.
func (l *managerProxy) leave(c *counter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters = slices.DeleteFunc(l.counters, func(o *counter) bool { return o == c })
}

// count counts a write, and returns the counter that injects a fault into it, if any.
func (l *managerProxy) count(r *http.Request) (*counter, error) {
	text, err := said(r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced {
		return nil, apiproxy.ErrCut // it was on its way when the manager died
	}
	for _, c := range l.counters {
		if !strings.Contains(text, c.word) {
			continue
		}
		if c.hit != "" && c.by.kills {
			return nil, apiproxy.ErrCut
		}
		c.seen = append(c.seen, r.Method+" "+strings.ReplaceAll(r.URL.Path, c.word, "NS"))
		if len(c.seen) == c.at {
			c.hit = c.seen[c.at-1]
			return c, nil
		}
	}
	return nil, nil
}

// said is a request's path, and the body of one that creates.
func said(r *http.Request) (string, error) {
	if r.Method != http.MethodPost || r.Body == nil {
		return r.URL.Path, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(strings.NewReader(string(text)))
	return r.URL.Path + string(text), nil
}

// writes are those that a counter has seen so far.
func (l *managerProxy) writes(c *counter) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(c.seen)
}

// target is the write into which a counter has injected its fault, or "".
func (l *managerProxy) target(c *counter) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.hit
}

// revive kills the manager, whose faults may have kept testbeds waiting, and starts the next.
func (l *managerProxy) revive() error {
	l.fence(true)
	l.kill()
	l.mu.Lock()
	l.counters = slices.DeleteFunc(l.counters, func(c *counter) bool { return c.hit != "" && c.by.kills })
	l.mu.Unlock()
	l.fence(false)
	return l.start()
}

func (l *managerProxy) fence(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fenced = up
}
