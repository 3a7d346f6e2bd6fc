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

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// pollInterval is the time after which an Installation that waits is reconciled again: no watch shows that the last custom
// resource was deleted.
const pollInterval = 5 * time.Second

// deletionIndex indexes Installations that are being deleted.
const deletionIndex = "metadata.deletionTimestamp"

// isDeleted is the value in deletionIndex.
const isDeleted = "true"

var indexes = loop.Indexes{deletionIndex: deletionOf}

// deletionOf returns the values of an Installation in deletionIndex.
func deletionOf(o client.Object) []string {
	if o.GetDeletionTimestamp() == nil {
		return nil
	}
	return []string{isDeleted}
}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, seen loop.Changes, workers int) error {
	if err := indexes.Add(mgr, &v1beta1.Installation{}); err != nil {
		return err
	}
	reconciler := loop.New(loop.Options[*v1beta1.Installation]{Client: r.Client, Reader: r.Reader, Events: r.Events, Act: r.reconcile})
	return ctrl.NewControllerManagedBy(mgr).
		Named("installation").
		For(&v1beta1.Installation{}).
		Watches(&v1beta1.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(r.holdersOf)).
		Watches(&v1beta1.Instance{}, handler.EnqueueRequestsFromMapFunc(r.usedBy)).
		WatchesRawSource(seen.Source(handler.TypedEnqueueRequestsFromMapFunc(installationsOwning))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: loop.Limiter()}).
		Complete(reconciler)
}

// holdersOf maps an OperatorVersion to its Installation.
func (r *Reconciler) holdersOf(_ context.Context, o client.Object) []reconcile.Request {
	return request(v1beta1.InstallationName(o.GetNamespace(), o.GetName(), o.GetUID()))
}

// usedBy maps an Instance to the Installations that may wait for it: those that are being deleted, and its own.
func (r *Reconciler) usedBy(ctx context.Context, o client.Object) []reconcile.Request {
	out := request(v1beta1.InstallationName(o.GetNamespace(), o.GetName(), o.GetUID()))
	list := &v1beta1.InstallationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{deletionIndex: isDeleted}, loop.CacheOnlyRead); err != nil {
		return out
	}
	for i := range list.Items {
		out = append(out, request(list.Items[i].Name)...)
	}
	return out
}

// installationsOwning maps an object to the Installations that hold it.
func installationsOwning(_ context.Context, o *unstructured.Unstructured) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range v1beta1.OwningInstallations(o) {
		out = append(out, request(name)...)
	}
	return out
}

func request(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
