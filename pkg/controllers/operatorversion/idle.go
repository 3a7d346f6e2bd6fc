package operatorversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// restoreDelay is how long a run of the install plan must be over before another one restores what another client deletes.
const restoreDelay = 2 * time.Second

// watchObjects restores, compares and releases what is held while no plan is running.
func (a *action) watchObjects(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	return a.checkObjects(ctx)
}

// checkObjects compares what is held with the cluster after the last run has succeeded:
//
//	deleted, replaced, or without this owner    the install plan runs again, which restores it
//	taken over by another client                the hold is relinquished, and the object counts as Existing
//	changed                                     compared when it has settled: as it should be, or Mismatch
//	no longer named by the install plan         released
func (a *action) checkObjects(ctx context.Context) error {
	last, st := plans.LatestRun(a.Next.Status.PlanStatus)
	if st.Status != v1beta1.Complete || a.Next.Spec.InstallPlan != last || len(a.inventory) == 0 {
		return nil
	}
	if err := a.buildRun(last); err != nil {
		return err
	}
	var lost string
	fresh := a.hasRunEnded(st)
	compare := fresh // something may no longer be named
	for i := range a.inventory {
		missing, differs, err := a.inspect(ctx, &a.inventory[i])
		if err != nil {
			return err
		}
		if missing != "" && lost == "" {
			lost = missing
		}
		compare = compare || differs
	}
	if lost != "" {
		return a.restore(ctx, st, lost)
	}
	if fresh {
		clear(a.driftTracker().objects)
	}
	if compare && (fresh || a.allowCompare()) {
		if err := a.compareHeld(ctx); err != nil {
			return err
		}
	}
	a.reportNext()
	if err := a.releaseUnnamed(ctx, a.listReleasing()); err != nil {
		return err
	}
	return a.writeInventory(ctx)
}

// restore runs the install plan again, since something is missing; not at once after the last run, in case that a client deletes
// it each time.
func (a *action) restore(ctx context.Context, st v1beta1.PlanStatus, lost string) error {
	if err := a.writeInventory(ctx); err != nil {
		return err
	}
	if st.FinishedTimestamp != nil {
		// A run that ends in the future was ended by a clock that was corrected since, and is not waited for.
		if since := a.Clock.Since(st.FinishedTimestamp.Time); since >= 0 && since < restoreDelay {
			a.result.RequeueAfter = restoreDelay - since
			return nil
		}
	}
	cause := trigger.CauseRestoreOfShared + " " + lost
	started, err := a.startRun(ctx, cause)
	if started {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventRestoreStarted, "Install plan %s was started to restore %s (run %d)",
			a.Next.Spec.InstallPlan, lost, a.Next.Status.Revision)
		a.announceStart(cause)
		a.result.RequeueAfter = 1
	}
	return err
}

// hasRunEnded reports whether the run has ended in this reconcile.
func (a *action) hasRunEnded(st v1beta1.PlanStatus) bool {
	return !a.Committed.Status.PlanStatus[st.Name].Status.IsTerminal()
}

// inspect compares the entry of a held object with the mirror. It returns the name of the object if the object is missing, and whether the
// object must be compared with the package.
func (a *action) inspect(ctx context.Context, r *v1beta1.HeldResource) (missing string, compare bool, err error) {
	if r.State == v1beta1.HoldExisting || r.State == v1beta1.HoldReleasing || r.UID == "" {
		return "", r.State == v1beta1.HoldMismatch, nil
	}
	live, known, err := a.Share.Observe(ctx, *r)
	if err != nil || !known {
		return "", false, err
	}
	id := share.IDOf(*r)
	switch {
	case live == nil:
		r.State, r.Message = v1beta1.HoldMissing, "it was deleted"
		return fmt.Sprintf("%s, which was deleted", id), false, nil
	case live.GetUID() != r.UID:
		r.State, r.Message = v1beta1.HoldMissing, "it was replaced by another object of the name"
		return fmt.Sprintf("%s, which was replaced", id), false, nil
	case live.GetDeletionTimestamp() != nil:
		return "", false, nil // it is restored when it does not exist anymore
	case !share.Managed(live):
		return "", false, a.relinquish(ctx, r)
	case !share.Owns(live, a.installation):
		return fmt.Sprintf("the hold on %s, which was taken off", id), false, nil
	}
	a.contents[id] = a.Share.Fingerprint(live)
	compare, again := a.driftTracker().observe(a.Clock.Now(), r, a.contents[id])
	a.requeueAfter(again)
	return "", compare, nil
}

// relinquish releases an object that another client has taken over by removing the managed annotation. It checks the annotation live, since
// a client may have set it again.
func (a *action) relinquish(ctx context.Context, r *v1beta1.HeldResource) error {
	removal := a.Share.Session(a.installation, share.Policy{}, a.inventory).Relinquish(ctx, *r)
	if removal.Err != nil || !removal.Done {
		return removal.Err
	}
	r.State, r.Message = v1beta1.HoldExisting, "it was taken over"
	delete(a.driftTracker().objects, share.IDOf(*r))
	return nil
}

