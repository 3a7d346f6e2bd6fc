package operatorversion

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
)

// progressRecorder connects the execution of the install plan to the OperatorVersion and its Installation.
type progressRecorder struct{ *action }

// RecordIntent commits the inventory if objects are about to be written for the first time, since an object that is not in it would not be
// released, and the status if a task is done that must not be done twice. The PackagePolicies are asked before each batch of writes, since
// they may have changed since the last one.
func (h *progressRecorder) RecordIntent(ctx context.Context, st v1beta1.PlanStatus, intent runner.Intent) error {
	h.Next.Status.PlanStatus[st.Name] = st
	if verdict, err := h.observeVerdict(ctx, h.Next); err != nil {
		return err
	} else if !verdict.Allowed {
		return errRunHeld
	}
	for _, id := range intent.Objects {
		if h.inventory.Find(id) < 0 {
			r := share.HeldResourceFor(apply.Change{ID: id}, h.installation)
			r.State = v1beta1.HoldPending
			h.inventory = append(h.inventory, r)
		}
	}
	if err := h.writeInventory(ctx); err != nil || !intent.Done {
		return err
	}
	return h.Commit(ctx)
}

// RecordEffects puts what a task did into the inventory.
func (h *progressRecorder) RecordEffects(effects runner.Effects) {
	for _, change := range effects.Written {
		h.setHeldResource(share.HeldResourceFor(change, h.installation))
	}
	for _, change := range effects.Failed {
		var mismatch *share.MismatchError
		if !errors.As(change.Err, &mismatch) {
			continue
		}
		r := v1beta1.HeldResource{}
		if at := h.inventory.Find(change.ID); at >= 0 {
			r = h.inventory[at]
		} else {
			r = share.HeldResourceFor(apply.Change{ID: change.ID}, h.installation)
		}
		r.State, r.Message = v1beta1.HoldMismatch, text.Truncate(change.Err.Error(), maxMessage)
		h.setHeldResource(r)
	}
	for _, id := range effects.Deleted {
		if at := h.inventory.Find(id); at >= 0 && h.inventory[at].State != v1beta1.HoldExisting {
			h.inventory = slices.Delete(h.inventory, at, at+1)
		}
	}
	h.run.Held = h.inventory
	if effects.Readopted != "" {
		h.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventObjectsReadopted, "%s", effects.Readopted)
	}
	for _, e := range effects.Events {
		h.warnInRun(e[0], e[1])
	}
}

var _ runner.ProgressRecorder = &progressRecorder{}
