package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/schedule"
	"kudo.dev/kudo/plans/trigger"
)

// startPlan starts a run, and goes on with it. It waits for the CustomResourceDefinitions of the Instance.
func (a *action) startPlan(ctx context.Context) error {
	if !a.running && !trigger.IsScheduled(a.start.Cause) { // a schedule changes no condition, and deploy has installed them
		if there, err := a.awaitCRDs(ctx); err != nil || !there {
			return err
		}
	}
	given, err := a.valuesExceptDeferred(ctx, a.decision.Deferred)
	if err != nil {
		return err
	}
	upgrade := a.start.Upgrade
	if a.decision.Restart {
		if upgrade, err = a.isUpgrade(ctx); err != nil {
			return err
		}
	}
	queue := a.Next.Status.Queue
	a.adoptDecision(*a.decision)
	err = a.startRun(ctx, a.start.Plan, a.start.Cause, a.content, upgrade, given)
	if err != nil {
		return a.refuseStart(ctx, err)
	}
	a.announceQueued(queue)
	return a.continueRun(ctx)
}

// A new Instance looks for the records of a former one of its name each formerInterval, since no watch shows their deletion. After
// formerPatience it looks with back-off: a finalizer can keep such a record for ever.
const (
	formerInterval = time.Second
	formerPatience = 2 * time.Minute
)

// refuseStart reports why a run could not be recorded, and returns transient errors. Nothing was started, and no request is
// answered.
func (a *action) refuseStart(ctx context.Context, cause error) error {
	refused, taken, former := refusedSpec(cause), new(history.TakenError), new(history.FormerOwnerError)
	switch {
	case errors.As(cause, &former) && !a.running && !trigger.IsScheduled(a.start.Cause):
		a.setPending(a.start.Plan, v1beta1.ReasonWaitingForDeletion, former.Error())
		if a.Clock.Since(a.Next.CreationTimestamp.Time) < formerPatience {
			a.result.RequeueAfter = formerInterval
		} else {
			a.result.Transient = true
		}
		return nil
	case errors.As(cause, &taken):
		refused = nameTaken(taken)
		a.result.Transient = true // no watch shows that the name is free
	case !cannotBeStored(cause):
		return cause
	}
	isScheduled := trigger.IsScheduled(a.start.Cause)
	a.revertStatus()
	if isScheduled {
		a.result.Transient = true
		a.reportDue(a.due[0], refused.message)
		return a.checkObjects(ctx)
	}
	return a.refuse(ctx, refused)
}

// refuse says why the spec cannot be acted upon. A run goes on.
func (a *action) refuse(ctx context.Context, cause *blocked) error {
	a.blocked = cause
	if a.running {
		return a.continueRun(ctx)
	}
	a.reportBlocked()
	return nil
}

// acknowledge notes that spec has been decided upon, and adopts a decision that starts nothing.
func (a *action) acknowledge() {
	if a.decision == nil {
		return
	}
	a.Next.Status.ObservedGeneration = a.Next.Generation
	a.warnIgnoredParameters(a.decision.Ignored)
	if a.start == nil {
		queue := a.Next.Status.Queue
		a.adoptDecision(*a.decision)
		a.announceQueued(queue)
	}
}

// cannotBeStored reports whether a run can never be recorded, as with a name that is too long for a label. What is more than
// etcd takes is answered with a 500, like transient errors.
func cannotBeStored(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || err != nil &&
		strings.Contains(err.Error(), "request is too large")
}

// adoptDecision puts a decision into the status. The baseline keeps what the rules know nothing of.
func (a *action) adoptDecision(decision trigger.Decision) {
	status := &a.Next.Status
	status.Queue = decision.Queue
	a.setQueueRequesters()
	if base := decision.Baseline; base != nil {
		if old := status.Baseline; old != nil {
			base.Revision, base.Snapshot, base.ContentHash = old.Revision, old.Snapshot, old.ContentHash
			base.Suspended, base.Sensitive, base.RunAs, base.UpgradeIncomplete = old.Suspended, old.Sensitive, old.RunAs, old.UpgradeIncomplete
		}
		status.Baseline = base
	}
	a.setBaselineGeneration()
}

