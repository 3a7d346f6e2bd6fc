package apply

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Names knows the names of objects that kudo has not made, and that the mirror thus does not show. When tasks have created minCreated
// objects of a kind, Names starts one watch of the metadata of that kind in all namespaces, and tasks need not ask the API server for
// each name. The watch ends when no task has needed it for nameIdle.
//
//	created of the kind       fewer than minCreated     → not known
//	kinds with a watch        maxNameKinds others       → not known
//	objects of the kind       more than maxNames        → not known
//	the watch                 has no list, or is broken → not known
//	else                                                → as the watch has shown it
//
// Only creations count, and not looks: whoever may not create objects of a kind cannot have the manager watch it.
//
// What is not known is looked at live. The watch may lag like any other: it saves the look before the first write of a task, and
// guards nothing. The guard is the create-only apply of each object.
type Names struct {
	client metadata.Interface
	log    logr.Logger
	// ctx ends the watches.
	ctx context.Context
	// idle is how long a watch stays that no task needs.
	idle time.Duration

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*nameWatch
}

// minCreated is how many creations of a kind start its watch: a few looks cost less than the first list. maxNameKinds is how many kinds are
// counted or watched at a time. maxNames is for how many objects of a kind there is a watch, as their metadata is sent and their names are
// kept.
const (
	minCreated   = 3
	maxNameKinds = 64
	maxNames     = 10_000
	nameIdle     = 10 * time.Minute
)

// NewNames returns Names that know nothing yet. The context ends the watches.
func NewNames(ctx context.Context, client metadata.Interface, log logr.Logger) *Names {
	return &Names{client: client, log: log, ctx: ctx, idle: nameIdle, kinds: map[schema.GroupVersionResource]*nameWatch{}}
}

// look returns what is known of the names of a resource, and keeps its watch.
func (n *Names) look(resource schema.GroupVersionResource) *nameWatch {
	if n == nil {
		return &nameWatch{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.kinds[resource]
	if w == nil {
		return &nameWatch{}
	}
	n.keep(w)
	return w
}

// noteCreation notes that an object of a resource was created.
func (n *Names) noteCreation(resource schema.GroupVersionResource) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.kinds[resource]
	if w == nil {
		if len(n.kinds) >= maxNameKinds {
			return
		}
		w = &nameWatch{}
		w.ctx, w.stop = context.WithCancel(n.ctx)
		w.expiry = time.AfterFunc(n.idle, func() { n.forget(resource, w) })
		n.kinds[resource] = w
	}
	n.keep(w)
	if w.created++; w.created == minCreated {
		go n.watch(resource, w)
	}
}

// keep gives a watch another idle time before it is forgotten. A watch that has ended gets none, so that a new one is started later. The
// caller holds the lock.
func (n *Names) keep(w *nameWatch) {
	if w.ctx.Err() == nil {
		w.expiry.Reset(n.idle)
	}
}

// forget ends the watch of a resource.
func (n *Names) forget(resource schema.GroupVersionResource, w *nameWatch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.end()
	if n.kinds[resource] == w {
		delete(n.kinds, resource)
	}
}

// watch shows the names of a resource until the watch ends. If there are too many, or they cannot be watched, it leaves them unknown.
func (n *Names) watch(resource schema.GroupVersionResource, w *nameWatch) {
	objects := n.client.Resource(resource)
	first, err := objects.List(w.ctx, metav1.ListOptions{Limit: 1})
	if err != nil || ptr.Deref(first.RemainingItemCount, 0) >= maxNames {
		w.end()
		return
	}
	refused := func(err error) {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			n.log.V(1).Info("names cannot be watched", "resource", resource.String(), "error", err.Error())
			w.end()
		}
	}
	others := func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.HeritageLabel + "!=" + v1beta1.Heritage }
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			others(&o)
			w.connect(false)
			list, err := objects.List(ctx, o)
			refused(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			others(&o)
			w.connect(false)
			events, err := objects.Watch(ctx, o)
			refused(err)
			w.connect(err == nil && !ptr.Deref(o.SendInitialEvents, false)) // initial events end in Replace
			return events, err
		},
	}, n.client)
	cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, w, cache.ReflectorOptions{
		Name: "names", TypeDescription: resource.String(),
	}).RunWithContext(w.ctx)
}

// nameWatch is what is known of the names of one resource. It is the store of a reflector, and keeps nothing but names.
type nameWatch struct {
	ctx  context.Context
	stop context.CancelFunc
	// expiry forgets the watch when it is not needed.
	expiry *time.Timer
	// created counts creations.
	created int

	mu sync.Mutex
	// connected is set while the names are those of a list, or of a watch that is open.
	connected bool
	// taken holds the names; nil until the first list is there.
	taken map[types.NamespacedName]struct{}
}

// isFree reports whether it is known that no object has a name, but for those that kudo has made.
func (w *nameWatch) isFree(name types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, taken := w.taken[name]
	return w.connected && w.taken != nil && !taken
}

// connect notes whether a watch is open.
func (w *nameWatch) connect(open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected = open && w.ctx.Err() == nil
}

// end ends the watch: nothing is known from now on.
func (w *nameWatch) end() {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected, w.taken = false, nil
}

// Add implements cache.ReflectorStore.
func (w *nameWatch) Add(obj any) error {
	w.mu.Lock()
	if item, ok := obj.(*metav1.PartialObjectMetadata); ok && w.taken != nil {
		w.taken[types.NamespacedName{Namespace: item.Namespace, Name: item.Name}] = struct{}{}
	}
	crowded := len(w.taken) > maxNames
	w.mu.Unlock()
	if crowded {
		w.end()
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (w *nameWatch) Update(obj any) error { return w.Add(obj) }

// Delete implements cache.ReflectorStore.
func (w *nameWatch) Delete(obj any) error {
	if item, ok := obj.(*metav1.PartialObjectMetadata); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.taken, types.NamespacedName{Namespace: item.Namespace, Name: item.Name})
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (w *nameWatch) Replace(list []any, _ string) error {
	taken := make(map[types.NamespacedName]struct{}, len(list))
	for _, obj := range list {
		if item, ok := obj.(*metav1.PartialObjectMetadata); ok {
			taken[types.NamespacedName{Namespace: item.Namespace, Name: item.Name}] = struct{}{}
		}
	}
	if len(taken) > maxNames {
		w.end()
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.taken, w.connected = taken, true
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *nameWatch) Resync() error { return nil }
