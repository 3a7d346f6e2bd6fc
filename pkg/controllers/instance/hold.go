package instance

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/plans"
)

// holdProgress keeps the status out of the cluster for a moment if it says no more than that the objects which a step has just applied are
// not ready yet: most of them are soon, and the write that says so is then the only one. What may be lost are the uids of objects of a
// namespace whose names were committed before they were written. The next reconcile finds them again, as after a crash. Of an object
// without a namespace, which belongs to the Instance by its uid alone, the uid is never held back.
//
//	a task has become done, or has failed         written: it must not be done again, or a user has to see it
//	a task awaits something else than its apply   written
//	an object without a namespace is new          written
//	another part of the status has changed        written
//	a step began ProgressDelay ago                written
//	else                                          held until then, or until an object changes
func (a *action) holdProgress(name string) {
	before, after := a.Committed.Status, a.Next.Status
	began, waits := plans.OnlyApplied(a.run.Version.Kinds, before.PlanStatus[name], after.PlanStatus[name])
	if !waits || a.lasting || a.result.Transient {
		return
	}
	left := a.ProgressDelay - a.Clock.Since(began)
	if left <= 0 {
		return
	}
	expected := *before.DeepCopy()
	expected.PlanStatus[name], expected.Resources = after.PlanStatus[name], after.Resources
	expected.AggregatedStatus, expected.Conditions = after.AggregatedStatus, after.Conditions
	if !equality.Semantic.DeepEqual(expected, after) {
		return
	}
	a.result.Hold, a.result.RequeueAfter = true, min(a.result.RequeueAfter, max(left, time.Millisecond))
}
