package workload

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/fixture"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/gen"
)

// fourObjects is an OperatorVersion whose Instances have the four objects of the fleet.
func fourObjects(ns string) *v1beta1.OperatorVersion {
	text := strings.Replace(strings.Join(fixture.Four("{{ .Name }}"), "---\n"), "{port: 80}", "{port: {{ .Params.PORT }}}", 1)
	return gen.Version(ns, "four", gen.Param("PORT", "80", ""), gen.Template("four.yaml", text), gen.Apply("all", "four.yaml"), gen.Serial(v1beta1.DeployPlan, "all"))
}

// comeLimit bounds the time in which a crowd comes.
const comeLimit = 30 * time.Minute

// crowd is a number of Instances that come at once.
type crowd struct {
	plane *plane.Plane
	// namespace is that of all of them, or empty.
	namespace string
	// instance returns the Instance of a number.
	instance func(n int) *v1beta1.Instance
	// writers is how many create at a time.
	writers int
	say     func(string, ...any)

	mu    sync.Mutex
	began map[types.NamespacedName]time.Time
	took  map[types.NamespacedName]time.Duration
}

// come creates Instances from one number to another, and returns how long each took from the request that creates it to
// COMPLETE, and all together.
func (c *crowd) come(ctx context.Context, from, to int) ([]float64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, comeLimit)
	defer cancel()
	c.began, c.took = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Duration{}
	list := &v1beta1.InstanceList{}
	if err := c.plane.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return nil, 0, err
	}
	began, failed := time.Now(), make(chan error, c.writers)
	go c.create(ctx, from, to, failed)
	if err := c.follow(ctx, list.ResourceVersion, to-from, failed); err != nil {
		return nil, 0, err
	}
	total := time.Since(began)
	var seconds []float64
	for _, d := range c.took {
		seconds = append(seconds, d.Seconds())
	}
	return seconds, total, nil
}

func (c *crowd) create(ctx context.Context, from, to int, failed chan<- error) {
	numbers := make(chan int)
	for range c.writers {
		go func() {
			for n := range numbers {
				i := c.instance(n)
				c.mu.Lock()
				c.began[client.ObjectKeyFromObject(i)] = time.Now()
				c.mu.Unlock()
				if err := c.plane.Create(ctx, i); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	defer close(numbers)
	for n := from; n < to; n++ {
		select {
		case numbers <- n:
		case <-ctx.Done():
			return
		}
	}
}

// follow watches until a number of Instances is COMPLETE.
func (c *crowd) follow(ctx context.Context, version string, count int, failed <-chan error) error {
	for len(c.took) < count {
		events, err := c.plane.Watch(ctx, &v1beta1.InstanceList{}, &client.ListOptions{Namespace: c.namespace, Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil {
			return err
		}
		version, err = c.read(ctx, events, version, count, failed)
		events.Stop()
		if err != nil {
			return fmt.Errorf("%d of %d Instances are COMPLETE: %w", len(c.took), count, err)
		}
	}
	return nil
}

// read reads a watch to its end, or until all are COMPLETE; it returns where to go on.
func (c *crowd) read(ctx context.Context, events watch.Interface, version string, count int, failed <-chan error) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case err := <-failed:
			return version, err
		case e, open := <-events.ResultChan():
			if !open {
				return version, nil
			}
			i, ok := e.Object.(*v1beta1.Instance)
			if !ok {
				return version, fmt.Errorf("the watch fails: %v", e.Object)
			}
			version = i.ResourceVersion
			if err := c.see(i); err != nil {
				return version, err
			}
			if len(c.took) >= count {
				return version, nil
			}
		}
	}
}

func (c *crowd) see(i *v1beta1.Instance) error {
	name := client.ObjectKeyFromObject(i)
	c.mu.Lock()
	began, ours := c.began[name]
	c.mu.Unlock()
	st := i.Status.PlanStatus[v1beta1.DeployPlan]
	if _, done := c.took[name]; !ours || done || !st.Status.IsTerminal() {
		return nil
	}
	if st.Status != v1beta1.Complete {
		return fmt.Errorf("plan deploy of Instance %s ended with %s: %s", name, st.Status, st.Message)
	}
	c.took[name] = time.Since(began)
	if n := len(c.took); n%100 == 0 {
		c.say("%d Instances are COMPLETE", n)
	}
	return nil
}

// instancesOf returns a function that returns Instances of an OperatorVersion, whose names have the numbers.
func instancesOf(ov *v1beta1.OperatorVersion) func(n int) *v1beta1.Instance {
	return func(n int) *v1beta1.Instance { return gen.Instance(fmt.Sprintf("i%d", n), ov, nil) }
}

// crowd makes an OperatorVersion, and a crowd for it.
func (b *Bench) crowd(ctx context.Context, p *plane.Plane, writers int) (*crowd, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, err
	}
	ov := fourObjects(ns)
	return &crowd{plane: p, namespace: ns, instance: instancesOf(ov), writers: writers, say: b.Say}, p.Create(ctx, ov)
}
