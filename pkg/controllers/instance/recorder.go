package instance

import (
	"context"
	"maps"

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
	// next are objects of later steps whose names were committed. They are not in inventory before their steps come.
	next map[apply.ID]bool
}

// RecordIntent commits the status if objects are about to be written for the first time, or if a task is done that must not be done twice.
// The names of objects that the next steps are going to write are committed, too, so that these steps need no commit.
// The PackagePolicies are asked before each batch of writes, since they may have changed since the last one.
func (h *progressRecorder) RecordIntent(ctx context.Context, st v1beta1.PlanStatus, intent runner.Intent) error {
	if refusal, err := h.contentRefused(ctx, key(h.run.Source), h.run.Version); err != nil {
		return err
	} else if refusal != "" {
		return errRunHeld
	}
	h.setPlanStatus(h.plan, st)
	unnamed := false
	for _, id := range intent.Objects {
		if _, known := h.inventory[id]; !known {
			h.inventory[id], unnamed = apply.Record{}, unnamed || !h.next[id]
		}
	}
	if committed := h.Committed.Status.PlanStatus[h.plan]; !unnamed && !intent.Done && committed.UID == h.run.UID {
		return nil
	}
	if unnamed {
		h.next = map[apply.ID]bool{}
		for _, id := range intent.Next() {
			h.next[id] = true
		}
	}
	h.writeInventory(h.withNext())
	return h.Commit(ctx)
}

// withNext returns the inventory with the objects of later steps.
func (h *progressRecorder) withNext() runner.Inventory {
	out := maps.Clone(h.inventory)
	for id := range h.next {
		if _, known := out[id]; !known {
			out[id] = apply.Record{}
		}
	}
	return out
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
