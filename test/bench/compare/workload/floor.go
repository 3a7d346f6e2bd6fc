package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/manifests"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
)

// workersOfManager is how many Instances the manager works on at a time, and so does the bare client.
const workersOfManager = 8

// example is an Instance, and the objects that the manager has written for it.
type example struct {
	name            string
	instance        *unstructured.Unstructured
	objects, others []*unstructured.Unstructured // others are the record of the run, and the events
}

// readExample reads an Instance and its objects.
func readExample(ctx context.Context, p *plane.Plane, ns, name string) (*example, error) {
	w := &example{name: name}
	read := func(gvk schema.GroupVersionKind, is func(u *unstructured.Unstructured) bool) (out []*unstructured.Unstructured, err error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := p.List(ctx, list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("read the objects of Instance %s: %w", name, err)
		}
		for i := range list.Items {
			if u := &list.Items[i]; is(u) {
				out = append(out, u)
			}
		}
		return out, nil
	}
	named := func(u *unstructured.Unstructured) bool { return u.GetName() == name }
	owned := func(u *unstructured.Unstructured) bool {
		return slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Instance" && o.Name == name })
	}
	about := func(u *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(u.Object, "involvedObject", "kind")
		subject, _, _ := unstructured.NestedString(u.Object, "involvedObject", "name")
		return kind == "Instance" && subject == name
	}
	instances, err := read(v1beta1.GroupVersion.WithKind("Instance"), named)
	if err != nil || len(instances) != 1 {
		return nil, fmt.Errorf("there are %d Instances %s: %w", len(instances), name, err)
	}
	w.instance = instances[0]
	for _, gvk := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		corev1.SchemeGroupVersion.WithKind("Service"), {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	} {
		found, err := read(gvk, named)
		if err != nil {
			return nil, err
		}
		w.objects = append(w.objects, found...)
	}
	records, err := read(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), owned)
	if err != nil {
		return nil, err
	}
	events, err := read(corev1.SchemeGroupVersion.WithKind("Event"), about)
	w.others = append(records, events...)
	return w, err
}

// as returns an object for another Instance: with its name in place of the first one's in each text, its uid in owner references, and
// nothing that the API server sets.
func (w *example) as(u *unstructured.Unstructured, ns, name string, uid types.UID) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: rename(u.Object, w.name, name).(map[string]any)}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(out.Object, "spec", "clusterIPs")
	out.SetNamespace(ns)
	owners := out.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = uid
	}
	if len(owners) > 0 {
		out.SetOwnerReferences(owners)
	}
	if out.GetKind() == "Event" {
		_ = unstructured.SetNestedField(out.Object, ns, "involvedObject", "namespace")
	}
	return out
}

