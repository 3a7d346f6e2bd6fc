package instance

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/schedule"
	"kudo.dev/kudo/plans/trigger"
)

// isUpgrade reports whether the running plan, which is about to be restarted, takes the Instance from another version.
func (e *execution) isUpgrade(ctx context.Context) (bool, error) {
	name, st := e.activePlan()
	if known := e.findActiveRun(name, st); known != nil {
		return known.run.Upgrade, nil
	}
	if st.Revision == 0 {
		return false, nil
	}
	record, err := e.History.Read(ctx, e.Next, st.Revision)
	if history.Unusable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return record.Upgrade, nil
}

// startRun starts a run (docs/design/engine.md, starting a run): what it is started with is recorded first; the status
// patch with the run's uid is the commit; the first task comes after its answer.
func (e *execution) startRun(ctx context.Context, plan, cause string, version *runner.ParsedVersion, upgrade bool, values values) error {
	if err := e.recallCompleted(ctx); err != nil {
		return err
	}
	record, err := e.recordRun(ctx, e.newRecord(plan, cause, upgrade, values), version)
	if err != nil {
		return err
	}
	e.setActiveRun(e.buildRun(*record, version), e.ring.Current())
	if record.RequestedBy != "" { // an event of its own, since the text of the other one is KUDO's
		e.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanRequested, "Plan %s was requested by %s: %s", plan, record.RequestedBy, cause)
	}
	e.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanStarted, "Execution of plan %s started", plan)
	return nil
}

// recallCompleted finds the version that was complete under an earlier version of kudo, which did not record it: that of the newest run.
func (e *execution) recallCompleted(ctx context.Context) error {
	base := e.Next.Status.Baseline
	if !plans.LacksVersion(base, e.Next.Status.PlanStatus) {
		return nil
	}
	version, err := e.keptVersion(ctx, base.Snapshot)
	if version == nil || history.Unusable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	base.Completed = new(v1beta1.NewPackageVersion(version.Spec))
	return nil
}

// newRecord returns what a run is started with, but for its number and the content of its OperatorVersion.
func (e *execution) newRecord(plan, cause string, upgrade bool, values values) history.Run {
	record := history.Run{
		Plan: plan, Cause: cause, RequestedBy: e.startRequester(plan, cause), OperatorVersion: e.Next.OperatorVersionKey().String(),
		Upgrade: upgrade, From: e.Next.CompletedVersion(), Privileged: e.privileged,
		Parameters: values.given, Sensitive: values.sensitive, Started: metav1.NewMicroTime(e.Clock.Now()),
	}
	if base := e.Next.Status.Baseline; base != nil {
		record.OperatorVersion = base.OperatorVersion
		record.Suspend = base.Suspended // other plans leave it as it is, so that it is still asked for after them
	}
	if plans.AppliesSpec(plan) {
		record.Suspend = e.Next.Spec.Suspend
	}
	if !e.privileged {
		record.ServiceAccount = e.serviceAccount.Name
	}
	return record
}

// recordRun writes down what a run is started with, gives it its number, and puts its start into the status. The first run after a
// restore takes the number after those of the records from before.
func (e *execution) recordRun(ctx context.Context, record history.Run, version *runner.ParsedVersion) (*history.Run, error) {
	status := &e.Next.Status
	if status.Baseline == nil {
		status.Baseline = &v1beta1.Baseline{OperatorVersion: e.Next.OperatorVersionKey().String()}
	}
	revision := status.Baseline.Revision + 1
	err := e.recordStart(ctx, &record, revision, version)
	if former := new(history.FormerError); errors.As(err, &former) {
		newest, failed := e.History.AdoptFormer(ctx, e.Next)
		if failed != nil {
			return nil, failed
		}
		revision = newest + 1
		err = e.recordStart(ctx, &record, revision, version)
	}
	if err != nil {
		return nil, err
	}
	if err := e.History.Trim(ctx, e.Next, revision, status.Baseline.Snapshot); err != nil {
		return nil, err
	}
	if name, running := e.activePlan(); name != "" {
		e.countRun(name, running, metrics.OutcomeSuperseded)
		schedule.Replace(status.Schedules, running.Revision, revision)
	}
	if old := status.PlanStatus[record.Plan]; old.Revision != 0 {
		if !old.Status.IsTerminal() {
			old.Message = fmt.Sprintf("started again as run %d", revision)
		}
		if err := e.History.RecordOutcome(ctx, e.Next, old); err != nil {
			return nil, err
		}
	}
	e.Tarballs.Forget(client.ObjectKeyFromObject(e.Next))
	status.Baseline.Revision, status.Baseline.Suspended = revision, record.Suspend
	status.Baseline.RunAs = types.NamespacedName(e.serviceAccount).String()
	status.Baseline.Snapshot, status.Baseline.ContentHash = record.Snapshot, e.contentDigest(version)
	status.PlanStatus = plans.WithNeverRun(status.PlanStatus, version.Spec.InstancePlans())
	status.Baseline.UpgradeIncomplete = status.Baseline.UpgradeIncomplete || record.Upgrade
	before := status.PlanStatus[record.Plan]
	st := plans.Start(record.Plan, version.Spec.Plans[record.Plan], record.UID, revision, e.Clock.Now())
	st.Scheduled = trigger.IsScheduled(record.Cause)
	if st.Scheduled {
		st.Counted = plans.NewCounted(before)
	}
	status.PlanStatus[record.Plan] = st
	e.schedules.start(record.Plan, revision)
	return &record, nil
}

// recordStart writes down a run under a number.
func (e *execution) recordStart(ctx context.Context, record *history.Run, revision int64, version *runner.ParsedVersion) error {
	record.UID = history.RunUID(e.Next.UID, revision)
	if err := e.attachSnapshot(record, revision, version); err != nil {
		return err
	}
	return e.History.RecordStart(ctx, e.Next, revision, *record)
}

// attachSnapshot sets the snapshot of a record: a reference to the ControllerRevision that holds the OperatorVersion's content for the
// former run, or the content itself.
func (e *execution) attachSnapshot(record *history.Run, revision int64, version *runner.ParsedVersion) (err error) {
	base := e.Next.Status.Baseline
	if base.Snapshot != "" && base.ContentHash == e.contentDigest(version) {
		record.Snapshot = base.Snapshot
		return nil
	}
	record.Snapshot = history.Name(e.Next.Name, revision)
	record.Spec, err = history.Pack(version.Spec)
	return err
}

// contentDigest returns the digest of the content of a snapshot. It includes the id of the key that seals the snapshot, so that a run with
// another key has a snapshot of its own.
func (e *execution) contentDigest(version *runner.ParsedVersion) string {
	return e.ring.Current() + "." + version.Hash
}
