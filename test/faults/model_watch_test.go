package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// modelWatch has all that is stored of plans judged, while faults go on. It sees each state, but those that were stored while
// its watch was broken.
type modelWatch struct {
	mu sync.Mutex
	// last are the subjects as they were seen last.
	last map[types.UID]*subject
	// versions by namespace.
	versions map[string][]*v1beta1.OperatorVersionSpec
	// objections that were made, and how many states were judged.
	objections []string
	states     int
}

// session judges until the end of what is done in it; objections fail the test.
func session(t *testing.T, do func()) {
	t.Helper()
	c := &modelWatch{last: map[types.UID]*subject{}, versions: map[string][]*v1beta1.OperatorVersionSpec{}}
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	for _, list := range []client.ObjectList{&v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}} {
		watches.Go(func() {
			for ctx.Err() == nil {
				c.watch(ctx, list)
				pause(ctx, 100*time.Millisecond)
			}
		})
	}
	do()
	cancel()
	watches.Wait()
	t.Logf("%d states of plans were judged", c.states)
	for _, o := range c.objections {
		t.Error(o)
	}
	if c.states == 0 {
		t.Error("nothing was judged")
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watch judges what a watch shows, from what is there now on, until it breaks.
func (c *modelWatch) watch(ctx context.Context, list client.ObjectList) {
	events, err := connection.direct.Watch(ctx, list)
	if err != nil {
		return // the apiserver is dead, perhaps
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		obj, ok := e.Object.(client.Object)
		if !ok {
			return
		}
		if e.Type == watch.Deleted {
			c.mu.Lock()
			delete(c.last, obj.GetUID())
			c.mu.Unlock()
			continue
		}
		c.hear(ctx, obj)
	}
}

// hear judges a state.
func (c *modelWatch) hear(ctx context.Context, obj client.Object) {
	s := &subject{name: fmt.Sprintf("%s/%s at version %s", obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion())}
	switch o := obj.(type) {
	case *v1beta1.Instance:
		s.plans, s.aggregated = o.Status.PlanStatus, o.Status.AggregatedStatus
		if o.Status.Baseline != nil {
			s.newest = o.Status.Baseline.Revision
		}
	case *v1beta1.OperatorVersion:
		s.plans, s.aggregated, s.newest = o.Status.PlanStatus, o.Status.AggregatedStatus, o.Status.Revision
		s.versions = []*v1beta1.OperatorVersionSpec{&o.Spec}
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states++
	if s.versions == nil {
		s.versions = c.known(ctx, obj.GetNamespace(), s)
	}
	c.objections = append(c.objections, checkModel(c.last[obj.GetUID()], s)...)
	c.last[obj.GetUID()] = s
}

// known are the OperatorVersions of a namespace, read anew if a run is of none that is known.
func (c *modelWatch) known(ctx context.Context, ns string, s *subject) []*v1beta1.OperatorVersionSpec {
	s.versions = c.versions[ns]
	for name, st := range s.plans {
		if st.Status == v1beta1.NeverRun || fitting(s, name) != nil {
			continue
		}
		list := &v1beta1.OperatorVersionList{}
		if err := suite.List(ctx, list, client.InNamespace(ns)); err != nil {
			return c.versions[ns]
		}
		for i := range list.Items {
			c.versions[ns] = append(c.versions[ns], &list.Items[i].Spec)
		}
		break
	}
	return c.versions[ns]
}
