package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
)

// pruneAbandoned deletes, at the end of a successful upgrade, the objects that no task of the new version names any more (engine
// rule 12). If the names cannot be determined, nothing is deleted.
func (e *execution) pruneAbandoned(ctx context.Context, inventory runner.Inventory) error {
	left, err := runner.AbandonedObjects(e.run, inventory)
	if err != nil {
		e.Warn(v1beta1.EventResourceKept, "objects of the old version were kept, since the objects of the new version cannot be "+
			"determined: %s", err)
		return nil
	}
	for _, id := range left {
		kept, err := e.Runner.Prune(ctx, e.run, inventory, id)
		if apply.IsFatal(err) { // trying again would not help, and would hold the upgrade for ever
			kept, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
		if kept != "" {
			e.Event(corev1.EventTypeNormal, v1beta1.EventResourceKept, "%s is no longer part of the operator and was kept: %s", id, kept)
		} else {
			e.Event(corev1.EventTypeNormal, v1beta1.EventResourcePruned, "%s is no longer part of the operator and was deleted", id)
		}
		delete(inventory, id)
	}
	e.writeInventory(inventory)
	return nil
}
