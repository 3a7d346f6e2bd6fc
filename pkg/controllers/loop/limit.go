package loop

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// limitDelay is when a request of a namespace that has all its workers is tried again.
const limitDelay = 100 * time.Millisecond

// Limit is a reconciler that bounds how many requests of a namespace it works on at a time. So workers are left for other namespaces,
// however long each request takes, such as one that reads a file that never ends.
type Limit struct {
	reconcile.Reconciler
	max int

	mu     sync.Mutex
	active map[string]int
}

// NewLimit returns a reconciler that lets a namespace have two thirds of the workers, and at least one.
func NewLimit(inner reconcile.Reconciler, workers int) *Limit {
	return &Limit{Reconciler: inner, max: max(1, workers*2/3), active: map[string]int{}}
}

// Reconcile implements reconcile.Reconciler.
func (l *Limit) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	if !l.enter(request.Namespace) {
		return ctrl.Result{RequeueAfter: limitDelay}, nil
	}
	defer l.leave(request.Namespace)
	return l.Reconciler.Reconcile(ctx, request)
}

func (l *Limit) enter(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[namespace] >= l.max {
		return false
	}
	l.active[namespace]++
	return true
}

func (l *Limit) leave(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[namespace]--; l.active[namespace] == 0 {
		delete(l.active, namespace)
	}
}
