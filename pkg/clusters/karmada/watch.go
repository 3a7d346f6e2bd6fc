package karmada

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
)

// judgeEvery is how often the age of the Lease is judged.
const judgeEvery = 3 * time.Second

// CachedObjects returns how the cache of the hub keeps the kinds of the backend: of Leases the one of Karmada's controller manager, of
// ResourceBindings those of Instances in full, and of Clusters the conditions.
func CachedObjects(lease types.NamespacedName) map[client.Object]cache.ByObject {
	if lease == (types.NamespacedName{}) {
		lease = DefaultLease
	}
	return map[client.Object]cache.ByObject{
		ofKind(LeaseKind): {Namespaces: map[string]cache.Config{
			lease.Namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, lease.Name)},
		}},
		ofKind(BindingKind):        {Transform: trimBinding},
		ofKind(remote.ClusterKind): {Transform: trimCluster},
	}
}

// trimBinding takes the content out of a ResourceBinding of another kind.
func trimBinding(o any) (any, error) {
	binding, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	binding.SetManagedFields(nil)
	if bindingInstance(binding).Name != "" {
		return binding, nil
	}
	binding.Object["spec"] = map[string]any{"resource": at(binding.Object, "spec", "resource")}
	delete(binding.Object, "status")
	return binding, nil
}

// trimCluster takes out of a Cluster all but its conditions; the list of its APIs is long.
func trimCluster(o any) (any, error) {
	cluster, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	cluster.SetManagedFields(nil)
	delete(cluster.Object, "spec")
	cluster.Object["status"] = map[string]any{"conditions": at(cluster.Object, "status", "conditions")}
	return cluster, nil
}

