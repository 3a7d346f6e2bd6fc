package inventory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"

	corev1 "k8s.io/api/core/v1"
)

var _ clusters.Engine = &Engine{}

// Options are what an Engine needs.
type Options struct {
	// Hub reads Operators and OperatorVersions of the hub; it may be a cache.
	Hub client.Reader
	// Live reads ClusterProfiles, Secrets, ConfigMaps, and namespace kube-system of the hub. It is no cache.
	Live client.Reader
	// Decisions reads the PlacementDecisions of the hub.
	Decisions dynamic.Interface
	// Namespace of the manager, which has the Secrets of the built-in provider.
	Namespace string
	// ClusterNamespace has the ClusterProfiles that spec.placement names without a namespace; "" if there is none.
	ClusterNamespace string
	// Providers give credentials beside the built-in one.
	Providers Providers
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Dial connects to clusters. By default it connects to all addresses but those that no cluster has, and notices dead connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wrap wraps the transports to the clusters; nil for none.
	Wrap transport.WrapperFunc
}

// Engine places Instances on the clusters of an inventory. It has a worker, a queue and connections for each cluster, so that work for one
// that does not answer delays no other.
//
//	Place, Remove ──▶ what each member shall have ──▶ its queue ──▶ its worker ──▶ server-side apply
//	Observe       ◀── what each member has        ◀── its watch, and what the worker has met
type Engine struct {
	Options

	events    *outbox
	uid       hubUID
	decisions *decisions

	mu      sync.Mutex
	launch  func(*member) // nil before Start
	members map[types.NamespacedName]*member
	placed  map[types.NamespacedName]*placement
}

// placement is what Place has been told last of an Instance.
type placement struct {
	uid types.UID
	// unresolved are the names of clusters that mean no profile, with the reason.
	unresolved map[string]string
}

// New returns an Engine. It does nothing before Start.
func New(o Options) (*Engine, error) {
	if o.Hub == nil || o.Live == nil || o.Decisions == nil || o.Namespace == "" {
		return nil, errors.New("the inventory engine needs readers of the hub and the namespace of the manager")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Dial == nil {
		o.Dial = newDialer()
	}
	e := &Engine{
		Options: o, events: newOutbox(), members: map[types.NamespacedName]*member{}, placed: map[types.NamespacedName]*placement{},
	}
	var err error
	e.decisions, err = newDecisions(o.Decisions, e.events.add)
	return e, err
}

// Start runs the workers until the context ends, and returns when they have ended.
func (e *Engine) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	e.mu.Lock()
	e.launch = func(m *member) { workers.Go(func() { m.run(ctx) }) }
	for _, m := range e.members {
		e.launch(m)
	}
	e.mu.Unlock()
	workers.Go(func() { e.decisions.run(ctx) })
	e.events.run(ctx)
	e.mu.Lock()
	e.launch = func(*member) {}
	e.mu.Unlock()
	workers.Wait()
	return nil
}

// NeedLeaderElection reports that only the leader places Instances.
func (e *Engine) NeedLeaderElection() bool { return true }

// Events returns a channel of names of Instances.
// The engine sends a name when it may show something new about the Instance.
func (e *Engine) Events() <-chan types.NamespacedName { return e.events.out }

// Place records what each cluster shall have, and returns before the clusters have it. The objects that the Instance needs are read from
// the hub by each call: whoever learns of a change of one calls Place.
func (e *Engine) Place(ctx context.Context, placed clusters.Placed) error {
	needs, err := e.gather(ctx, placed.Instance)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(placed.Instance)
	p := &placement{uid: placed.Instance.UID, unresolved: map[string]string{}}
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := map[types.NamespacedName]bool{}
	for _, target := range placed.Clusters {
		profile, err := ProfileKey(target.Name, e.ClusterNamespace)
		switch {
		case err != nil:
			p.unresolved[target.Name] = err.Error()
		case wanted[profile]:
			p.unresolved[target.Name] = fmt.Sprintf("it is ClusterProfile %s, which another name in the list means, too: take one out", profile)
		default:
			wanted[profile] = true
			e.member(profile).place(key, newWanted(placed.Instance, target, needs))
		}
	}
	e.leave(placed.Instance, wanted)
	if placement := placed.Instance.Spec.Placement; placement == nil || placement.Decision == nil {
		e.decisions.follow(key, types.NamespacedName{})
	}
	e.placed[key] = p
	return nil
}

// leave takes an Instance from the clusters that have it and are not wanted: those known to have a copy, and those of its status.
func (e *Engine) leave(instance *v1beta1.Instance, wanted map[types.NamespacedName]bool) {
	key := client.ObjectKeyFromObject(instance)
	for _, known := range instance.Status.Members {
		if profile, err := ProfileKey(known.Cluster, e.ClusterNamespace); err == nil && !wanted[profile] {
			e.member(profile).remove(key, instance.UID, removal{cluster: known.Cluster})
		}
	}
	for profile, m := range e.members {
		if !wanted[profile] && m.has(key, instance.UID) {
			m.remove(key, instance.UID, removal{cluster: e.nameOf(profile)})
		}
	}
}

// nameOf returns the name by which users know a profile.
func (e *Engine) nameOf(profile types.NamespacedName) string {
	if profile.Namespace == e.ClusterNamespace {
		return profile.Name
	}
	return profile.String()
}

