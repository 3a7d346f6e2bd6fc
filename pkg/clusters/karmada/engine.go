package karmada

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
)

// DefaultLease is the Lease of Karmada's controller manager, by Karmada's defaults.
var DefaultLease = types.NamespacedName{Namespace: "karmada-system", Name: "karmada-controller-manager"}

// Options of an Engine.
type Options struct {
	// Client of the hub, which reads unstructured objects from the API server.
	Client client.Client
	// Cache of the hub. It is made with the result of CachedObjects.
	Cache cache.Cache
	// Config of the hub, from which Access derives those of clusters.
	Config *rest.Config
	// Lease of Karmada's controller manager; none is DefaultLease.
	Lease types.NamespacedName
	// Clock is the time of the hub; none is the real one.
	Clock clock.Clock
}

// Engine places Instances by Karmada.
type Engine struct {
	client   client.Client
	cache    cache.Cache
	config   *rest.Config
	clock    clock.Clock
	events   chan types.NamespacedName
	queue    *queue
	liveness *liveness

	mu      sync.Mutex
	written map[types.NamespacedName]versions
	// named are the Instances by the names of their policies.
	named map[types.NamespacedName]types.NamespacedName
}

// versions are those of the two policies of an Instance that Place has written, or has found as they should be. One whose write may have
// failed is empty, which no object of the cache shows.
type versions struct{ policy, override version }

var (
	_ clusters.Engine  = (*Engine)(nil)
	_ manager.Runnable = (*Engine)(nil)
)

// New returns an Engine. Start makes it follow the hub.
func New(o Options) *Engine {
	if o.Lease == (types.NamespacedName{}) {
		o.Lease = DefaultLease
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	l := &liveness{lease: o.Lease, clock: o.Clock}
	l.judge() // the first Lease that a watch shows is a change
	return &Engine{client: o.Client, cache: o.Cache, config: o.Config, clock: o.Clock,
		events: make(chan types.NamespacedName), queue: newQueue(), liveness: l,
		written: map[types.NamespacedName]versions{}, named: map[types.NamespacedName]types.NamespacedName{}}
}

// Events returns a channel of names of Instances. The engine sends a name when Karmada may show something new about the Instance. One event
// may stand for several changes. The channel is never closed.
func (e *Engine) Events() <-chan types.NamespacedName { return e.events }

// Place writes the policies of an Instance. It sends no request while the cache shows them as they should be. An object of the same name
// that the Instance does not control is a *clusters.RefusedError, and then nothing is written.
func (e *Engine) Place(ctx context.Context, placed clusters.Placed) error {
	policy, override := Compile(placed)
	if policy == nil {
		return fmt.Errorf("place Instance %s: spec.placement.clusters is empty: name a cluster, or delete the Instance", keyOf(placed.Instance))
	}
	e.mu.Lock()
	e.named[client.ObjectKeyFromObject(policy)] = keyOf(placed.Instance)
	e.mu.Unlock()
	// The overrides come first, so that a cluster which the policy adds never gets the values of the others.
	var writes []write
	for _, want := range []*unstructured.Unstructured{override, policy} {
		w, err := e.compare(ctx, placed.Instance, want)
		if err != nil {
			return err
		}
		writes = append(writes, w)
	}
	key := keyOf(placed.Instance)
	for _, w := range writes {
		if err := e.apply(ctx, key, w); err != nil {
			return fmt.Errorf("place Instance %s: %w", key, err)
		}
	}
	return nil
}

// Observe returns what Karmada shows of an Instance, by the cache. Until Start has read the Lease, Karmada counts as silent. The Instance
// is not settled while the cache shows an older PropagationPolicy than Place has written. The OverridePolicy does not count: values and
// releases are one write, and a release must not unsettle the Instance.
func (e *Engine) Observe(ctx context.Context, instance *v1beta1.Instance) (clusters.Observation, error) {
	key := keyOf(instance)
	policyKey := types.NamespacedName{Namespace: instance.Namespace, Name: PolicyName(instance.Name)}
	policy, err := e.read(ctx, PolicyKind, policyKey)
	if err != nil {
		return clusters.Observation{}, err
	}
	binding, err := e.read(ctx, BindingKind, types.NamespacedName{Namespace: instance.Namespace, Name: BindingName(instance.Name)})
	if err != nil {
		return clusters.Observation{}, err
	}
	e.mu.Lock()
	last, known := e.written[key]
	e.mu.Unlock()
	view := View{Instance: instance, Policy: policy, Binding: binding, Silent: e.liveness.silent()}
	view.Outdated = known && !last.policy.isShownBy(policy)
	for _, name := range namesOf(instance, view.binding()) {
		cluster, err := e.read(ctx, remote.ClusterKind, types.NamespacedName{Name: name})
		if err != nil {
			return clusters.Observation{}, err
		}
		if cluster != nil {
			view.Clusters = append(view.Clusters, cluster)
		}
	}
	return Observe(view), nil
}

// Remove returns the clusters that the ResourceBinding of a deleted Instance still names. Karmada takes the Instance from the clusters when
// it is deleted on the hub, and the garbage collector deletes the policies, so that nothing is written. The ResourceBinding may be deleted
// before the last of its Works: an empty result does not say that the clusters are empty.
func (e *Engine) Remove(ctx context.Context, instance *v1beta1.Instance) (left []string, err error) {
	e.forget(keyOf(instance), "")
	binding, err := e.read(ctx, BindingKind, types.NamespacedName{Namespace: instance.Namespace, Name: BindingName(instance.Name)})
	if err != nil {
		return nil, err
	}
	return holders(View{Instance: instance, Binding: binding}.binding()), nil
}

// Access returns a configuration that reaches a cluster by Karmada's proxy, with the identity that the Engine has on the hub.
func (e *Engine) Access(_ context.Context, cluster string) (*rest.Config, error) {
	return remote.Access(e.config, cluster)
}

// read returns an object of the cache, or nil if there is none.
func (e *Engine) read(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return get(ctx, e.cache, kind, key)
}

// get returns an object of a reader, or nil if there is none.
func get(
	ctx context.Context, from client.Reader, kind schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	out := ofKind(kind)
	err := from.Get(ctx, key, out)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s of the hub: %w", kind.Kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return out, nil
}

// forget drops what was noted of the policies of an Instance; of one uid only, if it is given.
func (e *Engine) forget(key types.NamespacedName, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := e.written[key]; uid == "" || uid == last.policy.uid || uid == last.override.uid {
		delete(e.written, key)
		delete(e.named, types.NamespacedName{Namespace: key.Namespace, Name: PolicyName(key.Name)})
	}
}