// compareHeld renders the install plan, compares what is there with it, and releases what it does not name any more.
func (a *action) compareHeld(ctx context.Context) error {
	objs, refused, err := a.Runner.Objects(ctx, a.run)
	if err != nil {
		return err
	}
	wrong, superseded := map[apply.ID]string{}, map[apply.ID]bool{}
	a.mismatches = map[apply.ID]*share.MismatchError{}
	for _, change := range refused {
		if change.Action == apply.Awaited { // such as the pod of a Pipe that has been read: there is nothing to compare
			a.requeueAfter(pollInterval)
			continue
		}
		var mismatch *share.MismatchError
		if !errors.As(change.Err, &mismatch) {
			return change.Err
		}
		if mismatch.Superseded {
			superseded[change.ID] = true
			continue
		}
		wrong[change.ID], a.mismatches[change.ID] = text.Truncate(mismatch.Error(), maxMessage), mismatch
	}
	for i := range a.inventory {
		r := &a.inventory[i]
		m := a.driftTracker().objects[share.IDOf(*r)]
		switch message := wrong[share.IDOf(*r)]; {
		case m != nil && m.due == deferred: // what was reported stays
		case message != "":
			a.recordMismatch(r, message)
		case m != nil && m.due == unstable:
			m.since = a.Clock.Now() // it matched for a moment
		default:
			if err := a.recordMatch(ctx, r, objs); err != nil {
				return err
			}
			if superseded[share.IDOf(*r)] {
				r.Message = "a newer version of the operator has changed it"
			}
		}
	}
	if !a.hasRunEnded(*a.lastRun()) { // the plan may have been edited since it ran, and nothing has made what it names now
		return nil
	}
	return a.releaseUnnamed(ctx, a.listUnnamed(objs))
}

// lastRun is the last run.
func (a *action) lastRun() *v1beta1.PlanStatus {
	_, st := plans.LatestRun(a.Next.Status.PlanStatus)
	return &st
}

// listReleasing lists what is about to go, since the install plan does not name it any more.
func (a *action) listReleasing() []v1beta1.HeldResource {
	return slices.DeleteFunc(slices.Clone(a.inventory), func(r v1beta1.HeldResource) bool { return r.State != v1beta1.HoldReleasing })
}

// releaseUnnamed releases what the install plan does not name any more. What waits is tried again.
func (a *action) releaseUnnamed(ctx context.Context, left []v1beta1.HeldResource) error {
	for _, r := range left {
		removal := a.Share.Session(a.installation, share.Policy{}, a.inventory).Release(ctx, r, false)
		at := a.inventory.Find(share.IDOf(r))
		switch {
		case removal.Err != nil:
			return removal.Err
		case removal.Done:
			a.inventory = slices.Delete(a.inventory, at, at+1)
		default:
			a.inventory[at].State = v1beta1.HoldReleasing
			a.inventory[at].Message = text.Truncate("the install plan does not name it any more: "+removal.Waiting, maxMessage)
			a.result.RequeueAfter = pollInterval
		}
	}
	return nil
}

// recordMatch notes that a held object matches. If the object has changed since the comparison began, it is compared again, since its
// present content was not compared.
func (a *action) recordMatch(ctx context.Context, r *v1beta1.HeldResource, objs []*unstructured.Unstructured) error {
	at := index(objs, *r)
	if at < 0 || r.State == v1beta1.HoldExisting {
		return nil
	}
	live, known, err := a.Share.Observe(ctx, *r)
	if err != nil || !known || live == nil || live.GetUID() != r.UID {
		return err
	}
	if before, seen := a.contents[share.IDOf(*r)]; seen && before != a.Share.Fingerprint(live) {
		a.requeueAfter(settleAfter)
		return nil
	}
	*r = share.HeldResourceFor(apply.Change{ID: apply.IDOf(objs[at]), Live: live, Record: a.Share.Record(live, objs[at])}, a.installation)
	delete(a.driftTracker().objects, share.IDOf(*r))
	return nil
}

// index is the place of a held object among objects; -1 if it is not there.
func index(objs []*unstructured.Unstructured, r v1beta1.HeldResource) int {
	id := share.IDOf(r)
	return slices.IndexFunc(objs, func(obj *unstructured.Unstructured) bool {
		at := apply.IDOf(obj)
		return at.GroupKind() == id.GroupKind() && at.NamespacedName == id.NamespacedName
	})
}

// listUnnamed lists what is held and not among the objects.
func (a *action) listUnnamed(objs []*unstructured.Unstructured) []v1beta1.HeldResource {
	return slices.DeleteFunc(slices.Clone(a.inventory), func(r v1beta1.HeldResource) bool { return index(objs, r) >= 0 })
}