// announceQueued records an event for each plan of the queue that was not in the queue before.
func (a *action) announceQueued(before []v1beta1.QueuedPlan) {
	for _, q := range a.Next.Status.Queue {
		if queuedPlan(before, q.PlanName) == nil {
			behind := ""
			if running, _ := a.activePlan(); running != "" {
				behind = " behind plan " + running
			}
			a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanQueued, "Plan %s is queued%s: %s%s", q.PlanName, behind, q.Cause,
				byUser(q.RequestedBy))
		}
	}
}

// warnIgnoredParameters warns once of parameters that the OperatorVersion does not define.
func (a *action) warnIgnoredParameters(names []string) {
	if len(names) > 0 && a.Committed.Status.ObservedGeneration != a.Next.Generation {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventUnknownParameter, "spec.parameters %s are not defined by OperatorVersion %s "+
			"and ignored: remove or correct them",
			strings.Join(names, ", "), a.Next.OperatorVersionKey())
	}
}

// isUpgrade reports whether the running plan, which is about to be restarted, takes the Instance from another version.
func (a *action) isUpgrade(ctx context.Context) (bool, error) {
	name, st := a.activePlan()
	if known := a.findActiveRun(name, st); known != nil {
		return known.run.Upgrade, nil
	}
	if st.Revision == 0 {
		return false, nil
	}
	record, err := a.History.Read(ctx, a.Next, st.Revision)
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
func (a *action) startRun(ctx context.Context, plan, cause string, version *runner.ParsedVersion, upgrade bool, values values) error {
	record, err := a.recordRun(ctx, a.newRecord(plan, cause, upgrade, values), version)
	if err != nil {
		return err
	}
	a.setActiveRun(a.buildRun(*record, version), a.ring.Current())
	if record.RequestedBy != "" { // an event of its own, since the text of the other one is KUDO's
		a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanRequested, "Plan %s was requested by %s: %s", plan, record.RequestedBy, cause)
	}
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanStarted, "Execution of plan %s started", plan)
	return nil
}

// newRecord returns what a run is started with, but for its number and the content of its OperatorVersion.
func (a *action) newRecord(plan, cause string, upgrade bool, values values) history.Run {
	record := history.Run{
		Plan: plan, Cause: cause, RequestedBy: a.startRequester(), OperatorVersion: a.Next.OperatorVersionKey().String(),
		Upgrade: upgrade, Privileged: a.privileged,
		Parameters: values.given, Sensitive: values.sensitive, Started: metav1.NewMicroTime(a.Clock.Now()),
	}
	if base := a.Next.Status.Baseline; base != nil {
		record.OperatorVersion = base.OperatorVersion
		record.Suspend = base.Suspended // other plans leave it as it is, so that it is still asked for after them
	}
	if plans.AppliesSpec(plan) {
		record.Suspend = a.Next.Spec.Suspend
	}
	if !a.privileged {
		record.ServiceAccount = a.serviceAccount.Name
	}
	return record
}

