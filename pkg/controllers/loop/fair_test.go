package loop

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

// TestFairQueue: one namespace does not delay the others, however many of its Instances wait.
func TestFairQueue(t *testing.T) {
	q := NewFairQueue(t.Name(), Limiter()).(*FairQueue)
	t.Cleanup(q.ShutDown)
	for n := range 1000 {
		q.Add(request("crowd", n))
		q.Add(request("crowd", n)) // what waits already does not count twice
	}
	q.Add(request("quiet", 1))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(1)}, request("crowd", 1000))
	if n := q.Len(); n != 1002 {
		t.Fatalf("%d requests wait, want 1002", n)
	}
	place := map[reconcile.Request]int{}
	for n := range 1002 {
		next, _, _ := q.GetWithPriority()
		q.Done(next)
		place[next] = n
	}
	if at := place[request("quiet", 1)]; at > 1 {
		t.Errorf("the Instance of the quiet namespace is number %d, and should be among the first two", at)
	}
	if len(place) != 1002 {
		t.Errorf("%d requests came, want 1002", len(place))
	}
	if len(q.waiting) != 0 {
		t.Errorf("what came is still noted: %v", q.waiting)
	}
}

// TestFairQueueLater: a request that is added for later does not delay other requests.
func TestFairQueueLater(t *testing.T) {
	q := NewFairQueue(t.Name(), Limiter()).(*FairQueue)
	t.Cleanup(q.ShutDown)
	for n := range 100 {
		q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request("a", n))
	}
	if less := q.enter(request("a", 200), false); less != 0 {
		t.Errorf("the next request gives way by %d", less)
	}
}
