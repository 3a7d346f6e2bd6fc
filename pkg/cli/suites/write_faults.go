package suites

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/testsuite"
)

// eachWrite is the fault in which the manager is killed after each of its writes.
const eachWrite = "each-write"

// eachWriteFactor is how many times as long steps may take with a manager that starts again and again.
const eachWriteFactor = 20

// maxWrites bounds how many writes a case may have: a manager that writes without end fails the case.
const maxWrites = 2000

// writeFaults kill a manager when the API server has committed a write, before the manager has its answer, and start it again.
type writeFaults struct {
	manager process
	proxy   *apiproxy.Proxy

	// writing is held while a write passes, so that none is under way when the manager is killed.
	writing sync.Mutex
	mu      sync.Mutex
	active  bool
	// only is the number of the write after which to kill, from 1; 0 for each.
	only   int
	writes []string
	killed int
	err    error
	// versions are those of the objects of paths, after the last write.
	versions map[string]string
}

// process is a program that is killed and started again.
type process interface {
	start() error
	kill() error
}

// newWriteFaults puts a manager of its own, which asks the API server by a proxy, in the place of the control plane's.
func newWriteFaults(ctx context.Context, plane *localPlane) (*writeFaults, error) {
	program, err := findProgram("manager")
	if err != nil {
		return nil, err
	}
	if out, err := plane.run(ctx, "kill", "manager"); err != nil {
		return nil, fmt.Errorf("stop the control plane's manager: %w\n%s", err, out)
	}
	f := &writeFaults{versions: map[string]string{}}
	if f.proxy, err = apiproxy.Start(filepath.Join(plane.state, plane.name, "manager.kubeconfig"), plane.state, f.handle); err != nil {
		return nil, err
	}
	f.manager = &managerProcess{program: program, log: filepath.Join(plane.state, "manager.log"), failed: f.fail, args: []string{
		"--kubeconfig", f.proxy.Kubeconfig, "--cache-dir", filepath.Join(plane.state, "manager-cache"), "--pipe-image", "kudo-manager:dev",
		"--allow-unpinned-pipe-image",
		// A lease would hold up the next manager, and so would a port that the last one has used. Webhooks are not asked.
		"--leader-elect=false", "--webhook-port=0", "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}}
	if err := f.manager.start(); err != nil {
		f.proxy.Close()
		return nil, err
	}
	return f, nil
}

// close stops the manager and the proxy.
func (f *writeFaults) close() {
	_ = f.manager.kill()
	f.proxy.Close()
}

// handle implements the handler of apiproxy.
func (f *writeFaults) handle(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	if !apiproxy.IsWrite(r) {
		return forward(r)
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err // the manager that has sent it is dead
	}
	r.Header.Set("Accept", "application/json") // versionOf reads it
	answer, err := forward(r)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if !f.strikes(r, body) {
		return answer, nil
	}
	if err := errors.Join(f.manager.kill(), f.manager.start()); err != nil {
		f.fail(err)
	}
	return nil, apiproxy.ErrCut
}

// strikes counts a write, and reports whether the manager is to be killed. What has changed nothing is no write: a manager that comes
// back applies again what the last one has applied.
func (f *writeFaults) strikes(r *http.Request, answer []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, now := f.versions[r.URL.Path], versionOf(answer)
	f.versions[r.URL.Path] = now
	if !f.active || f.err != nil || now != "" && now == before {
		return false
	}
	f.writes = append(f.writes, r.Method+" "+r.URL.Path)
	if len(f.writes) > maxWrites {
		f.err = fmt.Errorf("the manager has written more than %d times in one case, at last %s", maxWrites, f.writes[maxWrites])
		return false
	}
	if f.only != 0 && len(f.writes) != f.only {
		return false
	}
	f.killed++
	return true
}

// versionOf returns the version of the object in an answer of the API server; empty if it is not in JSON.
func versionOf(answer []byte) string {
	object := metav1.PartialObjectMetadata{}
	_ = json.Unmarshal(answer, &object)
	return object.ResourceVersion
}

func (f *writeFaults) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// run runs a case. The manager is killed after a write of that number, or after each if that is 0.
func (f *writeFaults) run(ctx context.Context, r *testsuite.Runner, c *testsuite.Case, only int) (testsuite.Result, error) {
	f.mu.Lock()
	f.active, f.only, f.writes, f.killed = true, only, nil, 0
	f.mu.Unlock()
	result := r.Run(ctx, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = false
	return result, f.err
}

// runEachWrite runs cases one after another, and kills the manager after each of its writes. Of a case that does not pass, it looks
// for the writes at fault, by runs with one kill each.
func (o *testOptions) runEachWrite(ctx context.Context, r *testsuite.Runner, cases []*testsuite.Case,
	plane *localPlane) ([]testsuite.Result, error) {
	f, err := newWriteFaults(ctx, plane)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r.TimeFactor = eachWriteFactor
	var results []testsuite.Result
	passed, writes := true, 0
	for _, c := range cases {
		result, err := f.run(ctx, r, c, 0)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return nil, err
		}
		results = append(results, result)
		r.Log(c.Name, "the manager was killed after each of its %d writes", f.killed)
		writes += f.killed
		if result.Err != nil {
			passed = false
			if err := f.search(ctx, r, c); err != nil {
				return nil, err
			}
		}
	}
	if passed {
		o.env.Printf("For the README: Its plans survive the death of kudo's manager after each of its %d writes (kubectl kudo test --fault %s, "+
			"kudo %s, %s).",
			writes, eachWrite, command.Version, o.env.Now().Format(time.DateOnly))
	}
	return results, nil
}

// search names the writes that a case does not survive.
func (f *writeFaults) search(ctx context.Context, r *testsuite.Runner, c *testsuite.Case) error {
	r.Log(c.Name, "looking for the writes that it does not survive, by one run for each")
	var found []string
	for n := 1; ; n++ {
		result, err := f.run(ctx, r, c, n)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if f.killed == 0 {
			break
		}
		if result.Err != nil {
			found = append(found, fmt.Sprintf("write %d, %s: %v", n, f.writes[n-1], result.Err))
		}
	}
	if len(found) == 0 {
		r.Log(c.Name, "it survives each of them alone")
		return nil
	}
	r.Log(c.Name, "it does not survive the death of the manager after\n%s", strings.Join(found, "\n"))
	return nil
}
