package apply

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Mirror shows the live objects that carry kudo's heritage label: one watch a kind, started when the kind is first
// used. What we wrote ourselves is shown at once, though the watch may lag.
type Mirror struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// changed is called for each object that any client has changed. The object has only the owners that the change concerns.
	changed func(obj *unstructured.Unstructured)
	log     logr.Logger
	// ctx ends the watches.
	ctx context.Context

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kindWatch
}

// kindWatch is the watch of one kind.
type kindWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// stopped is closed when the watch has been stopped.
	stopped <-chan struct{}

	mu sync.Mutex
	// unobserved holds what we wrote and the watch has not shown yet.
	unobserved map[string]*packedObject
}

// NewMirror returns a mirror whose watches end with the context.
func NewMirror(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, log logr.Logger,
	changed func(*unstructured.Unstructured)) *Mirror {
	return &Mirror{client: client, mapper: mapper, changed: changed, log: log, ctx: ctx, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// syncTimeout bounds the wait for the first list of a kind; the cluster may be slow, and the engine can do without.
const syncTimeout = 5 * time.Second

// Watch starts to watch the kinds, and waits for their first lists. A kind that cannot be watched is no
// error: its objects are then looked at live.
func (m *Mirror) Watch(ctx context.Context, kinds ...schema.GroupVersionKind) {
	var started []*kindWatch
	for _, gvk := range kinds {
		if w := m.start(gvk); w != nil && !w.informer.HasSynced() {
			started = append(started, w)
		}
	}
	deadline := time.NewTimer(syncTimeout)
	defer deadline.Stop()
	for _, w := range started {
		select {
		case <-w.informer.HasSyncedChecker().Done():
		case <-w.stopped:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *Mirror) start(gvk schema.GroupVersionKind) *kindWatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.kinds[gvk]; w != nil {
		return w
	}
	mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil
	}
	ctx, stop := context.WithCancel(m.ctx)
	w := &kindWatch{stop: stop, stopped: ctx.Done(), unobserved: map[string]*packedObject{}}
	w.informer = dynamicinformer.NewFilteredDynamicInformer(m.client, mapping.Resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.HeritageLabel + "=" + v1beta1.Heritage }).Informer()
	_ = w.informer.SetTransform(packed)
	_ = w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			m.forget(gvk, w)
			return
		}
		if !errors.Is(err, context.Canceled) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			m.log.V(1).Info("watch failed, trying again", "kind", gvk.String(), "error", err.Error())
		}
	})
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { m.handleEvent(w, nil, obj, false) },
		UpdateFunc: func(before, obj any) { m.handleEvent(w, before, obj, false) },
		DeleteFunc: func(obj any) { m.handleEvent(w, nil, obj, true) },
	})
	m.kinds[gvk] = w
	go w.informer.RunWithContext(ctx)
	return w
}

// forget stops the watch of a kind that is no longer served.
func (m *Mirror) forget(gvk schema.GroupVersionKind, w *kindWatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.stop()
	if m.kinds[gvk] == w {
		delete(m.kinds, gvk)
	}
}

// handleEvent takes an event of the watch: what it shows replaces what we remember of our own writes, unless it is older.
func (m *Mirror) handleEvent(w *kindWatch, before, event any, deleted bool) {
	if tombstone, ok := event.(cache.DeletedFinalStateUnknown); ok {
		event = tombstone.Obj
	}
	seen, ok := event.(*packedObject)
	if !ok {
		return
	}
	key := seen.Namespace + "/" + seen.Name
	w.mu.Lock()
	if own := w.unobserved[key]; own != nil && (!older(seen, own) || deleted && own.UID == seen.UID) {
		delete(w.unobserved, key)
	}
	obj := seen.object()
	if last, updated := before.(*packedObject); updated && len(obj.GetOwnerReferences()) > 1 {
		obj = withAddedOwners(last.object(), obj)
	}
	w.mu.Unlock()
	m.changed(obj)
}

