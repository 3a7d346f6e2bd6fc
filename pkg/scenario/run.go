package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
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
	// Namespace for all cases; empty for one of its own for each.
	Namespace string
	// SkipDelete keeps the namespaces of cases.
	SkipDelete bool
	// Parallel is how many cases run at a time.
	Parallel int
	// Describe tells what a failed case left in its namespace; may be nil.
	Describe func(ctx context.Context, kubeconfig, namespace string) string
	// Disturb is called while a step waits for what must hold; may be nil.
	Disturb func(ctx context.Context)
	// Log is told what happens in a case.
	Log func(name, format string, args ...any)

	// calm is held for reading by what a disturbance would break, and for writing by disturbances.
	calm sync.RWMutex
}

// Result is what came of a case.
type Result struct {
	Name  string
	Took  time.Duration
	Steps []StepResult
	Err   error
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
			result, leave := r.play(ctx, c)
			<-slots
			leave()
			results[i] = result
		}()
	}
	all.Wait()
	return results
}

// Commands runs the commands of a suite, in the current folder; those in the background run until end is called.
func (r *Runner) Commands(ctx context.Context, commands []Command) (end func(), err error) {
	s := &shell{dir: ".", namespace: r.Namespace, kubeconfig: r.Cluster.Kubeconfig, path: r.Path,
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
	result, leave := r.play(ctx, c)
	leave()
	return result
}

// play runs a case; leave deletes its namespace, and waits until it is gone.
func (r *Runner) play(ctx context.Context, c *Case) (result Result, leave func()) {
	began := time.Now()
	result, leave = Result{Name: c.Name}, func() {}
	defer func() { result.Took = time.Since(began) }()
	log := func(format string, args ...any) { r.Log(c.Name, format, args...) }
	for _, note := range c.Notes {
		log("note: %s", note)
	}
	if c.Broken != nil {
		log("FAILED: %s", c.Broken)
		result.Err = c.Broken
		return result, leave
	}
	p, err := r.begin(ctx, c, log)
	if err != nil {
		log("FAILED: %s", err)
		result.Err = err
		return result, leave
	}
	leave = func() { p.leave(context.WithoutCancel(ctx)) }
	defer p.end(context.WithoutCancel(ctx))
	for i := range c.Steps {
		step, began := &c.Steps[i], time.Now()
		err := p.step(ctx, step)
		name := fmt.Sprintf("%d-%s", step.Index, step.Name)
		result.Steps = append(result.Steps, StepResult{name, time.Since(began), err})
		if err == nil {
			log("step %s done (%s)", name, time.Since(began).Round(time.Millisecond))
			continue
		}
		result.Err = fmt.Errorf("step %s: %w", name, err)
		log("step %s FAILED (%s): %s", name, time.Since(began).Round(time.Millisecond), err)
		if ctx.Err() == nil {
			r.collect(ctx, p.shell, step)
		}
		break
	}
	return result, leave
}

// step runs the deletes, commands and applies of a step, and waits for what must hold.
func (p *play) step(ctx context.Context, step *Step) error {
	timeout := p.Timeout
	if step.Timeout != 0 {
		timeout = step.Timeout
	}
	cluster, err := p.cluster(ctx, step.Kubeconfig)
	if err != nil {
		return err
	}
	p.kubeconfig = cluster.Kubeconfig
	seen, err := p.act(ctx, cluster, step, timeout)
	if err != nil {
		return err
	}
	defer seen.stop()
	if p.Disturb != nil {
		disturbed, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.calm.Lock()
			defer p.calm.Unlock()
			p.Disturb(disturbed)
		}()
		defer func() { cancel(); <-done }()
	}
	return seen.await(ctx, timeout, func(ctx context.Context) []string { return checks(ctx, p.shell, step, timeout) })
}

// act does what a step does, under the eyes of watches that are open before.
func (p *play) act(ctx context.Context, cluster *Cluster, step *Step, timeout time.Duration) (seen *view, err error) {
	p.calm.RLock()
	defer p.calm.RUnlock()
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
	defer func() { s.background, s.left = quiet.background, quiet.left }()
	for _, check := range step.Checks {
		if err := quiet.run(ctx, check, timeout); err != nil {
			return strings.Split(err.Error(), "\n")
		}
	}
	return nil
}
