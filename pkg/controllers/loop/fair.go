package loop

import (
	"cmp"
	"container/heap"
	"math/bits"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FairQueue is a priority queue in which no namespace delays the others.
//
// The more requests of a namespace wait, the lower is the priority of its next one. There are few priorities, since the metrics of queues
// have one series for each:
//
//	waiting   0   1   3   7   …   1023
//	minus     0   1   2   3   …   10
//
// A namespace has two thirds of the workers at most, so that some are left for the others, however long each request takes, such as one
// that reads a file that never ends. If a namespace has all of its workers, its next requests are held back until one of its requests is
// done.
type FairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	// max is how many requests of a namespace are worked on at a time.
	max int

	mu         sync.Mutex
	namespaces map[string]*namespaceQueue
}

// namespaceQueue is what a FairQueue knows of a namespace.
type namespaceQueue struct {
	// waiting are the requests that no worker works on; those that are to come later do not count.
	waiting map[reconcile.Request]bool
	// deductions are by how much the priorities of requests were lowered, until a worker works on them.
	deductions map[reconcile.Request]int
	// active is how many requests are worked on.
	active int
	// priorities are those of the requests that are held back, and backlog has these requests in their order. It also has outdated items:
	// an item counts if its priority is that in priorities.
	priorities map[reconcile.Request]int
	backlog    backlog
	// arrivals counts the items that were put into the backlog.
	arrivals int
}

// NewQueue has the signature of controller.Options.NewQueue.
type NewQueue = func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// NewFairQueue returns a function that makes a FairQueue for so many workers.
func NewFairQueue(workers int) NewQueue {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		queue := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
		return &FairQueue{PriorityQueue: queue, max: max(1, workers*2/3), namespaces: map[string]*namespaceQueue{}}
	}
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *FairQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		options := o
		options.Priority = ptr.To(ptr.Deref(o.Priority, 0) - q.enter(request, o.After == 0 && !o.RateLimited))
		q.PriorityQueue.AddWithOpts(options, request)
	}
}

// Add implements workqueue.TypedInterface.
func (q *FairQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// queueOf returns what is known of a namespace. The caller holds the lock.
func (q *FairQueue) queueOf(namespace string) *namespaceQueue {
	n := q.namespaces[namespace]
	if n == nil {
		n = &namespaceQueue{waiting: map[reconcile.Request]bool{}, deductions: map[reconcile.Request]int{},
			priorities: map[reconcile.Request]int{}}
		q.namespaces[namespace] = n
	}
	return n
}

// enter notes that a request waits, unless it is to come later, and returns by how much its priority is lowered.
func (q *FairQueue) enter(request reconcile.Request, now bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.queueOf(request.Namespace)
	before := len(n.waiting)
	if n.waiting[request] {
		before--
	}
	if now {
		n.waiting[request] = true
	}
	deduction := bits.Len(uint(before))
	if known, found := n.deductions[request]; !found || deduction < known { // the queue keeps the higher priority
		n.deductions[request] = deduction
	}
	return deduction
}

// GetWithPriority implements priorityqueue.PriorityQueue. The priority is the one that the request was added with: a controller adds a
// request that is to come again with the priority that it got.
func (q *FairQueue) GetWithPriority() (reconcile.Request, int, bool) {
	for {
		request, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown {
			return request, priority, true
		}
		if deduction, begun := q.begin(request, priority); begun {
			return request, priority + deduction, false
		}
		q.PriorityQueue.Done(request)
	}
}

// Get implements workqueue.TypedInterface.
func (q *FairQueue) Get() (reconcile.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}

// begin notes that a request is worked on, and returns by how much its priority was lowered. If the namespace of the request has all of its
// workers, begin holds the request back and returns false.
func (q *FairQueue) begin(request reconcile.Request, priority int) (deduction int, begun bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.queueOf(request.Namespace)
	if n.active >= q.max {
		n.hold(request, priority)
		return 0, false
	}
	n.active++
	deduction = n.deductions[request]
	delete(n.waiting, request)
	delete(n.deductions, request)
	delete(n.priorities, request) // it was held back before it was added again: the worker sees what it was held for, too
	return deduction, true
}

// Done implements workqueue.TypedInterface. Of the requests of the namespace that are held back, the one with the highest priority is added
// to the queue again, where more urgent requests of all namespaces come before it.
func (q *FairQueue) Done(request reconcile.Request) {
	q.PriorityQueue.Done(request)
	if next, priority, found := q.end(request.Namespace); found {
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, next)
	}
}

// end notes that a request of a namespace is not worked on any more, and returns the next one of those that are held back.
func (q *FairQueue) end(namespace string) (next reconcile.Request, priority int, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.queueOf(namespace)
	n.active--
	next, priority, found = n.release()
	if n.active == 0 && len(n.deductions) == 0 && !found {
		delete(q.namespaces, namespace)
	}
	return next, priority, found
}

// hold holds a request back. One that is held back already gets the higher one of its priorities.
func (n *namespaceQueue) hold(request reconcile.Request, priority int) {
	n.waiting[request] = true
	if before, found := n.priorities[request]; found && before >= priority {
		return
	}
	n.priorities[request] = priority
	n.arrivals++
	heap.Push(&n.backlog, backlogItem{request, priority, n.arrivals})
}

// release returns the next request of those that are held back, which is not held back any more.
func (n *namespaceQueue) release() (reconcile.Request, int, bool) {
	for len(n.backlog) > 0 {
		next := heap.Pop(&n.backlog).(backlogItem)
		if priority, found := n.priorities[next.Request]; found && priority == next.priority {
			delete(n.priorities, next.Request)
			return next.Request, next.priority, true
		}
	}
	return reconcile.Request{}, 0, false
}

// backlogItem is a request that is held back, with its priority and its place among those of the same priority.
type backlogItem struct {
	reconcile.Request
	priority, arrival int
}

// backlog implements heap.Interface. The item with the highest priority is the first; of equal ones, the one that came first.
type backlog []backlogItem

func (b backlog) Len() int { return len(b) }
func (b backlog) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(b[j].priority, b[i].priority), cmp.Compare(b[i].arrival, b[j].arrival)) < 0
}
func (b backlog) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *backlog) Push(x any)   { *b = append(*b, x.(backlogItem)) }
func (b *backlog) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
