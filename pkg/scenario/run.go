package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// RunAll runs cases side by side. The results are in the order of the cases.
func (r *Runner) RunAll(ctx context.Context, cases []*Case) []Result {
	results := make([]Result, len(cases))
	slots := make(chan struct{}, max(1, r.Parallel))
	var all sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-slots; all.Done() }()
			results[i] = r.Run(ctx, c)
		}()
	}
	all.Wait()
	return results
}

// Commands runs the commands of a suite, in the current folder.
func (r *Runner) Commands(ctx context.Context, commands []Command) error {
	s := &shell{dir: ".", namespace: r.Namespace, kubeconfig: r.Cluster.Kubeconfig, path: r.Path,
		log: func(format string, args ...any) { r.Log("suite", format, args...) }}
	defer s.end()
	for _, command := range commands {
		if err := s.run(ctx, command, r.Timeout); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a case.
func (r *Runner) Run(ctx context.Context, c *Case) (result Result) {
	began := time.Now()
	result = Result{Name: c.Name}
	defer func() { result.Took = time.Since(began) }()
	log := func(format string, args ...any) { r.Log(c.Name, format, args...) }
	for _, note := range c.Notes {
		log("note: %s", note)
	}
	namespace, own, err := r.namespace(ctx)
	if err != nil {
		result.Err = err
		return result
	}
	s := &shell{dir: c.Dir, namespace: namespace, kubeconfig: r.Cluster.Kubeconfig, path: r.Path, log: log}
	defer s.end()
	if own && !r.SkipDelete {
		defer r.drop(context.WithoutCancel(ctx), namespace, log)
	}
	for i := range c.Steps {
		step, began := &c.Steps[i], time.Now()
		err := r.step(ctx, s, step)
		name := fmt.Sprintf("%d-%s", step.Index, step.Name)
		result.Steps = append(result.Steps, StepResult{name, time.Since(began), err})
		if err == nil {
			log("step %s done (%s)", name, time.Since(began).Round(time.Millisecond))
			continue
		}
		result.Err = fmt.Errorf("step %s: %w", name, err)
		log("step %s FAILED (%s): %s", name, time.Since(began).Round(time.Millisecond), err)
		r.collect(context.WithoutCancel(ctx), s, step)
		return result
	}
	return result
}

// namespace makes the namespace of a case, or uses the one of all.
func (r *Runner) namespace(ctx context.Context) (name string, own bool, err error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetName(r.Namespace)
	if r.Namespace == "" {
		random := make([]byte, 5)
		if _, err := rand.Read(random); err != nil {
			return "", false, err
		}
		obj.SetName("kudo-test-" + hex.EncodeToString(random))
	}
	_, err = r.Cluster.client.Resource(namespaces).Create(ctx, obj, metav1.CreateOptions{})
	if r.Namespace != "" && apierrors.IsAlreadyExists(err) {
		err = nil
	}
	if err != nil {
		return "", false, fmt.Errorf("namespace %s: %w", obj.GetName(), err)
	}
	return obj.GetName(), r.Namespace == "", nil
}

// dropTimeout is how long a namespace may take to go.
const dropTimeout = 3 * time.Minute

// drop deletes the namespace of a case, and waits until it is gone.
func (r *Runner) drop(ctx context.Context, name string, log func(string, ...any)) {
	resource := r.Cluster.client.Resource(namespaces)
	err := resource.Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil {
		err = gone(ctx, resource, name, dropTimeout)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		log("namespace %s: %s", name, err)
	}
}

// step runs the deletes, commands and applies of a step, and waits for what must hold.
func (r *Runner) step(ctx context.Context, s *shell, step *Step) error {
	timeout := r.Timeout
	if step.Timeout != 0 {
		timeout = step.Timeout
	}
	cluster := r.Cluster
	if s.kubeconfig = cluster.Kubeconfig; step.Kubeconfig != "" {
		other, err := Connect(step.Kubeconfig)
		if err != nil {
			return err
		}
		cluster, s.kubeconfig = other, step.Kubeconfig
	}
	seen, err := observe(ctx, cluster, step, s.namespace)
	if err != nil {
		return err
	}
	defer seen.stop()
	for _, target := range step.Deletes {
		if err := cluster.remove(ctx, target, s.namespace, timeout); err != nil {
			return err
		}
	}
	for _, command := range step.Commands {
		if err := s.run(ctx, command, timeout); err != nil {
			return err
		}
	}
	for _, obj := range step.Applies {
		if err := cluster.apply(ctx, obj, s.namespace); err != nil {
			return err
		}
		s.log("applied %s", title(obj))
	}
	if r.Disturb != nil {
		disturbed, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); r.Disturb(disturbed) }()
		defer func() { cancel(); <-done }()
	}
	return seen.await(ctx, timeout, func(ctx context.Context) []string { return r.checks(ctx, s, step) })
}

// checks runs the commands that must succeed.
func (r *Runner) checks(ctx context.Context, s *shell, step *Step) []string {
	quiet := *s
	quiet.log = func(string, ...any) {}
	for _, check := range step.Checks {
		if err := quiet.run(ctx, check, r.Timeout); err != nil {
			return strings.Split(err.Error(), "\n")
		}
	}
	return nil
}
