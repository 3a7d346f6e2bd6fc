// Package requeue decides when an object is looked at again after something went wrong: in one place for all
// controllers.
package requeue

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Times between two looks at an object.
const (
	minAgain   = 5 * time.Millisecond
	minBackoff = 250 * time.Millisecond
	// MaxBackoff is the longest time between two tries of what may pass.
	MaxBackoff = 30 * time.Second
	// Look is how long what is waited for may go unnoticed, should a watch have missed it.
	Look = 30 * time.Second
)

// Queue knows how often each object has been tried.
type Queue struct {
	// backoff is how long transient errors wait.
	backoff workqueue.TypedRateLimiter[types.NamespacedName]
	// again is how long it takes to look again at what has changed in the meantime.
	again workqueue.TypedRateLimiter[types.NamespacedName]
	// unsure are the objects that the cache may be behind of: their last reconcile failed, and what it wrote last may have
	// been committed without an answer, or it met a newer version.
	unsure sync.Map
}

// New returns a queue in which nothing was tried yet.
func New() *Queue {
	return &Queue{
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minBackoff, MaxBackoff),
		again:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minAgain, MaxBackoff),
	}
}

// Limiter is the rate limiter of a controller's work queue.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minAgain, MaxBackoff)
}

// Failed handles the errors of a reconcile. A conflict means that the object has changed: it is looked at again at once,
// and less often if that does not help.
func (q *Queue) Failed(ctx context.Context, key types.NamespacedName, err error) (ctrl.Result, error) {
	q.unsure.Store(key, true)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		ctrl.LoggerFrom(ctx).V(1).Info("changed in the meantime, looking again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: q.again.When(key)}, nil
	case ctx.Err() != nil:
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("cannot go on, trying again", "error", err.Error())
	return q.Transient(key), nil
}

// Read reads an object for a reconcile: from the cache or, after one that failed, live, until the cache is as new. A
// reconcile that knows less than the one before would do again what that one has done.
func (q *Queue) Read(ctx context.Context, key types.NamespacedName, obj client.Object, cached, live client.Reader) error {
	if _, unsure := q.unsure.Load(key); !unsure {
		return cached.Get(ctx, key, obj)
	}
	seen := obj.DeepCopyObject().(client.Object)
	if err := cached.Get(ctx, key, seen); client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := live.Get(ctx, key, obj); err != nil {
		return err
	}
	if seen.GetResourceVersion() == obj.GetResourceVersion() {
		q.unsure.Delete(key)
	}
	return nil
}

// Transient is when to try again what may pass.
func (q *Queue) Transient(key types.NamespacedName) ctrl.Result {
	return ctrl.Result{RequeueAfter: q.backoff.When(key)}
}

// Seen notes that a reconcile has come through, Done that nothing failed in it.
func (q *Queue) Seen(key types.NamespacedName) { q.again.Forget(key) }

// Done notes that nothing failed.
func (q *Queue) Done(key types.NamespacedName) { q.backoff.Forget(key) }

// Forget forgets an object.
func (q *Queue) Forget(key types.NamespacedName) {
	q.Seen(key)
	q.Done(key)
	q.unsure.Delete(key)
}
