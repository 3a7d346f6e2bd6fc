package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// feedState says what is known of the objects of a feed.
type feedState int

const (
	// loading: the objects are not listed yet.
	loading feedState = iota
	// current: the objects are listed, and watched.
	current
	// forbidden: the user may not list or watch the objects.
	forbidden
	// unauthorized: the cluster does not accept the login.
	unauthorized
	// notServed: the cluster does not serve the kind.
	notServed
	// unreachable has no answer of the cluster, or another error.
	unreachable
)

// feedStatus is the state of a feed, and since when it is so.
type feedStatus struct {
	State feedState
	// Message is that of the API server; empty while the feed is current or loading.
	Message string
	Since   time.Time
}

// source lists and watches the objects of one kind.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// feed holds the objects of one kind, by one LIST and one watch. It asks for nothing as long as the watch lasts.
type feed struct {
	source
	// kind is the plural that users know.
	kind     string
	clock    clock.PassiveClock
	informer cache.SharedIndexInformer
	changed  func()

	mu     sync.Mutex
	status feedStatus
}

// newFeed returns a feed. reduce removes what no page shows; changed is called after each change, from any goroutine.
func newFeed(kind string, object runtime.Object, from source, reduce func(any), now clock.PassiveClock, changed func()) (*feed, error) {
	f := &feed{source: from, kind: kind, clock: now, changed: changed, status: feedStatus{Since: now.Now()}}
	f.informer = cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: f.List, WatchFuncWithContext: f.Watch}, object, 0,
		cache.Indexers{})
	setup := errors.Join(
		f.informer.SetTransform(func(obj any) (any, error) {
			if accessor, err := meta.Accessor(obj); err == nil {
				accessor.SetManagedFields(nil)
			}
			reduce(obj)
			return obj, nil
		}),
		// List and Watch have seen the error; the default would log it between what the command prints.
		f.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}),
	)
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return f, errors.Join(setup, err)
}

// run fills the feed until the context ends.
func (f *feed) run(ctx context.Context) {
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
			f.changed() // also a feed without objects is filled now
		}
	}()
	f.informer.RunWithContext(ctx)
}

// List lists the objects, and notes whether that was possible.
func (f *feed) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := f.source.list(ctx, options)
	f.note(err)
	return list, err
}

// Watch watches the objects, and notes whether that was possible.
func (f *feed) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := f.source.watch(ctx, options)
	f.note(err)
	return events, err
}

func (f *feed) note(err error) {
	next := feedStatus{State: current}
	switch {
	case err == nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, context.Canceled):
	case apierrors.IsForbidden(err):
		next = feedStatus{State: forbidden, Message: err.Error()}
	case apierrors.IsUnauthorized(err):
		next = feedStatus{State: unauthorized, Message: err.Error()}
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		next = feedStatus{State: notServed, Message: err.Error()}
	default:
		next = feedStatus{State: unreachable, Message: err.Error()}
	}
	f.mu.Lock()
	same := next.State == f.status.State && (next.State == current || next.Message == f.status.Message)
	if next.State != f.status.State {
		next.Since = f.clock.Now()
	} else {
		next.Since = f.status.Since
	}
	f.status = next
	f.mu.Unlock()
	if !same {
		f.changed()
	}
}

// Status returns the state of the feed. It is loading until all objects are there.
func (f *feed) Status() feedStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.State == current && !f.informer.HasSynced() {
		return feedStatus{State: loading, Since: f.status.Since}
	}
	return f.status
}

// unknown returns why it is not known how the objects of the feed are now; empty if it is known.
func (f *feed) unknown() string {
	switch status := f.Status(); status.State {
	case current:
		return ""
	case loading:
		return "loading"
	case forbidden:
		return "you have no right to list and watch " + f.kind
	case unauthorized:
		return "your login has ended"
	default:
		return long(status.Message)
	}
}

// objectsOf returns the objects of a feed, in no order.
func objectsOf[T any](f *feed) []T {
	var out []T
	for _, obj := range f.informer.GetStore().List() {
		if typed, ok := obj.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// objectOf returns one object of a feed by namespace and name; false if the feed does not have it.
func objectOf[T any](f *feed, namespace, name string) (T, bool) {
	obj, found, _ := f.informer.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	typed, ok := obj.(T)
	return typed, found && ok
}
