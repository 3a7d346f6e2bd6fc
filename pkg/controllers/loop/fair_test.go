package loop

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

// newQueue returns a queue for so many workers, until the test ends.
func newQueue(t *testing.T, workers int) *FairQueue {
	t.Helper()
	q := NewFairQueue(workers)(t.Name(), Limiter()).(*FairQueue)
	t.Cleanup(func() {
		if !q.ShuttingDown() {
			q.ShutDown()
		}
	})
	return q
}

// TestFairQueue: one namespace does not delay the others, however many of its Instances wait.
func TestFairQueue(t *testing.T) {
	q := newQueue(t, 12)
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
	if len(q.namespaces) != 0 {
		t.Errorf("what came is still noted: %v", q.namespaces)
	}
}

// TestFairQueueLater: a request that is added for later does not delay other requests.
func TestFairQueueLater(t *testing.T) {
	q := newQueue(t, 12)
	for n := range 100 {
		q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request("a", n))
	}
	if less := q.enter(request("a", 200), false); less != 0 {
		t.Errorf("the next request gives way by %d", less)
	}
}

// TestLimit: a namespace whose requests never end leaves workers to the others, and what is held back comes in the order of its priority.
func TestLimit(t *testing.T) {
	q := newQueue(t, 3)
	next := func(want reconcile.Request) {
		t.Helper()
		if got, _ := q.Get(); got != want {
			t.Fatalf("the next request is %s, want %s", got, want)
		}
	}
	for n := range 5 {
		q.Add(request("crowd", n))
	}
	next(request("crowd", 0))
	next(request("crowd", 1))
	third := make(chan reconcile.Request)
	go func() {
		got, _ := q.Get()
		third <- got
	}()
	until(t, "the others are held back", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.namespaces["crowd"].priorities) == 3
	})
	q.Add(request("crowd", 3)) // is held back already
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(5)}, request("crowd", 4))
	until(t, "the priority is raised", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.namespaces["crowd"].priorities[request("crowd", 4)] > 0
	})
	q.Add(request("quiet", 0))
	if got := <-third; got != request("quiet", 0) {
		t.Fatalf("the third worker has %s", got)
	}
	q.Done(request("crowd", 1))
	next(request("crowd", 4))
	q.Done(request("crowd", 4))
	next(request("crowd", 2))
	q.Done(request("crowd", 0))
	next(request("crowd", 3))
	for _, r := range []reconcile.Request{request("crowd", 2), request("crowd", 3), request("quiet", 0)} {
		q.Done(r)
	}
	if len(q.namespaces) != 0 || q.Len() != 0 {
		t.Errorf("still noted are %v, and %d wait", q.namespaces, q.Len())
	}
}

// TestLimitAddedAgain: a request that is held back, is added again, and is worked on before it is released, is not released after that: the
// worker of another request would be lost.
func TestLimitAddedAgain(t *testing.T) {
	q := newQueue(t, 3)
	first, second, r1, r2 := request("x", 1), request("x", 2), request("x", 3), request("x", 4)
	for _, r := range []reconcile.Request{first, second} {
		if _, begun := q.begin(r, 0); !begun {
			t.Fatal("the namespace has no worker")
		}
	}
	for _, r := range []reconcile.Request{r2, r1} {
		if _, begun := q.begin(r, 0); begun {
			t.Fatal("the namespace has three workers")
		}
	}
	if next, _, _ := q.end("x"); next != r2 {
		t.Fatalf("%s is released", next)
	}
	if _, begun := q.begin(r1, 0); !begun { // a watch has added it again
		t.Fatal("the worker that is free is not used")
	}
	if _, begun := q.begin(r2, 0); begun {
		t.Fatal("the namespace has three workers")
	}
	if next, _, found := q.end("x"); next != r2 || !found {
		t.Errorf("%s is released, want the one that no worker has", next)
	}
}

// TestFairQueuePriority: a request that is added again with the priority that a worker got does not fall behind by that.
func TestFairQueuePriority(t *testing.T) {
	q := newQueue(t, 12)
	for n := range 100 {
		q.Add(request("crowd", n))
	}
	again := request("crowd", 1000)
	for range 5 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(50)}, again)
		got, priority, _ := q.GetWithPriority()
		q.Done(got)
		if got != again || priority != 50 {
			t.Fatalf("%s with priority %d, want %s with 50", got, priority, again)
		}
	}
}

// until waits until a condition is met, for ten seconds at most.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for tick := time.Tick(time.Millisecond); !met(); <-tick {
		select {
		case <-late:
			t.Fatalf("after ten seconds it is not so that %s", what)
		default:
		}
	}
}

// countingQueue counts the requests that it has given.
type countingQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	given atomic.Int64
}

func (q *countingQueue) GetWithPriority() (reconcile.Request, int, bool) {
	request, priority, shutdown := q.PriorityQueue.GetWithPriority()
	q.given.Add(1)
	return request, priority, shutdown
}

// TestLimitWorkers: many workers do all requests of several namespaces, each as often as it was added since it was begun, never more of a
// namespace at a time than it may have. A request is given three times at most: workers do not ask for what is held back again and again.
func TestLimitWorkers(t *testing.T) {
	const workers, crowd, others = 12, 2000, 50
	q := newQueue(t, workers)
	counting := &countingQueue{PriorityQueue: q.PriorityQueue}
	q.PriorityQueue = counting
	for n := range crowd {
		q.Add(request("crowd", n))
	}
	for n := range others {
		q.Add(request("quiet", n))
	}
	var active, most, done sync.Map
	var left, group sync.WaitGroup
	left.Add(crowd + others + crowd/10)
	counter := func(m *sync.Map, key any) *atomic.Int64 {
		value, _ := m.LoadOrStore(key, &atomic.Int64{})
		return value.(*atomic.Int64)
	}
	for range workers {
		group.Go(func() {
			for {
				r, shutdown := q.Get()
				if shutdown {
					return
				}
				now := counter(&active, r.Namespace).Add(1)
				if m := counter(&most, r.Namespace); now > m.Load() {
					m.Store(now)
				}
				if counter(&done, r).Add(1) == 1 && r.Namespace == "crowd" && r.Name[len(r.Name)-1] == '7' {
					q.Add(r) // as a watch does while the request is worked on
				}
				counter(&active, r.Namespace).Add(-1)
				q.Done(r)
				left.Done()
			}
		})
	}
	left.Wait()
	q.ShutDown()
	group.Wait()
	if got := counter(&most, "crowd").Load(); got > workers*2/3 {
		t.Errorf("%d requests of the namespace were worked on at a time", got)
	}
	for n := range crowd {
		want := int64(1)
		if n%10 == 7 {
			want = 2
		}
		if got := counter(&done, request("crowd", n)).Load(); got != want {
			t.Errorf("request %d was done %d times, want %d", n, got, want)
		}
	}
	if given := counting.given.Load(); given > 3*(crowd+crowd/10)+others+workers {
		t.Errorf("%d requests were given", given)
	}
}
