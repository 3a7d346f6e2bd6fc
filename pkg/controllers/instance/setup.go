package instance

import (
	"cmp"
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
)

// VersionIndex indexes Instances by the OperatorVersion that they name.
const VersionIndex = "spec.operatorVersion"

// SourceIndex indexes Instances by the sources of their parameters.
const SourceIndex = "spec.parametersFrom"

// AccountIndex indexes Instances that wait for a ServiceAccount, by its name.
const AccountIndex = "awaitedAccount"

// defaultAccount is the value in AccountIndex of Instances that name no ServiceAccount. No object has this name.
const defaultAccount = "/"

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, seen loop.Changes, workers int) error {
	reconciler := loop.New(loop.Options[*v1beta1.Instance]{Client: r.Client, Reader: r.Reader, Events: r.Events, Act: r.reconcile,
		Forget: r.forget})
	if err := indexes.Add(mgr, &v1beta1.Instance{}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("instance").
		For(&v1beta1.Instance{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}, loop.DeletionStarted{}))).
		Watches(&v1beta1.Instance{}, handler.EnqueueRequestsFromMapFunc(parents)).
		Watches(&v1beta1.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(r.usersOf),
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, installProgressPredicate{}))).
		Watches(&configv1alpha1.PackagePolicy{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(
			predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.awaiting), builder.OnlyMetadata,
			builder.WithPredicates(predicate.Funcs{
				UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
			})).
		WatchesRawSource(seen.Source(handler.TypedFuncs[*unstructured.Unstructured, reconcile.Request]{GenericFunc: r.changed})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: loop.Limiter(), NewQueue: loop.NewFairQueue(workers)}).
		Complete(reconciler)
}

var indexes = loop.Indexes{VersionIndex: versionsOf, SourceIndex: sourcesOf, AccountIndex: awaitedAccountsOf}

// versionsOf returns the values of an Instance in VersionIndex.
func versionsOf(o client.Object) []string {
	return []string{o.(*v1beta1.Instance).OperatorVersionKey().String()}
}

// sourcesOf returns the values of an Instance in SourceIndex.
func sourcesOf(o client.Object) []string {
	var out []string
	for _, from := range o.(*v1beta1.Instance).Spec.ParametersFrom {
		out = append(out, from.Kind+"/"+from.Name)
	}
	return out
}

// awaitedAccountsOf returns the values of an Instance in AccountIndex.
func awaitedAccountsOf(o client.Object) []string {
	i := o.(*v1beta1.Instance)
	ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
	if ready == nil || ready.Reason != v1beta1.ReasonServiceAccountNotFound {
		return nil
	}
	return []string{cmp.Or(i.Spec.ServiceAccountName, defaultAccount)}
}

// ChangeOf returns a change that enqueues an Instance.
func ChangeOf(key types.NamespacedName) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetNamespace(key.Namespace)
	obj.SetLabels(map[string]string{v1beta1.InstanceLabel: key.Name})
	return obj
}

// InstancesUsing lists the Instances that take values from a source. The client needs the index SourceIndex.
func InstancesUsing(ctx context.Context, c client.Reader, of paramsource.Reference) []types.NamespacedName {
	var out []types.NamespacedName
	for _, request := range indexed(ctx, c, SourceIndex, of.Kind+"/"+of.Name, client.InNamespace(of.Namespace)) {
		out = append(out, request.NamespacedName)
	}
	return out
}

// usersOf maps an OperatorVersion to the Instances that name it.
func (r *Reconciler) usersOf(ctx context.Context, ov client.Object) []reconcile.Request {
	return indexed(ctx, r.Client, VersionIndex, client.ObjectKeyFromObject(ov).String())
}

// all returns all Instances; none if they cannot be listed.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return list(ctx, r.Client)
}

// awaiting maps a new ServiceAccount to the Instances that wait for it.
func (r *Reconciler) awaiting(ctx context.Context, account client.Object) []reconcile.Request {
	namespace := client.InNamespace(account.GetNamespace())
	out := indexed(ctx, r.Client, AccountIndex, account.GetName(), namespace)
	if account.GetName() == r.Settings(ctx).DefaultAccount {
		out = append(out, indexed(ctx, r.Client, AccountIndex, defaultAccount, namespace)...)
	}
	return out
}