// member returns the worker of a profile, and starts it if there is none. The caller holds the lock.
func (e *Engine) member(profile types.NamespacedName) *member {
	m := e.members[profile]
	if m == nil {
		m = newMember(e, profile)
		e.members[profile] = m
		if e.launch != nil {
			e.launch(m)
		}
	}
	return m
}

// Remove takes an Instance from all clusters that spec or status name, or that have a copy, and returns those that have one left, sorted.
// With onDelete Orphan the copies stay, without the marks of the hub.
func (e *Engine) Remove(_ context.Context, instance *v1beta1.Instance) (left []string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(instance)
	delete(e.placed, key)
	e.decisions.follow(key, types.NamespacedName{})
	names, orphan := e.holders(instance)
	for profile, name := range names {
		if !e.member(profile).remove(key, instance.UID, removal{cluster: name, orphan: orphan}) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	if len(left) == 0 {
		for profile := range names {
			e.members[profile].forget(key)
		}
	}
	return left, nil
}

// holders returns the clusters that may have a copy of an Instance, with the names by which users know them, and reports whether the copies
// stay when the Instance is deleted.
func (e *Engine) holders(instance *v1beta1.Instance) (names map[types.NamespacedName]string, orphan bool) {
	names = map[types.NamespacedName]string{}
	add := func(name string) {
		if profile, err := ProfileKey(name, e.ClusterNamespace); err == nil && names[profile] == "" {
			names[profile] = name
		}
	}
	if placement := instance.Spec.Placement; placement != nil {
		orphan = placement.OnDelete == v1beta1.OrphanPlaced
		for _, c := range instance.PlacedClusters() {
			add(c.Name)
		}
	}
	for _, known := range instance.Status.Members {
		add(known.Cluster)
	}
	for profile, m := range e.members {
		if m.has(client.ObjectKeyFromObject(instance), instance.UID) {
			add(e.nameOf(profile))
		}
	}
	return names, orphan
}

// Forget gives up the copy of an Instance in a cluster that it is to leave: the cluster is neither reported nor waited for any more. A
// later Remove does not count it either, as long as neither spec nor status of the Instance name it.
func (e *Engine) Forget(instance types.NamespacedName, cluster string) error {
	profile, err := ProfileKey(cluster, e.ClusterNamespace)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.members[profile]; m != nil {
		m.giveUp(instance)
	}
	return nil
}

// Access returns how to reach a cluster. An *AccessError says what is wrong on the hub.
func (e *Engine) Access(ctx context.Context, cluster string) (*rest.Config, error) {
	profile, err := ProfileKey(cluster, e.ClusterNamespace)
	if err != nil {
		return nil, err
	}
	return e.config(ctx, profile)
}

// config returns how to reach the cluster of a profile.
func (e *Engine) config(ctx context.Context, key types.NamespacedName) (*rest.Config, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ProfileKind)
	if err := e.Live.Get(ctx, key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &AccessError{"ClusterProfile " + key.String(), "", "does not exist",
				"create it, or take the cluster out of spec.placement.clusters"}
		}
		return nil, fmt.Errorf("read ClusterProfile %s: %w", key, err)
	}
	profile, err := ParseProfile(obj)
	if err != nil {
		return nil, err
	}
	config, err := access{e.Providers, e.Namespace, e.secret}.configOf(ctx, profile)
	if err != nil {
		return nil, err
	}
	config.Dial, config.UserAgent = e.Dial, clusters.FieldManager
	config.Wrap(e.Wrap)
	return config, nil
}

func (e *Engine) secret(ctx context.Context, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := e.Live.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, &AccessError{"Secret " + e.Namespace + "/" + name, "", "does not exist",
			"create it with token and server, or with kubeconfig"}
	}
	return secret.Data, err
}

// hubUID is the uid of namespace kube-system of the hub, which tells hubs apart.
type hubUID struct {
	mu    sync.Mutex
	value types.UID
}

// get reads the uid, once.
func (h *hubUID) get(ctx context.Context, hub client.Reader) (types.UID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.value != "" {
		return h.value, nil
	}
	ns := &corev1.Namespace{}
	if err := hub.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("read namespace %s of the hub: %w", metav1.NamespaceSystem, err)
	}
	h.value = ns.UID
	return h.value, nil
}

// wanted is what a member shall have of an Instance.
type wanted struct {
	instance *v1beta1.Instance
	target   clusters.Target
	needs    []dependency
	needsOf  string
}

func newWanted(instance *v1beta1.Instance, target clusters.Target, needs []dependency) *wanted {
	kept := &v1beta1.Instance{ObjectMeta: *instance.ObjectMeta.DeepCopy(), Spec: *instance.Spec.DeepCopy()}
	kept.Status.Decision = instance.Status.Decision.DeepCopy()
	return &wanted{instance: kept, target: target, needs: needs, needsOf: fingerprint(needs)}
}

// same reports whether two copies have the same content.
func (w *wanted) same(o *wanted) bool {
	return o != nil && w.instance.Template() == o.instance.Template() && w.needsOf == o.needsOf &&
		reflect.DeepEqual(w.target, o.target) && reflect.DeepEqual(w.instance.Labels, o.instance.Labels) &&
		reflect.DeepEqual(w.instance.Annotations, o.instance.Annotations)
}