// withAddedOwners returns an object with only the owners that its last change concerns: the added owners if nothing else has changed, and
// all owners otherwise. Without it, a new owner of an object would cause a reconcile of each earlier owner.
func withAddedOwners(before, obj *unstructured.Unstructured) *unstructured.Unstructured {
	was, owners := before.GetOwnerReferences(), obj.GetOwnerReferences()
	added := len(owners) - len(was)
	if added <= 0 || obj.GetAnnotations()[TrimmedAnnotation] != "" || !equality.Semantic.DeepEqual(was, owners[:len(was)]) ||
		!equality.Semantic.DeepEqual(withoutOwners(before), withoutOwners(obj)) {
		return obj
	}
	out := &unstructured.Unstructured{Object: withoutOwners(obj)}
	out.SetOwnerReferences(owners[len(was):])
	return out
}

// withoutOwners returns the fields of an object without its owners and its resourceVersion. They share their values with the object.
func withoutOwners(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "ownerReferences")
	delete(metadata, "resourceVersion")
	out["metadata"] = metadata
	return out
}

// RecordWrite remembers what a write of ours answered, until the watch shows it. It changes the object.
func (m *Mirror) RecordWrite(obj *unstructured.Unstructured) {
	w := m.start(obj.GroupVersionKind())
	if w == nil {
		return
	}
	own, err := pack(obj)
	if err != nil {
		return // the watch will show it
	}
	key := own.Namespace + "/" + own.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.observed(key); seen == nil || older(seen, own) {
		w.unobserved[key] = own
	}
}

// Get returns the object as it was seen last, or nil; complete is false while the kind's first list is not there yet.
// The object must not be changed.
func (m *Mirror) Get(id ID) (obj *unstructured.Unstructured, complete bool) {
	m.mu.Lock()
	w := m.kinds[id.GroupVersionKind]
	m.mu.Unlock()
	if w == nil {
		return nil, false
	}
	key := id.Namespace + "/" + id.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest(key).object(), w.informer.HasSynced()
}

// UnobservedWrite returns what was written last and the watch has not shown yet, or nil if there is none. It may be deleted: a caller that
// relies on it names its uid.
func (m *Mirror) UnobservedWrite(id ID) *unstructured.Unstructured {
	m.mu.Lock()
	w := m.kinds[id.GroupVersionKind]
	m.mu.Unlock()
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unobserved[id.Namespace+"/"+id.Name].object()
}

// latest is what the watch shows, or what we wrote since:
//
//	watch shows it:   as new as our write, or newer → the watch's      older → ours
//	watch does not:   it has not come so far → ours                    it has → gone, though no event may ever say so
//
// How far it has come is what the store holds, asked before the look into it: what the watch has received may still be on
// its way there.
func (w *kindWatch) latest(key string) *packedObject {
	at := w.informer.GetStore().LastStoreSyncResourceVersion()
	seen, own := w.observed(key), w.unobserved[key]
	switch {
	case own == nil, seen != nil && !older(seen, own):
		return seen
	case seen == nil:
		if order, err := resourceversion.CompareResourceVersion(at, own.ResourceVersion); err == nil && order >= 0 {
			return nil
		}
	}
	return own
}

// observed is what the watch has shown last, or nil if there is nothing.
func (w *kindWatch) observed(key string) *packedObject {
	if key[0] == '/' {
		key = key[1:]
	}
	item, ok, err := w.informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	out, _ := item.(*packedObject)
	return out
}

func older(a, b *packedObject) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// packed is how the watch stores what it receives.
func packed(item any) (any, error) {
	if obj, ok := item.(*unstructured.Unstructured); ok {
		return pack(obj)
	}
	return item, nil
}

// largeData is the size of a ConfigMap's or Secret's data from which the mirror does not keep it, in bytes.
const largeData = 16 << 10

// TrimmedAnnotation marks objects in the memory of the manager whose data is not kept there. It is not written to the cluster.
const TrimmedAnnotation = "kudo.dev/trimmed"

// trim drops what no caller reads from the mirror.
func trim(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	for _, field := range []string{"data", "binaryData"} {
		size := 0
		values, _ := obj.Object[field].(map[string]any)
		for _, value := range values {
			text, _ := value.(string)
			size += len(text)
		}
		if size > largeData {
			delete(obj.Object, field)
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[TrimmedAnnotation] = "true"
			obj.SetAnnotations(annotations)
		}
	}
}