// indexed lists the Instances with a value in an index; none if they cannot be listed.
func indexed(ctx context.Context, c client.Reader, index, value string, options ...client.ListOption) []reconcile.Request {
	return list(ctx, c, append(options, client.MatchingFields{index: value})...)
}

// list lists Instances of the cache; none if they cannot be listed.
func list(ctx context.Context, c client.Reader, options ...client.ListOption) []reconcile.Request {
	found := &v1beta1.InstanceList{}
	if err := c.List(ctx, found, append(options, loop.CacheOnlyRead)...); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return out
}

// parents maps an Instance to the Instances that own it.
func parents(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		if v1beta1.OwnedBy(owner, "Instance") {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}})
		}
	}
	return out
}

// runningPriority is the priority of an Instance whose plan runs: of many that come at once, those whose plans run already end before
// others start, rather than all near the end.
const runningPriority = 1

// changed enqueues the Instances whose plans have written the object of an event.
func (r *Reconciler) changed(ctx context.Context, e event.TypedGenericEvent[*unstructured.Unstructured],
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, request := range r.writersOf(ctx, e.Object) {
		r.kept.note(request.NamespacedName, e.Object)
		priority := 0
		if _, runs := r.runs.Load(request.NamespacedName); runs {
			priority = runningPriority
		}
		queue.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
	}
}

// writersOf maps an object to the Instances whose plans wrote it.
func (r *Reconciler) writersOf(ctx context.Context, o *unstructured.Unstructured) []reconcile.Request {
	if o.GetNamespace() == "" {
		return append(r.clusterScoped.of(apply.IDOf(o)), r.holdersOf(ctx, o)...)
	}
	name := o.GetLabels()[v1beta1.InstanceLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// holdersOf maps a definition to the Instances whose tarballs hold it.
func (r *Reconciler) holdersOf(ctx context.Context, o *unstructured.Unstructured) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range v1beta1.OwningInstallations(o) {
		i := &v1beta1.Installation{}
		if r.Client.Get(ctx, types.NamespacedName{Name: name}, i, loop.CacheOnlyRead) == nil && i.Spec.Subject.Kind == "Instance" {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: i.Spec.Subject.Namespace,
				Name: i.Spec.Subject.Name}})
		}
	}
	return out
}

// clusterScopedIndex knows which Instances wrote which cluster-scoped objects, whose labels do not tell the namespace.
type clusterScopedIndex struct {
	mu      sync.Mutex
	objects map[types.NamespacedName][]apply.ID
	writers map[apply.ID]map[types.NamespacedName]bool
}

func (w *clusterScopedIndex) set(instance types.NamespacedName, inventory runner.Inventory) {
	var ids []apply.ID
	for id := range inventory {
		if id.Namespace == "" {
			ids = append(ids, id)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(instance)
	if len(ids) == 0 {
		return
	}
	if w.objects == nil {
		w.objects, w.writers = map[types.NamespacedName][]apply.ID{}, map[apply.ID]map[types.NamespacedName]bool{}
	}
	w.objects[instance] = ids
	for _, id := range ids {
		if w.writers[id] == nil {
			w.writers[id] = map[types.NamespacedName]bool{}
		}
		w.writers[id][instance] = true
	}
}

func (w *clusterScopedIndex) forget(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(instance)
}

func (w *clusterScopedIndex) drop(instance types.NamespacedName) {
	for _, id := range w.objects[instance] {
		delete(w.writers[id], instance)
		if len(w.writers[id]) == 0 {
			delete(w.writers, id)
		}
	}
	delete(w.objects, instance)
}

func (w *clusterScopedIndex) of(id apply.ID) []reconcile.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []reconcile.Request
	for instance := range w.writers[id] {
		out = append(out, reconcile.Request{NamespacedName: instance})
	}
	return out
}

// installProgressPredicate passes the updates that tell how far an install plan has come.
type installProgressPredicate struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (installProgressPredicate) Update(e event.UpdateEvent) bool {
	before, a := e.ObjectOld.(*v1beta1.OperatorVersion)
	after, b := e.ObjectNew.(*v1beta1.OperatorVersion)
	return a && b && (before.Status.AggregatedStatus != after.Status.AggregatedStatus || before.Installed() != after.Installed())
}
