package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// resetStatus drops the status of an Instance with another uid. It commits at once, so that what is decided next does not rest on it.
func (a *action) resetStatus(ctx context.Context) error {
	a.Next.Status = v1beta1.InstanceStatus{}
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventStatusReset, "the status was that of an Instance with another uid, as after a "+
		"restore: it was reset, and the Instance starts anew")
	return a.Commit(ctx)
}

// isRestored reports whether the Instance is to take over the objects that a restore has created, in place of its first run. The annotation
// counts only for an Instance without a baseline: no run of such an Instance was recorded.
func (o *observer) isRestored() bool {
	return o.Next.Status.Baseline == nil && !o.running && o.Next.Annotations[v1beta1.RestoredAnnotation] == "true"
}

// takeOverRestored records the spec as done and runs nothing, if all objects of the first run are as the plan makes them. It waits for
// everything that a first run waits for, and reads and writes with the account of the run. If the manager crashes before the commit of the
// status, only owners of objects have changed, and all objects are compared again.
func (a *action) takeOverRestored(ctx context.Context) error {
	if there, err := a.awaitCRDs(ctx); err != nil || !there {
		return err
	}
	record := a.newRecord(a.start.Plan, trigger.CauseRestored, false, a.runValues())
	run := a.buildRun(record, a.content)
	restored, err := a.Runner.CompareRestored(ctx, run)
	if err == nil && len(restored.Problems) > 0 && a.content.Templates.UsesFrom() { // a run after the first may have written the objects
		record.From = v1beta1.NewPackageVersion(a.content.Spec)
		run = a.buildRun(record, a.content)
		restored, err = a.Runner.CompareRestored(ctx, run)
	}
	if err != nil {
		return a.refuseRestored(err.Error())
	}
	if len(restored.Problems) > 0 {
		return a.refuseRestored(restored.Message())
	}
	return a.recordRestored(ctx, record, run, restored)
}

// recordRestored records the run that stands for what a restore has created, takes its objects over, and reports the plan as complete.
func (a *action) recordRestored(ctx context.Context, record history.Run, run *runner.Run, restored *runner.RestoredObjects) error {
	a.adoptDecision(*a.decision)
	recorded, err := a.recordRun(ctx, record, a.content)
	if err != nil {
		return a.refuseStart(ctx, err)
	}
	run.UID = recorded.UID
	changes, err := a.Runner.TakeOver(ctx, run, restored)
	if err != nil {
		a.revertStatus()
		return a.refuseRestored(err.Error())
	}
	inventory := a.readInventory()
	for _, change := range changes {
		inventory[change.ID] = change.Record
	}
	a.writeInventory(inventory)
	status := &a.Next.Status
	completed := plans.CompletedStatus(run.Plan, a.content.Spec.Plans[run.Plan], run.UID, status.Baseline.Revision, a.Clock.Now())
	status.PlanStatus[run.Plan] = completed
	plans.CompleteVersion(status.Baseline, run.Plan, a.content.Spec)
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventInstanceRestored, "%d objects are as plan %s makes them and were taken over: the "+
		"plan was not run", len(changes), run.Plan)
	return a.checkObjects(ctx)
}

// refuseRestored says why a restored Instance is not taken over. No watch shows all that may be missing.
func (a *action) refuseRestored(message string) error {
	a.result.Transient = true
	a.blocked = &blocked{restoreDue, v1beta1.ReasonObjectsNotRestored, v1beta1.EventObjectsNotRestored, message}
	a.reportBlocked()
	return nil
}
