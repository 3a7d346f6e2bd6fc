package operatorversion

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
)

// startInstall starts a run of the install plan, and continues with it.
func (a *action) startInstall(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	if started, err := a.startRun(ctx, a.cause); err != nil || !started {
		return err
	}
	a.announceStart(a.cause)
	return a.executeRun(ctx)
}

// prepare makes the OperatorVersion ready for a run, and notes that its spec has been acted upon.
func (a *action) prepare(ctx context.Context) error {
	a.Summarize = a.deriveConditions
	if err := a.createHolder(ctx); err != nil || !a.hasPlan {
		return err
	}
	a.observeSpec()
	a.rehashInputs()
	return nil
}

// observeSpec notes that spec has been acted upon.
func (a *action) observeSpec() {
	a.Next.Status.ObservedGeneration = a.Next.Generation
	a.Next.Status.Content, _ = content.Digest(a.Next) // without one, each later change of spec counts
}

// resetStatus drops the status of an OperatorVersion with another uid: its install plan runs anew, and nothing counts as installed until
// it has ended.
func (a *action) resetStatus() {
	a.Next.Status = v1beta1.OperatorVersionStatus{}
	a.result.RequeueAfter = 1
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventStatusReset, "the status was that of an OperatorVersion with another uid, as "+
		"after a restore: it was reset, and the install plan runs anew")
}

// createHolder puts the finalizer on the OperatorVersion and creates its Installation, before anything is installed.
func (a *action) createHolder(ctx context.Context) error {
	if err := a.SetFinalizer(ctx, v1beta1.OperatorVersionFinalizer, true); err != nil {
		return err
	}
	if a.installation == nil {
		if err := a.createInstallation(ctx); err != nil {
			return err
		}
	}
	a.Next.Status.Installation = a.installation.Name
	return nil
}

func (a *action) createInstallation(ctx context.Context) error {
	installation := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{
		Name: a.Next.InstallationName(), Finalizers: []string{v1beta1.InstallationFinalizer},
		Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage},
	}}
	installation.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: a.Next.Namespace, Name: a.Next.Name,
		UID: a.Next.UID}
	if err := a.Client.Create(ctx, installation); err != nil {
		return fmt.Errorf("create Installation %s: %w", installation.Name, err)
	}
	a.installation, a.inventory = installation, nil
	return nil
}

// startRun starts a run, as with Instances: first, the record of its inputs is written; the status patch with the uid of the run is the
// commit; the first task follows after the answer to it. startRun reports whether a run was started: if another object has the name of the
// record, it sets conditions instead.
func (a *action) startRun(ctx context.Context, cause string) (bool, error) {
	status, plan := &a.Next.Status, a.Next.Spec.InstallPlan
	revision := status.Revision + 1
	run := history.Run{
		Plan: plan, Cause: cause, UID: history.RunUID(a.Next.UID, revision), OperatorVersion: a.Next.Namespace + "/" + a.Next.Name,
		Parameters: a.Next.Spec.InstallParameters, Sensitive: params.GivenSensitive(a.Next.Spec.Parameters, a.Next.Spec.InstallParameters),
		Started: metav1.NewMicroTime(a.Clock.Now()),
	}
	taken := new(history.TakenError)
	if err := a.History.RecordStart(ctx, a.Next, revision, run); errors.As(err, &taken) {
		a.reportRecordTaken(taken)
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := a.History.Trim(ctx, a.Next, revision, ""); err != nil {
		return false, err
	}
	if old := status.PlanStatus[plan]; old.Revision != 0 {
		if err := a.History.RecordOutcome(ctx, a.Next, old); err != nil {
			return false, err
		}
	}
	if status.PlanStatus == nil {
		status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	if running := plans.Running(status.PlanStatus); running != "" {
		old := status.PlanStatus[running]
		a.countRun(running, old, metrics.OutcomeSuperseded)
		plans.Fail(&old, fmt.Sprintf("given up: spec.installPlan is %s now", plan), a.Clock.Now())
		status.PlanStatus[running] = old // that of the same plan is set below
	}
	status.Revision, status.InputsHash, status.InstallationUID = revision, a.ring.Digest(runInputs(a.Next)...), a.installation.UID
	status.PlanStatus[plan] = plans.Start(plan, a.Next.Spec.Plans[plan], run.UID, revision, a.Clock.Now())
	a.begun.Store(client.ObjectKeyFromObject(a.Next), proof{run.UID, a.ring.Current(), cause})
	if err := a.Commit(ctx); err != nil {
		return false, err
	}
	return true, nil
}

func (a *action) announceStart(cause string) {
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanStarted, "Execution of install plan %s started (%s)", a.Next.Spec.InstallPlan,
		cause)
}

func (a *action) buildRun(plan string) error {
	version, err := a.Versions.ForObject(a.Next)
	if err != nil {
		return err
	}
	policy := share.Policy{}
	if given := a.Next.Spec.InstallPolicy; given != nil {
		policy.SameOperator = given.SharedUpdates == v1beta1.SameOperatorUpdates
	}
	a.run = &runner.Run{
		Subject: runner.Subject{Kind: "OperatorVersion", Namespace: a.Next.Namespace, Name: a.Next.Name, UID: a.Next.UID},
		Source:  a.Next.Namespace + "/" + a.Next.Name, Version: version, Plan: plan, UID: a.Next.Status.PlanStatus[plan].UID,
		Parameters: a.Next.Spec.InstallParameters, Sensitive: params.GivenSensitive(a.Next.Spec.Parameters, a.Next.Spec.InstallParameters),
		Account: a.Installer, Installation: a.installation, Policy: policy, Held: a.inventory, Keys: a.ring,
	}
	return nil
}
