package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
)

// progressRecorder connects the execution of a plan to the status of the Instance.
type progressRecorder struct {
	*execution
	plan      string
	inventory runner.Inventory
}

// RecordIntent commits the status if objects are about to be written for the first time, or if a task is done that must not be done twice.
// The PackagePolicies are asked before each batch of writes, since they may have changed since the last one.
func (h *progressRecorder) RecordIntent(ctx context.Context, st v1beta1.PlanStatus, ids []apply.ID, done bool) error {
	if refusal, err := h.contentRefused(ctx, key(h.run.Source), h.run.Version); err != nil {
		return err
	} else if refusal != "" {
		return errRunHeld
	}
	h.setPlanStatus(h.plan, st)
	fresh := done
	for _, id := range ids {
		if _, known := h.inventory[id]; !known {
			h.inventory[id], fresh = apply.Record{}, true
		}
	}
	if committed := h.Committed.Status.PlanStatus[h.plan]; !fresh && committed.UID == h.run.UID {
		return nil
	}
	h.writeInventory(h.inventory)
	return h.Commit(ctx)
}

// RecordEffects puts what a task did into the inventory, and records its events.
func (h *progressRecorder) RecordEffects(effects runner.Effects) {
	for _, change := range effects.Written {
		h.inventory[change.ID] = change.Record
	}
	for _, id := range effects.Deleted {
		delete(h.inventory, id)
	}
	if effects.Readopted != "" {
		h.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventObjectsReadopted, "%s", effects.Readopted)
	}
	for _, e := range effects.Events {
		h.warnInRun(e[0], e[1])
	}
}
