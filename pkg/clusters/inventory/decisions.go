package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/text"
)

// decisionResource is that of the slices of decisions.
var decisionResource = DecisionKind.GroupVersion().WithResource("placementdecisions")

// byDecision is the index of slices by namespace and name of their decision.
const byDecision = "decision"

// decisions follow the PlacementDecisions of the hub that have the label of a decision. Others belong to no decision, and users who may not
// write slices of decisions may write them. The watch begins when the first Instance has a decision, so that a hub that does not serve the
// kind works, and goes on until the engine ends. While the hub refuses the watch, the manager asks again with increasing pauses.
type decisions struct {
	client  dynamic.Interface
	changed func(instance types.NamespacedName)

	begin    sync.Once
	wanted   chan struct{} // closed when the first Instance has a decision
	informer cache.SharedIndexInformer
	// problem is why the last list or watch has failed, or nil.
	problem atomic.Pointer[error]

	mu sync.Mutex
	// users are the Instances by the namespace and name of their decision, and uses is the reverse.
	users map[types.NamespacedName]map[types.NamespacedName]bool
	uses  map[types.NamespacedName]types.NamespacedName
}

func newDecisions(c dynamic.Interface, changed func(types.NamespacedName)) (*decisions, error) {
	d := &decisions{client: c, changed: changed, wanted: make(chan struct{}),
		users: map[types.NamespacedName]map[types.NamespacedName]bool{}, uses: map[types.NamespacedName]types.NamespacedName{}}
	resource := c.Resource(decisionResource)
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = DecisionKeyLabel
			out, err := resource.List(ctx, o)
			d.problem.Store(&err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = DecisionKeyLabel
			out, err := resource.Watch(ctx, o)
			d.problem.Store(&err)
			return out, err
		},
	}
	index := func(obj any) ([]string, error) {
		return []string{decisionOf(obj).String()}, nil
	}
	d.informer = cache.NewSharedIndexInformer(list, &unstructured.Unstructured{}, 0, cache.Indexers{byDecision: index})
	if err := d.informer.SetTransform(trim); err != nil {
		return nil, err
	}
	_, err := d.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { d.announce(decisionOf(obj)) },
		UpdateFunc: func(before, after any) {
			d.announce(decisionOf(before))
			d.announce(decisionOf(after))
		},
		DeleteFunc: func(obj any) {
			if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
				obj = last.Obj
			}
			d.announce(decisionOf(obj))
		},
	})
	return d, err
}

// trim takes from a slice, before it is kept, what the engine does not read.
func trim(obj any) (any, error) {
	if slice, ok := obj.(*unstructured.Unstructured); ok {
		slice.SetManagedFields(nil)
		slice.SetAnnotations(nil)
		maps.DeleteFunc(slice.Object, func(field string, _ any) bool {
			return !slices.Contains([]string{"apiVersion", "kind", "metadata", "decisions"}, field)
		})
	}
	return obj, nil
}

// decisionOf returns the namespace and name of the decision that a slice belongs to.
func decisionOf(obj any) types.NamespacedName {
	slice, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[DecisionKeyLabel]}
}

// run follows the slices until the context ends, from when an Instance has a decision.
func (d *decisions) run(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-d.wanted:
		d.informer.RunWithContext(ctx)
	}
}

// announce calls changed for each Instance that follows a decision.
func (d *decisions) announce(decision types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for instance := range d.users[decision] {
		d.changed(instance)
	}
}

// follow notes that an Instance has a decision, and no other any more. A decision without a name is none.
func (d *decisions) follow(instance, decision types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, has := d.uses[instance]; has {
		delete(d.users[before], instance)
		if len(d.users[before]) == 0 {
			delete(d.users, before)
		}
		delete(d.uses, instance)
	}
	if decision.Name == "" {
		return
	}
	if d.users[decision] == nil {
		d.users[decision] = map[types.NamespacedName]bool{}
	}
	d.users[decision][instance] = true
	d.uses[instance] = decision
	d.begin.Do(func() { close(d.wanted) })
}

// slices returns the slices of a decision. A *clusters.HoldError says why they are not known, or not known to be the present ones.
func (d *decisions) slices(decision types.NamespacedName) ([]PlacementDecision, error) {
	if err := d.problem.Load(); err != nil && *err != nil {
		return nil, &clusters.HoldError{Message: unreadable(*err)}
	}
	if !d.informer.HasSynced() {
		return nil, &clusters.HoldError{Message: "the PlacementDecisions of the hub have not been read yet"}
	}
	found, err := d.informer.GetIndexer().ByIndex(byDecision, decision.String())
	if err != nil {
		return nil, err
	}
	var out []PlacementDecision
	for _, obj := range found {
		slice, err := ParseDecision(obj.(*unstructured.Unstructured))
		if err != nil {
			return nil, &clusters.HoldError{Message: text.Truncate(err.Error(), maxMessageBytes)}
		}
		out = append(out, *slice)
	}
	return out, nil
}

// unreadable says why PlacementDecisions cannot be read, and what to do.
func unreadable(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the hub does not serve PlacementDecisions of %s: install their CustomResourceDefinition, or name clusters in "+
			"spec.placement.clusters", DecisionKind.GroupVersion())
	case apierrors.IsForbidden(err):
		return "the manager of the hub may not read PlacementDecisions: kubectl kudo init --hub --upgrade gives it the right"
	}
	return "the PlacementDecisions of the hub cannot be read: " + text.Truncate(err.Error(), maxMessageBytes)
}

// Decide returns what the decision of an Instance has come to, with each cluster once, and has the Instance announced whenever that may
// change. A *clusters.HoldError says why it is not to be acted upon.
func (e *Engine) Decide(_ context.Context, instance *v1beta1.Instance) (*v1beta1.DecisionStatus, error) {
	name := instance.Spec.Placement.Decision.Name
	decision := types.NamespacedName{Namespace: instance.Namespace, Name: name}
	e.decisions.follow(client.ObjectKeyFromObject(instance), decision)
	parts, err := e.decisions.slices(decision)
	if err != nil {
		return nil, err
	}
	before := instance.Status.Decision
	chosen, err := decide(name, parts, before != nil && before.Name == name && before.FromZero)
	if err != nil {
		return nil, err
	}
	out := &v1beta1.DecisionStatus{Name: name, FromZero: chosen.fromZero}
	for _, profile := range chosen.profiles {
		out.Clusters = append(out.Clusters, e.nameOf(profile))
	}
	return out, nil
}
