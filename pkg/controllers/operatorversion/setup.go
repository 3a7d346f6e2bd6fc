package operatorversion

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// pollInterval is the time after which a change is noticed that no watch shows, such as the deletion of a foreign object.
const pollInterval = 5 * time.Second

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, seen loop.Changes, workers int) error {
	reconciler := loop.New(loop.Options[*v1beta1.OperatorVersion]{Client: r.Client, Reader: r.Reader, Events: r.Events, Act: r.reconcile,
		Forget: r.forget})
	wanted := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		loop.DeletionStarted{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorversion").
		For(&v1beta1.OperatorVersion{}, builder.WithPredicates(wanted)).
		Watches(&configv1alpha1.PackagePolicy{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(
			predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.Installation{}, handler.EnqueueRequestsFromMapFunc(subjectOf)).
		WatchesRawSource(seen.Source(handler.TypedEnqueueRequestsFromMapFunc(r.holdersOf))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: loop.Limiter(), NewQueue: loop.NewFairQueue(workers)}).
		Complete(reconciler)
}

// all returns all OperatorVersions; none if they cannot be listed.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &v1beta1.OperatorVersionList{}
	if err := r.Client.List(ctx, list, loop.CacheOnlyRead, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

// subjectOf maps an Installation to its OperatorVersion.
func subjectOf(_ context.Context, o client.Object) []reconcile.Request {
	i, ok := o.(*v1beta1.Installation)
	if !ok || i.Spec.Subject.Kind != "OperatorVersion" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: i.Spec.Subject.Namespace, Name: i.Spec.Subject.Name}}}
}

// ChangeOf returns a change that enqueues the OperatorVersion of an Installation.
func ChangeOf(installation string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: installation}})
	return obj
}

// holdersOf maps an object to the OperatorVersions that hold it.
func (r *Reconciler) holdersOf(ctx context.Context, o *unstructured.Unstructured) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range v1beta1.OwningInstallations(o) {
		i := &v1beta1.Installation{}
		if r.Client.Get(ctx, types.NamespacedName{Name: name}, i, loop.CacheOnlyRead) == nil {
			out = append(out, subjectOf(ctx, i)...)
		}
	}
	return out
}
