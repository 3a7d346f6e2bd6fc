package installation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/changes"
	"kudo.dev/kudo/pkg/controllers/requeue"
)

// lookAgain is how long it takes to notice what no watch tells, like custom resources that go.
const lookAgain = 5 * time.Second

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, seen changes.Changes, workers int) error {
	r.queue = requeue.New()
	return ctrl.NewControllerManagedBy(mgr).
		Named("installation").
		For(&v1beta1.Installation{}).
		Watches(&v1beta1.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(r.holdersOf)).
		Watches(&v1beta1.Instance{}, handler.EnqueueRequestsFromMapFunc(r.usedBy)).
		WatchesRawSource(source.TypedChannel[*unstructured.Unstructured, reconcile.Request](seen, handler.TypedEnqueueRequestsFromMapFunc(owners), source.WithBufferSize[*unstructured.Unstructured, reconcile.Request](changes.Buffer))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: requeue.Limiter()}).
		Complete(r)
}

// holdersOf maps an OperatorVersion to its Installation.
func (r *Reconciler) holdersOf(_ context.Context, o client.Object) []reconcile.Request {
	return request(v1beta1.InstallationName(o.GetNamespace(), o.GetName(), o.GetUID()))
}

// usedBy maps an Instance to the Installations that may wait for it: those that are being deleted, and its own.
func (r *Reconciler) usedBy(ctx context.Context, o client.Object) []reconcile.Request {
	out := request(v1beta1.InstallationName(o.GetNamespace(), o.GetName(), o.GetUID()))
	list := &v1beta1.InstallationList{}
	if err := r.Client.List(ctx, list, changes.AsIs); err != nil {
		return out
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			out = append(out, request(list.Items[i].Name)...)
		}
	}
	return out
}

// owners maps an object to the Installations that hold it.
func owners(_ context.Context, o *unstructured.Unstructured) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range changes.Holders(o) {
		out = append(out, request(name)...)
	}
	return out
}

func request(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
