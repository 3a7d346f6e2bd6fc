package loop

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

// Times between two reconciles of an object.
const (
	minConflictDelay = 5 * time.Millisecond
	minBackoff       = 250 * time.Millisecond
	maxBackoff       = 30 * time.Second
	// RecheckInterval is how long a change may stay unnoticed that no watch shows, or that a watch has missed.
	RecheckInterval = 30 * time.Second
)

// Backoff decides when objects are reconciled again, and counts how often each has been tried.
type Backoff struct {
	// transient delays attempts after errors.
	transient workqueue.TypedRateLimiter[types.NamespacedName]
	// conflict delays attempts after conflicts.
	conflict workqueue.TypedRateLimiter[types.NamespacedName]
	// readLive holds the objects that the cache may show in an older version: their last reconcile failed, and what it wrote
	// last may have been committed without an answer, or it met a newer version.
	readLive sync.Map
}

// NewBackoff returns a Backoff that remembers nothing.
func NewBackoff() *Backoff {
	return &Backoff{
		transient: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minBackoff, maxBackoff),
		conflict:  workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minConflictDelay, maxBackoff),
	}
}

// Limiter returns the rate limiter of a controller's work queue.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minConflictDelay, maxBackoff)
}

// OnError returns what follows a reconcile that failed. After a conflict, the object has changed: it is reconciled again at
// once, and less often if that does not help.
func (b *Backoff) OnError(ctx context.Context, key types.NamespacedName, err error) (ctrl.Result, error) {
	b.readLive.Store(key, true)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		ctrl.LoggerFrom(ctx).V(1).Info("the object has changed in the meantime, reconciling again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: b.conflict.When(key)}, nil
	case ctx.Err() != nil:
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("the reconcile failed, trying again", "error", err.Error())
	return ctrl.Result{RequeueAfter: b.transient.When(key)}, nil
}

// OnSuccess returns what follows a reconcile that has not failed.
func (b *Backoff) OnSuccess(key types.NamespacedName, result Result) ctrl.Result {
	b.conflict.Forget(key)
	if result.Transient {
		return ctrl.Result{RequeueAfter: b.transient.When(key)}
	}
	b.transient.Forget(key)
	return ctrl.Result{RequeueAfter: result.RequeueAfter}
}

// Read reads an object for a reconcile: from the cache or, after a reconcile that failed, live, until the cache has the same
// version. A reconcile that knows less than the one before would repeat what that one has done.
func (b *Backoff) Read(ctx context.Context, key types.NamespacedName, obj client.Object, cached, live client.Reader) error {
	if _, found := b.readLive.Load(key); !found {
		return cached.Get(ctx, key, obj)
	}
	inCache := obj.DeepCopyObject().(client.Object)
	if err := cached.Get(ctx, key, inCache); client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := live.Get(ctx, key, obj); err != nil {
		return err
	}
	if inCache.GetResourceVersion() == obj.GetResourceVersion() {
		b.readLive.Delete(key)
	}
	return nil
}

// Forget drops what is remembered of an object.
func (b *Backoff) Forget(key types.NamespacedName) {
	b.conflict.Forget(key)
	b.transient.Forget(key)
	b.readLive.Delete(key)
}
