package loop

import (
	"math/bits"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FairQueue is a priority queue in which no namespace delays the others: the more requests of a namespace wait, the lower
// is the priority of its next one.
//
//	waiting   0   1   3   7   …   1023
//	minus     0   1   2   3   …   10
//
// There are few priorities, since the metrics of queues have one series for each.
type FairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu      sync.Mutex
	waiting map[string]map[reconcile.Request]bool
}

// NewFairQueue returns an empty queue. It has the signature of controller.Options.NewQueue.
func NewFairQueue(name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	return &FairQueue{PriorityQueue: queue, waiting: map[string]map[reconcile.Request]bool{}}
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

// enter notes that a request waits, unless it is to come later, and returns how much it gives way.
func (q *FairQueue) enter(request reconcile.Request, now bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[request.Namespace]
	before := len(waiting)
	if waiting[request] {
		before--
	}
	if now {
		if waiting == nil {
			waiting = map[reconcile.Request]bool{}
			q.waiting[request.Namespace] = waiting
		}
		waiting[request] = true
	}
	return bits.Len(uint(before))
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *FairQueue) GetWithPriority() (reconcile.Request, int, bool) {
	request, priority, shutdown := q.PriorityQueue.GetWithPriority()
	q.leave(request)
	return request, priority, shutdown
}

// Get implements workqueue.TypedInterface.
func (q *FairQueue) Get() (reconcile.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}

// leave notes that a request does not wait any more.
func (q *FairQueue) leave(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.waiting[request.Namespace]; waiting != nil {
		if delete(waiting, request); len(waiting) == 0 {
			delete(q.waiting, request.Namespace)
		}
	}
}
