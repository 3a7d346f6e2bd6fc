package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// releaseKept takes the Instance off the owners of objects that have been annotated to be kept, also while a plan runs: the garbage
// collector would delete them with the Instance.
func (a *action) releaseKept(ctx context.Context) {
	inventory, changed := a.readInventory(), false
	for id, record := range inventory {
		live, _ := a.appliedObject(id, record.UID)
		if live == nil || !apply.IsKeptWithOwner(live, a.Next.UID) {
			continue
		}
		now, err := a.Runner.RemoveOwner(ctx, a.serviceAccount, a.Next, live, record)
		switch {
		case apierrors.IsForbidden(err):
			a.WarnOnce(string(a.Next.Status.PlanStatus[plans.LatestPlan(a.Next.Status.PlanStatus)].UID), v1beta1.EventResourceNotKept,
				id.String()+" is annotated to be kept, but will be deleted with the Instance, since its ownerReferences cannot be changed: "+
					err.Error())
		case err != nil: // it has changed, or the API server is away
			a.result.Transient = true
		default:
			inventory[id], changed = now, true
			a.Event(corev1.EventTypeNormal, v1beta1.EventResourceKept, "%s is annotated to be kept: the Instance does not own it any more", id)
		}
	}
	if changed {
		a.writeInventory(inventory)
	}
}
