// Package packagepolicy is the controller of PackagePolicies: it reports whether they can be used. The controllers of Instances and of
// OperatorVersions apply them.
package packagepolicy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// ReadyCondition of a PackagePolicy is true if all of it can be used.
const ReadyCondition = "Ready"

// Reasons of the condition.
const (
	ReasonLoaded  = "Loaded"
	ReasonInvalid = "Invalid"
)

// Reconciler writes the status of PackagePolicies.
type Reconciler struct {
	Client client.Client
	// Reader reads live.
	Reader client.Reader
}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("packagepolicy").
		For(&configv1alpha1.PackagePolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{RateLimiter: loop.Limiter()}).
		Complete(r.loop())
}

// loop returns the skeleton of the controller, which records no events.
func (r *Reconciler) loop() *loop.Reconciler[*configv1alpha1.PackagePolicy] {
	return loop.New(loop.Options[*configv1alpha1.PackagePolicy]{Client: r.Client, Reader: r.Reader, Act: reconcile})
}

// action is one reconcile of one PackagePolicy.
type action struct {
	*loop.Object[*configv1alpha1.PackagePolicy]
	observation
}

// reconcile is called by loop.Reconciler between read and commit.
func reconcile(_ context.Context, obj *loop.Object[*configv1alpha1.PackagePolicy]) (loop.Result, error) {
	a := &action{Object: obj, observation: observe(obj.Next)}
	s := a.state()
	obj.State = string(s)
	return loop.Result{}, a.act(s)
}

// act takes the one action of a state.
func (a *action) act(s state) error {
	switch s {
	case usable:
		a.reportLoaded()
		return nil
	case unusable:
		a.reportInvalid()
		return nil
	}
	return fmt.Errorf("unknown state %q of PackagePolicy %s", s, a.Next.Name)
}

// setReady puts the condition and the authorities into the status.
func (a *action) setReady(ready metav1.Condition, authorities []configv1alpha1.AuthorityStatus) {
	ready.Type, ready.ObservedGeneration = ReadyCondition, a.Next.Generation
	a.Next.Status.ObservedGeneration, a.Next.Status.Authorities = a.Next.Generation, authorities
	meta.SetStatusCondition(&a.Next.Status.Conditions, ready)
}
