package testsuite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runner runs cases on a cluster.
type Runner struct {
	Cluster *Cluster
	// Path is the PATH of commands.
	Path string
	// Timeout for what must hold after a step.
	Timeout time.Duration
	// TimeFactor multiplies all timeouts, for a cluster that is slow on purpose; 0 is 1.
	TimeFactor int
	// Namespace for all cases; empty for one of its own for each.
	Namespace string
	// SkipDelete keeps the namespaces of cases.
	SkipDelete bool
	// KeepFailed keeps what cases that fail have made.
	KeepFailed bool
	// Parallel is how many cases run at a time.
	Parallel int
	// Describe tells what a failed case left in its namespace; may be nil.
	Describe func(ctx context.Context, kubeconfig, namespace string) string
	// InjectFault is called while a step waits for what must hold; may be nil.
	InjectFault func(ctx context.Context)
	// Log is told what happens in a case.
	Log func(name, format string, args ...any)

	// hasKept is set when what a case has made was kept.
	hasKept atomic.Bool
	// disturbLock is held for reading by what a disturbance would break, and for writing by disturbances.
	disturbLock sync.RWMutex
}

// Result is what came of a case.
type Result struct {
	Name  string
	Took  time.Duration
	Steps []StepResult
	Err   error
	// Namespace in which the case ran.
	Namespace string
	// Kept are commands that show and delete what the case has left, since it failed.
	Kept []string
}

// StepResult is what came of a step.
type StepResult struct {
	Name string
	Took time.Duration
	Err  error
}

// RunAll runs cases side by side. The results are in the order of the cases; none is begun after the context has ended.
// While the namespace of a case goes, which takes the cluster seconds, the next case runs already.
func (r *Runner) RunAll(ctx context.Context, cases []*Case) []Result {
	results := make([]Result, len(cases))
	slots := make(chan struct{}, max(1, r.Parallel))
	var all sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		if ctx.Err() != nil {
			results[i] = Result{Name: c.Name, Err: ctx.Err()}
			<-slots
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			result, teardown := r.runCase(ctx, c)
			<-slots
			teardown()
			results[i] = result
		}()
	}
	all.Wait()
	return results
}

// Commands runs the commands of a suite, in the current folder; those in the background run until end is called.
func (r *Runner) Commands(ctx context.Context, commands []Command) (end func(), err error) {
	s := &shell{dir: ".", namespace: r.Namespace, kubeconfig: r.Cluster.Kubeconfig, path: r.Path, timeFactor: r.TimeFactor,
		log: func(format string, args ...any) { r.Log("suite", format, args...) }}
	if s.namespace == "" {
		s.namespace = metav1.NamespaceDefault
	}
	for _, command := range commands {
		if err := s.run(ctx, command, r.Timeout); err != nil {
			return s.end, err
		}
	}
	return s.end, nil
}

// Run runs a case.
func (r *Runner) Run(ctx context.Context, c *Case) Result {
	result, teardown := r.runCase(ctx, c)
	teardown()
	return result
}

// runCase runs a case. The function that it returns deletes the namespaces of the case, and waits until they are deleted.
func (r *Runner) runCase(ctx context.Context, c *Case) (result Result, teardown func()) {
	began := time.Now()
	result, teardown = Result{Name: c.Name}, func() {}
	defer func() { result.Took = time.Since(began) }()
	log := func(format string, args ...any) { r.Log(c.Name, format, args...) }
	for _, note := range c.Notes {
		log("note: %s", note)
	}
	if c.LoadError != nil {
		log("FAILED: %s", c.LoadError)
		result.Err = c.LoadError
		return result, teardown
	}
	p, err := r.begin(ctx, c, log)
	if err != nil {
		log("FAILED: %s", err)
		result.Err = err
		return result, teardown
	}
	result.Namespace = p.namespace
	teardown = func() { p.deleteNamespaces(context.WithoutCancel(ctx)) }
	defer func() {
		if r.keepsFailed(&result, ctx.Err() != nil) {
			p.keep, result.Kept = true, p.kept()
			r.hasKept.Store(true)
		}
		p.end(context.WithoutCancel(ctx))
	}()
	p.runSteps(ctx, c, &result)
	return result, teardown
}

// runSteps runs the steps of a case, until one fails.
func (p *caseRun) runSteps(ctx context.Context, c *Case, result *Result) {
	for i := range c.Steps {
		step, began := &c.Steps[i], time.Now()
		err := p.step(ctx, step)
		name := fmt.Sprintf("%d-%s", step.Index, step.Name)
		result.Steps = append(result.Steps, StepResult{name, time.Since(began), err})
		if err == nil {
			p.log("step %s done (%s)", name, time.Since(began).Round(time.Millisecond))
			continue
		}
		result.Err = fmt.Errorf("step %s: %w", name, err)
		p.log("step %s FAILED (%s): %s", name, time.Since(began).Round(time.Millisecond), err)
		if ctx.Err() == nil {
			p.collect(ctx, p.shell, step)
		}
		return
	}
}

// step runs the deletes, commands and applies of a step, and waits for what must hold.
func (p *caseRun) step(ctx context.Context, step *Step) error {
	timeout := p.Timeout
	if step.Timeout != 0 {
		timeout = step.Timeout
	}
	limit := timeout * time.Duration(max(1, p.TimeFactor))
	cluster, err := p.cluster(ctx, step.Kubeconfig)
	if err != nil {
		return err
	}
	p.kubeconfig = cluster.Kubeconfig
	seen, err := p.act(ctx, cluster, step, limit)
	if err != nil {
		return err
	}
	defer seen.stop()
	if p.InjectFault != nil {
		disturbed, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.disturbLock.Lock()
			defer p.disturbLock.Unlock()
			p.InjectFault(disturbed)
		}()
		defer func() { cancel(); <-done }()
	}
	return seen.await(ctx, limit, func(ctx context.Context) []string { return checks(ctx, p.shell, step, timeout) })
}

// act does what a step does, under the eyes of watches that are open before.
func (p *caseRun) act(ctx context.Context, cluster *Cluster, step *Step, timeout time.Duration) (seen *stepObserver, err error) {
	p.disturbLock.RLock()
	defer p.disturbLock.RUnlock()
	if seen, err = observe(ctx, cluster, step, p.namespace); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			seen.stop()
		}
	}()
	for _, target := range step.Deletes {
		if err := cluster.remove(ctx, target, p.namespace, timeout); err != nil {
			return seen, err
		}
		p.log("deleted %s", target)
	}
	for _, command := range step.Commands { // the timeout of a TestAssert is that of what it asserts
		if err := p.run(ctx, command, p.Timeout); err != nil {
			return seen, err
		}
	}
	for _, obj := range step.Applies {
		created, err := cluster.apply(ctx, obj, p.namespace)
		if err != nil {
			return seen, err
		}
		if created != nil {
			p.created = append(p.created, owned{cluster, created})
		}
		p.log("applied %s", title(obj))
	}
	return seen, nil
}

// checks runs the commands that must succeed.
func checks(ctx context.Context, s *shell, step *Step, timeout time.Duration) []string {
	quiet := *s
	quiet.log = func(string, ...any) {}
	defer func() { s.background, s.leftBehind = quiet.background, quiet.leftBehind }()
	for _, check := range step.Checks {
		if err := quiet.run(ctx, check, timeout); err != nil {
			return strings.Split(err.Error(), "\n")
		}
	}
	return nil
}