// rename replaces a name in all texts of a JSON value that are the name, or begin or end with it.
func rename(value any, from, to string) any {
	switch v := value.(type) {
	case string:
		if rest, found := strings.CutPrefix(v, from); found && (rest == "" || !isNumber(rest[:1])) {
			return to + rest
		}
		if rest, found := strings.CutSuffix(v, "/"+from); found {
			return rest + "/" + to
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = rename(v[i], from, to)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key := range v {
			out[key] = rename(v[key], from, to)
		}
		return out
	}
	return value
}

// startBareClient starts a control plane without a manager, whose plane the caller stops, and returns a client that has written one Instance
// there.
func (b *Bench) startBareClient(ctx context.Context, w *example) (*bareClient, error) {
	p, err := plane.StartBare("full")
	if err != nil {
		return nil, err
	}
	c := &bareClient{plane: p, ns: "default", w: w}
	err = try(ctx, b.Dir, func(t testing.TB) error {
		p.DefineFiles(t, manifests.Files, "crds/kudo.dev_*.yaml")
		return nil
	})
	if err == nil {
		_, _, err = c.come(ctx, 0, 1, 1)
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	return c, nil
}

// burstOfBareClient returns the p99 and the total time of each burst of n Instances that a bare client writes.
func (b *Bench) burstOfBareClient(ctx context.Context, w *example, n int) (late, all []float64, err error) {
	c, err := b.startBareClient(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	defer c.plane.Stop()
	for round := range bursts {
		b.Say("%d Instances of a bare client at once, round %d of %d", n, round+1, bursts)
		times, took, err := c.come(ctx, 1+round*n, 1+(round+1)*n, n)
		if err != nil {
			return nil, nil, err
		}
		late, all = append(late, report.Quantile(times, 0.99)), append(all, took.Seconds())
	}
	return late, all, nil
}

// bareClient creates many Instances at once on a control plane without a manager, and writes for each what the manager has written for the
// example.
type bareClient struct {
	plane *plane.Plane
	ns    string
	w     *example

	mu       sync.Mutex
	observed map[string]chan struct{} // closed when the Deployment of the name is observed
}

// come writes the Instances of some numbers and creates as many at a time as there are writers. It returns how long each Instance took from its
// creation to its last status, and how long all of them took.
func (c *bareClient) come(ctx context.Context, from, to, writers int) ([]float64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, comeLimit)
	defer cancel()
	c.observed = map[string]chan struct{}{}
	for n := from; n < to; n++ {
		c.observed[fmt.Sprintf("b%d", n)] = make(chan struct{})
	}
	events, err := c.plane.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(c.ns))
	if err != nil {
		return nil, 0, err
	}
	defer events.Stop()
	go c.observe(events)
	began, seconds, failed := time.Now(), make([]float64, to-from), make([]error, to-from)
	slots, creations := make(chan struct{}, workersOfManager), make(chan struct{}, writers)
	var all sync.WaitGroup
	for i := range seconds {
		creations <- struct{}{}
		all.Go(func() {
			one := time.Now()
			failed[i] = c.write(ctx, fmt.Sprintf("b%d", from+i), slots, func() { <-creations })
			seconds[i] = time.Since(one).Seconds()
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, 0, err
		}
	}
	return seconds, time.Since(began), nil
}

// observe notes the Deployments whose controller has observed them.
func (c *bareClient) observe(events watch.Interface) {
	for e := range events.ResultChan() {
		if d, ok := e.Object.(*appsv1.Deployment); ok && d.Status.ObservedGeneration >= d.Generation {
			c.mu.Lock()
			if seen, waits := c.observed[d.Name]; waits {
				close(seen)
				delete(c.observed, d.Name)
			}
			c.mu.Unlock()
		}
	}
}

// write writes one Instance, what the manager would write for it, and its last status when its Deployment is observed. It calls created
// after the Instance was created.
func (c *bareClient) write(ctx context.Context, name string, slots chan struct{}, created func()) error {
	c.mu.Lock()
	observed := c.observed[name]
	c.mu.Unlock()
	instance := c.w.as(c.w.instance, c.ns, name, "")
	last := instance.DeepCopy()
	unstructured.RemoveNestedField(instance.Object, "status")
	err := c.plane.Create(ctx, instance)
	created()
	if err != nil {
		return err
	}
	slots <- struct{}{}
	err = c.start(ctx, instance, last)
	<-slots
	if err != nil {
		return err
	}
	select {
	case <-observed:
	case <-ctx.Done():
		return fmt.Errorf("the Deployment of Instance %s is not observed: %w", name, ctx.Err())
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	return c.setStatus(ctx, instance, last.Object["status"])
}

// start writes the first status, the objects, and the others.
func (c *bareClient) start(ctx context.Context, instance, last *unstructured.Unstructured) error {
	first := last.DeepCopy()
	if err := unstructured.SetNestedField(first.Object, string(v1beta1.InProgress), "status", "aggregatedStatus", "status"); err != nil {
		return err
	}
	if err := c.setStatus(ctx, instance, first.Object["status"]); err != nil {
		return err
	}
	failed := make([]error, len(c.w.objects)+len(c.w.others))
	var all sync.WaitGroup
	for i, o := range slices.Concat(c.w.objects, c.w.others) {
		all.Go(func() {
			body := c.w.as(o, c.ns, instance.GetName(), instance.GetUID())
			unstructured.RemoveNestedField(body.Object, "status")
			if i < len(c.w.objects) {
				failed[i] = c.plane.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner("bare"), client.ForceOwnership)
				return
			}
			failed[i] = c.plane.Create(ctx, body)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// setStatus patches the status of an Instance, as the manager does.
func (c *bareClient) setStatus(ctx context.Context, instance *unstructured.Unstructured, status any) error {
	base := instance.DeepCopy()
	instance.Object["status"] = status
	return c.plane.Status().Patch(ctx, instance, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}
