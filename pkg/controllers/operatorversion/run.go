package operatorversion

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// continueInstall continues with the run.
func (a *action) continueInstall(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	return a.executeRun(ctx)
}

// executeRun does the tasks of the install plan that are ready, and compares the held objects if the plan has ended.
func (a *action) executeRun(ctx context.Context) error {
	name := plans.Running(a.Next.Status.PlanStatus)
	st := a.Next.Status.PlanStatus[name]
	if lost, err := a.endUnrecordedRun(ctx, name, st); lost || err != nil {
		return err
	}
	if err := a.buildRun(name); err != nil {
		return err
	}
	done, err := a.Runner.Execute(ctx, a.run, nil, &st, a.Clock, &progressRecorder{a})
	if errors.Is(err, errRunHeld) {
		a.Next.Status.PlanStatus[name] = st
		a.result.RequeueAfter = 1
		return a.writeInventory(ctx)
	}
	if err != nil {
		return err
	}
	a.result.Transient = done.Transient && !st.Status.IsTerminal()
	a.Next.Status.PlanStatus[name] = st
	if err := a.writeInventory(ctx); err != nil {
		return a.Share.Session(a.installation, share.Policy{}, a.inventory).ReleaseOrphans(ctx, a.inventory, err)
	}
	if !st.Status.IsTerminal() {
		a.result.RequeueAfter = pollInterval
		return nil
	}
	a.reportFinished(name, st)
	return a.checkObjects(ctx)
}

// proof shows that a run was started: its uid, the id of the key that its record is sealed with, and its cause.
type proof struct {
	uid        types.UID
	key, cause string
}

// endUnrecordedRun ends a run that this manager has not started, and that has no record: the status alone is no proof that it was
// started.
func (a *action) endUnrecordedRun(ctx context.Context, name string, st v1beta1.PlanStatus) (bool, error) {
	key := client.ObjectKeyFromObject(a.Next)
	if known, found := a.begun.Load(key); found && known.(proof).uid == st.UID && a.ring.Has(known.(proof).key) {
		return false, nil
	}
	record, err := a.History.Read(ctx, a.Next, st.Revision)
	if err == nil && (record.Plan != name || record.UID != st.UID) {
		err = &history.UnusableError{Namespace: a.Next.Namespace, Name: history.NameFor(a.Next, st.Revision)}
	}
	switch {
	case err == nil:
		a.begun.Store(key, proof{st.UID, record.Key, record.Cause})
		return false, nil
	case !history.Unusable(err):
		return false, err
	}
	plans.Fail(&st, fmt.Sprintf("run %d of OperatorVersion %s/%s cannot continue: %s; "+
		"kubectl kudo plan retry --operator-version starts it anew", st.Revision, a.Next.Namespace, a.Next.Name, err), a.Clock.Now())
	a.Next.Status.PlanStatus[name] = st
	a.reportFinished(name, st)
	return true, nil
}

func (a *action) reportFinished(name string, st v1beta1.PlanStatus) {
	outcome := metrics.OutcomeFatal
	if st.Status == v1beta1.Complete {
		outcome = metrics.OutcomeComplete
	}
	a.countRun(name, st, outcome)
	if st.Status == v1beta1.FatalError {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventPlanFailed, "Install plan %s failed: %s", name, st.Message)
	}
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanFinished, "Execution of install plan %s finished with status %s", name,
		st.Status)
}

// countRun counts the end of a run once it is committed.
func (a *action) countRun(name string, st v1beta1.PlanStatus, outcome metrics.Outcome) {
	run := metrics.Run{Operator: a.Next.Spec.Operator.Name, Plan: name, Outcome: outcome, Cause: trigger.CauseClass("")}
	if known, found := a.begun.Load(client.ObjectKeyFromObject(a.Next)); found && known.(proof).uid == st.UID {
		run.Cause = trigger.CauseClass(known.(proof).cause)
	}
	if st.StartedTimestamp != nil {
		run.Duration = a.Clock.Since(st.StartedTimestamp.Time)
	}
	a.AfterCommit(func() { a.Metrics.End(run) })
}