// recordRun writes down what a run is started with, gives it its number, and puts its start into the status. The first run after a
// restore takes the number after those of the records from before.
func (a *action) recordRun(ctx context.Context, record history.Run, version *runner.ParsedVersion) (*history.Run, error) {
	status := &a.Next.Status
	if status.Baseline == nil {
		status.Baseline = &v1beta1.Baseline{OperatorVersion: a.Next.OperatorVersionKey().String()}
	}
	revision := status.Baseline.Revision + 1
	err := a.recordStart(ctx, &record, revision, version)
	if former := new(history.FormerError); errors.As(err, &former) {
		newest, failed := a.History.AdoptFormer(ctx, a.Next)
		if failed != nil {
			return nil, failed
		}
		revision = newest + 1
		err = a.recordStart(ctx, &record, revision, version)
	}
	if err != nil {
		return nil, err
	}
	if err := a.History.Trim(ctx, a.Next, revision, status.Baseline.Snapshot); err != nil {
		return nil, err
	}
	if name, running := a.activePlan(); name != "" {
		a.countRun(name, running, metrics.OutcomeSuperseded)
		schedule.Replace(status.Schedules, running.Revision, revision)
	}
	if old := status.PlanStatus[record.Plan]; old.Revision != 0 {
		if !old.Status.IsTerminal() {
			old.Message = fmt.Sprintf("started again as run %d", revision)
		}
		if err := a.History.RecordOutcome(ctx, a.Next, old); err != nil {
			return nil, err
		}
	}
	a.Tarballs.Forget(client.ObjectKeyFromObject(a.Next))
	status.Baseline.Revision, status.Baseline.Suspended = revision, record.Suspend
	status.Baseline.RunAs = types.NamespacedName(a.serviceAccount).String()
	status.Baseline.Snapshot, status.Baseline.ContentHash = record.Snapshot, a.contentDigest(version)
	status.PlanStatus = plans.WithNeverRun(status.PlanStatus, version.Spec.InstancePlans())
	status.Baseline.UpgradeIncomplete = status.Baseline.UpgradeIncomplete || record.Upgrade
	before := status.PlanStatus[record.Plan]
	st := plans.Start(record.Plan, version.Spec.Plans[record.Plan], record.UID, revision, a.Clock.Now())
	st.Scheduled = trigger.IsScheduled(record.Cause)
	if st.Scheduled {
		st.Counted = plans.NewCounted(before)
	}
	status.PlanStatus[record.Plan] = st
	a.startSchedules(record.Plan, revision)
	return &record, nil
}

// recordStart writes down a run under a number.
func (a *action) recordStart(ctx context.Context, record *history.Run, revision int64, version *runner.ParsedVersion) error {
	record.UID = history.RunUID(a.Next.UID, revision)
	if err := a.attachSnapshot(record, revision, version); err != nil {
		return err
	}
	return a.History.RecordStart(ctx, a.Next, revision, *record)
}

// attachSnapshot lets a run that is about to be recorded refer to the ControllerRevision that holds the OperatorVersion's
// content for the run before, or hold it itself.
func (a *action) attachSnapshot(record *history.Run, revision int64, version *runner.ParsedVersion) (err error) {
	base := a.Next.Status.Baseline
	if base.Snapshot != "" && base.ContentHash == a.contentDigest(version) {
		record.Snapshot = base.Snapshot
		return nil
	}
	record.Snapshot = history.Name(a.Next.Name, revision)
	record.Spec, err = history.Pack(version.Spec)
	return err
}

// contentDigest is the digest of what a snapshot holds, and names the key that the snapshot is sealed with: with another
// key, a run holds its own.
func (a *action) contentDigest(version *runner.ParsedVersion) string {
	return a.ring.Current() + "." + version.Hash
}

func (a *action) buildRun(record history.Run, version *runner.ParsedVersion) *runner.Run {
	account, privileged := a.accountOf(record)
	return &runner.Run{
		Subject: runner.Subject{
			Kind: "Instance", Namespace: a.Next.Namespace, Name: a.Next.Name, UID: a.Next.UID, Annotations: a.Next.Annotations,
			Owners: a.Next.OwnerReferences,
		},
		Source: cmp.Or(record.OperatorVersion, a.Next.OperatorVersionKey().String()), Version: version,
		Plan: record.Plan, UID: record.UID, Parameters: record.Parameters, Sensitive: record.Sensitive, Cause: record.Cause,
		Upgrade: record.Upgrade, Suspend: record.Suspend, Account: account, Privileged: privileged, InstanceExists: a.owners, Keys: a.ring,
	}
}

// owners reports whether an Instance of the uid exists.
func (r *Reconciler) owners(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	other := &v1beta1.Instance{}
	err := r.Client.Get(ctx, key, other)
	if apierror.IsObjectNotFound(err) {
		return false, nil
	}
	return other.UID == uid, err
}
