// Package packagepolicy is the controller of PackagePolicies: it says whether they can be used. The controllers of Instances and of
// OperatorVersions judge by them.
package packagepolicy

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/pkg/trust"
)

// ReadyCondition of a PackagePolicy is true if all of it can be used.
const ReadyCondition = "Ready"

// Reasons of the condition.
const (
	ReasonLoaded  = "Loaded"
	ReasonInvalid = "Invalid"
)

// maxMessage bounds the message of the condition, in bytes.
const maxMessage = 4096

// Reconciler writes the status of PackagePolicies.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("packagepolicy").
		For(&configv1alpha1.PackagePolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	current := &configv1alpha1.PackagePolicy{}
	if err := r.Client.Get(ctx, req.NamespacedName, current); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	object := loop.NewObject(r.Client, r.Client, nil, current)
	object.Next.Status = statusOf(object.Next)
	return ctrl.Result{}, client.IgnoreNotFound(object.Commit(ctx))
}

// statusOf returns the status of a policy.
func statusOf(of *configv1alpha1.PackagePolicy) configv1alpha1.PackagePolicyStatus {
	status := *of.Status.DeepCopy()
	policy := trust.ParsePolicy(of)
	ready := metav1.Condition{Type: ReadyCondition, Status: metav1.ConditionTrue, Reason: ReasonLoaded, ObservedGeneration: of.Generation}
	status.ObservedGeneration, status.Authorities = of.Generation, nil
	if err := policy.Err(); err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonInvalid, text.Truncate(text.OneLine(err.Error()), maxMessage)
	} else {
		for _, a := range policy.Authorities {
			authority := configv1alpha1.AuthorityStatus{Name: a.Name, KeyHint: a.Key.Hint()}
			if !a.NotAfter.IsZero() {
				authority.Expires = &metav1.Time{Time: a.NotAfter}
			}
			status.Authorities = append(status.Authorities, authority)
		}
	}
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}
