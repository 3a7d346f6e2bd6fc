package operatorversion

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/changes"
	"kudo.dev/kudo/pkg/controllers/requeue"
)

// lookAgain is how long it takes to notice what no watch tells, like a foreign object that goes.
const lookAgain = 5 * time.Second

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, seen changes.Changes, workers int) error {
	r.queue = requeue.New()
	wanted := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, changes.Deleted{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorversion").
		For(&v1beta1.OperatorVersion{}, builder.WithPredicates(wanted)).
		Watches(&v1beta1.Installation{}, handler.EnqueueRequestsFromMapFunc(subjectOf)).
		WatchesRawSource(source.TypedChannel[*unstructured.Unstructured, reconcile.Request](seen, handler.TypedEnqueueRequestsFromMapFunc(r.holdersOf), source.WithBufferSize[*unstructured.Unstructured, reconcile.Request](changes.Buffer))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: requeue.Limiter(), NewQueue: requeue.NewFairQueue}).
		Complete(requeue.NewLimit(r, workers))
}

// subjectOf maps an Installation to its OperatorVersion.
func subjectOf(_ context.Context, o client.Object) []reconcile.Request {
	i, ok := o.(*v1beta1.Installation)
	if !ok || i.Spec.For.Kind != "OperatorVersion" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: i.Spec.For.Namespace, Name: i.Spec.For.Name}}}
}

// holdersOf maps an object to the OperatorVersions that hold it.
func (r *Reconciler) holdersOf(ctx context.Context, o *unstructured.Unstructured) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range changes.Holders(o) {
		i := &v1beta1.Installation{}
		if r.Client.Get(ctx, types.NamespacedName{Name: name}, i, changes.AsIs) == nil {
			out = append(out, subjectOf(ctx, i)...)
		}
	}
	return out
}