// Start follows the hub until the context ends. It may be called once.
func (e *Engine) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for kind, handler := range e.handlers(ctx) {
		informer, err := e.cache.GetInformer(ctx, ofKind(kind))
		if err != nil {
			return fmt.Errorf("watch %s on the hub: %w: install Karmada there, or choose another engine for clusters", kind.Kind, err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watch %s on the hub: %w", kind.Kind, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	e.deliver(ctx)
	return nil
}

// deliver sends the queued Instances to the receiver of Events, and judges the age of the Lease.
func (e *Engine) deliver(ctx context.Context) {
	timer := e.clock.NewTimer(judgeEvery)
	defer timer.Stop()
	e.judge(ctx)
	var next *types.NamespacedName
	for {
		var events chan types.NamespacedName
		var key types.NamespacedName
		if next == nil {
			next = e.queue.pop()
		}
		if next != nil {
			events, key = e.events, *next
		}
		select {
		case <-ctx.Done():
			return
		case <-e.queue.added:
		case events <- key:
			next = nil
		case <-timer.C():
			e.judge(ctx)
			timer.Reset(judgeEvery)
		}
	}
}

// judge enqueues all placed Instances if Karmada has become silent, or is no longer.
func (e *Engine) judge(ctx context.Context) {
	if e.liveness.judge() {
		e.enqueuePlaced(ctx, "")
	}
}

// handlers returns what the watches of each kind do.
func (e *Engine) handlers(ctx context.Context) map[schema.GroupVersionKind]toolscache.ResourceEventHandler {
	lease := func(o *unstructured.Unstructured) {
		if client.ObjectKeyFromObject(o) == e.liveness.lease {
			e.liveness.see(o)
			e.judge(ctx)
		}
	}
	binding := func(o *unstructured.Unstructured) {
		if key := bindingInstance(o); key.Name != "" {
			e.queue.add(key)
		}
	}
	cluster := func(o *unstructured.Unstructured) { e.enqueuePlaced(ctx, o.GetName()) }
	policy := handler{changed: e.enqueueOwner, deleted: func(o *unstructured.Unstructured) {
		e.enqueueOwner(o)
		e.forget(e.ownerOf(o), o.GetUID())
	}}
	return map[schema.GroupVersionKind]toolscache.ResourceEventHandler{
		PolicyKind:         policy,
		OverrideKind:       policy,
		BindingKind:        handler{changed: binding, deleted: binding},
		remote.ClusterKind: handler{changed: cluster, deleted: cluster, equal: isEquallyReady},
		LeaseKind: handler{changed: lease, deleted: func(o *unstructured.Unstructured) {
			if client.ObjectKeyFromObject(o) == e.liveness.lease {
				e.liveness.lose()
				e.judge(ctx)
			}
		}},
	}
}

// isEquallyReady reports whether a change of a Cluster leaves its condition Ready as it was.
func isEquallyReady(before, after *unstructured.Unstructured) bool {
	return unreachable(before) == unreachable(after)
}

// enqueueOwner enqueues the Instance of a policy.
func (e *Engine) enqueueOwner(policy *unstructured.Unstructured) {
	if key := e.ownerOf(policy); key.Name != "" {
		e.queue.add(key)
	}
}

// ownerOf returns the Instance that controls a policy, or else the one in whose way the policy stands; the name is "" if there is none.
func (e *Engine) ownerOf(policy *unstructured.Unstructured) types.NamespacedName {
	if ref := metav1.GetControllerOf(policy); ref != nil && ref.Kind == instanceKind && ref.APIVersion == v1beta1.GroupVersion.String() {
		return types.NamespacedName{Namespace: policy.GetNamespace(), Name: ref.Name}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.named[client.ObjectKeyFromObject(policy)]
}

// enqueuePlaced enqueues the Instances that are placed on a cluster, or on any if the name is "".
func (e *Engine) enqueuePlaced(ctx context.Context, cluster string) {
	policies := &unstructured.UnstructuredList{}
	policies.SetGroupVersionKind(PolicyKind.GroupVersion().WithKind(PolicyKind.Kind + "List"))
	// The cache is local: an error says that it is being stopped.
	if err := e.cache.List(ctx, policies, client.HasLabels{v1beta1.InstanceLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for n := range policies.Items {
		named := list(at(policies.Items[n].Object, "spec", "placement", "clusterAffinity", "clusterNames"))
		for _, name := range named {
			if cluster == "" || name == cluster {
				e.enqueueOwner(&policies.Items[n])
				break
			}
		}
	}
}

// handler passes events of unstructured objects on.
type handler struct {
	changed, deleted func(*unstructured.Unstructured)
	// equal reports whether an update says nothing new; nil compares resource versions.
	equal func(before, after *unstructured.Unstructured) bool
}

// OnAdd implements the interface of informers.
func (h handler) OnAdd(o any, _ bool) {
	if object, ok := o.(*unstructured.Unstructured); ok {
		h.changed(object)
	}
}

// OnUpdate implements the interface of informers.
func (h handler) OnUpdate(before, after any) {
	from, wasObject := before.(*unstructured.Unstructured)
	to, isObject := after.(*unstructured.Unstructured)
	if !wasObject || !isObject || from.GetResourceVersion() == to.GetResourceVersion() || h.equal != nil && h.equal(from, to) {
		return
	}
	h.changed(to)
}

// OnDelete implements the interface of informers.
func (h handler) OnDelete(o any) {
	if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	if object, ok := o.(*unstructured.Unstructured); ok {
		h.deleted(object)
	}
}

// queue holds each Instance once, so that a slow receiver never delays the watches.
type queue struct {
	// added has an element if something may have been added.
	added chan struct{}

	mu   sync.Mutex
	keys []types.NamespacedName
	has  map[types.NamespacedName]bool
}

func newQueue() *queue {
	return &queue{added: make(chan struct{}, 1), has: map[types.NamespacedName]bool{}}
}

func (q *queue) add(key types.NamespacedName) {
	q.mu.Lock()
	if !q.has[key] {
		q.has[key] = true
		q.keys = append(q.keys, key)
	}
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// pop takes the first Instance out, or returns nil. One that is added while the receiver has it not yet is delivered twice: the first event
// may have been read before the second change.
func (q *queue) pop() *types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.keys) == 0 {
		return nil
	}
	key := q.keys[0]
	q.keys = q.keys[1:]
	delete(q.has, key)
	return &key
}
