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
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
)

// calm is how long a run of the install plan must be over before another one restores what somebody deletes.
const calm = 2 * time.Second

// drift looks at what is held, at rest:
//
//	gone, replaced, or without this owner    the install plan runs again, which restores it
//	taken over by somebody                   the holder leaves, and it counts as Existing
//	changed                                  compared once more when it rests: as it should be, or Mismatch
//	no longer named by the install plan      released
func (p *pass) drift(ctx context.Context) (bool, error) {
	last := plans.Last(p.ov.Status.PlanStatus)
	st := p.ov.Status.PlanStatus[last]
	if st.Status != v1beta1.Complete || p.ov.Spec.InstallPlan != last || len(p.held) == 0 {
		return false, nil
	}
	if err := p.newRun(last); err != nil {
		return true, err
	}
	var lost string
	fresh := p.fresh(st)
	changed := fresh // something may no longer be named
	for i := range p.held {
		missing, differs, err := p.look(ctx, &p.held[i])
		if err != nil {
			return true, err
		}
		if missing != "" && lost == "" {
			lost = missing
		}
		changed = changed || differs
	}
	if lost != "" {
		return p.restore(ctx, st, lost)
	}
	if fresh {
		clear(p.unrest().objects)
	}
	if changed && (fresh || p.worthwhile()) {
		if err := p.compare(ctx); err != nil {
			return true, err
		}
	}
	p.tell()
	if err := p.leave(ctx, p.releasing()); err != nil {
		return true, err
	}
	return false, p.keep(ctx)
}

// fresh tells whether the run has ended in this pass.
func (p *pass) fresh(st v1beta1.PlanStatus) bool {
	return !p.written.Status.PlanStatus[st.Name].Status.IsTerminal()
}

// look compares a held object with what the mirror shows. It says what is missing, and whether it is to be compared with
// what the package wants.
func (p *pass) look(ctx context.Context, r *v1beta1.HeldResource) (missing string, compare bool, err error) {
	if r.State == v1beta1.HoldExisting || r.State == v1beta1.HoldReleasing || r.UID == "" {
		return "", r.State == v1beta1.HoldMismatch, nil
	}
	live, known, err := p.Share.Seen(ctx, *r)
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
		return "", false, nil // it is restored when it is gone
	case !share.Managed(live):
		return "", false, p.takenOver(ctx, r)
	case !share.Owns(live, p.holder):
		return fmt.Sprintf("the hold on %s, which was taken off", id), false, nil
	}
	compare, again := p.unrest().see(p.Clock.Now(), r, p.Share.Fingerprint(live))
	p.again(again)
	return "", compare, nil
}

// takenOver lets go of an object that somebody has taken over by removing the managed annotation. The annotation may be
// back by now: what was seen is not what is there.
func (p *pass) takenOver(ctx context.Context, r *v1beta1.HeldResource) error {
	removal := p.Share.Session(p.holder, share.Policy{}, p.held).Yield(ctx, *r)
	if removal.Err != nil || !removal.Gone {
		return removal.Err
	}
	r.State, r.Message = v1beta1.HoldExisting, "it was taken over"
	delete(p.unrest().objects, share.IDOf(*r))
	return nil
}

// restore runs the install plan again, since something is missing; not at once after the last run, in case that somebody
// deletes it each time.
func (p *pass) restore(ctx context.Context, st v1beta1.PlanStatus, lost string) (bool, error) {
	if err := p.keep(ctx); err != nil {
		return true, err
	}
	if st.FinishedTimestamp != nil {
		// A run that ends in the future was ended by a clock that was put right since: nobody waits for that.
		if since := p.Clock.Since(st.FinishedTimestamp.Time); since >= 0 && since < calm {
			p.result.RequeueAfter = calm - since
			return false, nil
		}
	}
	p.happened(corev1.EventTypeWarning, v1beta1.EventRestoring, "The install plan runs again to restore %s", lost)
	p.result.RequeueAfter = 1
	return true, p.begin(ctx, "to restore "+lost)
}

// compare renders the install plan, compares what is there with it, and releases what it does not name any more.
func (p *pass) compare(ctx context.Context) error {
	objs, refused, err := p.Runner.Objects(ctx, p.run)
	if err != nil {
		return err
	}
	wrong, superseded := map[apply.ID]string{}, map[apply.ID]bool{}
	for _, change := range refused {
		if change.Action == apply.Awaited { // such as the pod of a Pipe that has been read: there is nothing to compare
			p.again(lookAgain)
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
		wrong[change.ID] = bounded(mismatch.Error())
	}
	for i := range p.held {
		r := &p.held[i]
		m := p.unrest().objects[share.IDOf(*r)]
		switch message := wrong[share.IDOf(*r)]; {
		case m != nil && m.due == later: // it stays as it was told
		case message != "":
			p.differs(r, message)
		case m != nil && m.due == moves:
			m.since = p.Clock.Now() // it was right for a moment
		default:
			if err := p.matches(ctx, r, objs); err != nil {
				return err
			}
			if superseded[share.IDOf(*r)] {
				r.Message = "a newer version of the operator has changed it"
			}
		}
	}
	if !p.fresh(*p.last()) { // the plan may have been edited since it ran, and nothing has made what it names now
		return nil
	}
	return p.leave(ctx, p.abandoned(objs))
}

// last is the last run.
func (p *pass) last() *v1beta1.PlanStatus {
	st := p.ov.Status.PlanStatus[plans.Last(p.ov.Status.PlanStatus)]
	return &st
}

// releasing lists what is about to go, since the install plan does not name it any more.
func (p *pass) releasing() []v1beta1.HeldResource {
	return slices.DeleteFunc(slices.Clone(p.held), func(r v1beta1.HeldResource) bool { return r.State != v1beta1.HoldReleasing })
}

// leave releases what the install plan does not name any more. What waits is tried again.
func (p *pass) leave(ctx context.Context, left []v1beta1.HeldResource) error {
	for _, r := range left {
		removal := p.Share.Session(p.holder, share.Policy{}, p.held).Leave(ctx, r, false)
		at := p.held.Find(share.IDOf(r))
		switch {
		case removal.Err != nil:
			return removal.Err
		case removal.Gone:
			p.held = slices.Delete(p.held, at, at+1)
		default:
			p.held[at].State = v1beta1.HoldReleasing
			p.held[at].Message = bounded("the install plan does not name it any more: " + removal.Waiting)
			p.result.RequeueAfter = lookAgain
		}
	}
	return nil
}

// matches notes that a held object is as it should be.
func (p *pass) matches(ctx context.Context, r *v1beta1.HeldResource, objs []*unstructured.Unstructured) error {
	at := index(objs, *r)
	if at < 0 || r.State == v1beta1.HoldExisting {
		return nil
	}
	live, known, err := p.Share.Seen(ctx, *r)
	if err != nil || !known || live == nil || live.GetUID() != r.UID {
		return err
	}
	*r = share.Held(apply.Change{ID: apply.IDOf(objs[at]), Live: live, Record: p.Share.Record(live, objs[at])}, p.holder)
	delete(p.unrest().objects, share.IDOf(*r))
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

// abandoned lists what is held and not among the objects.
func (p *pass) abandoned(objs []*unstructured.Unstructured) []v1beta1.HeldResource {
	return slices.DeleteFunc(slices.Clone(p.held), func(r v1beta1.HeldResource) bool { return index(objs, r) >= 0 })
}

var _ runner.Hooks = &hooks{}
