package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// execution is the run of the Instance that is started, resumed or ended.
type execution struct {
	*scope
	schedules *scheduler
	// run is the run that is in progress; nil while idle.
	run *runner.Run
	// runRefusal says why PackagePolicies refuse the content of the run; empty if they do not.
	runRefusal string
	// lasting is set if a task of this reconcile has left something that must be committed at once.
	lasting bool
	// nextDeadline is when the next deadline of the run passes; zero if none does.
	nextDeadline time.Time
	// nextSearch is when the next search for the cause of what the run waits for is due; zero if it waits for nothing.
	nextSearch time.Time
}

// continueRun continues the run, and checks the objects if it has ended. A run wins over a spec that cannot be acted upon, which is
// warned of once; that spec does not count as observed until the end of the run, so that the end is not taken for the answer to it.
func (a *action) continueRun(ctx context.Context) error {
	name, st := a.activePlan()
	if a.blocked != nil {
		a.Next.Status.ObservedGeneration = a.Committed.Status.ObservedGeneration
	}
	if err := a.resumeRun(ctx, name, st); err != nil {
		return err
	}
	if a.blocked != nil {
		a.warnInRun(a.blocked.event, a.blocked.message)
	}
	if ended, err := a.executeRun(ctx); ended || err != nil {
		return err
	}
	return a.checkObjects(ctx)
}

// executeRun does the tasks of the plan that are ready, each once in this reconcile. The objects that a step is about to write are
// committed to the inventory before its first write. executeRun reports whether the Instance was released, since its namespace is
// terminating.
func (a *action) executeRun(ctx context.Context) (bool, error) {
	a.Summarize = a.summarize
	name, st := a.activePlan()
	if name == "" {
		return false, nil
	}
	if err := a.resumeRun(ctx, name, st); err != nil || a.run == nil {
		return false, err
	}
	if held, err := a.isRunHeld(ctx, name, st); err != nil {
		return false, err
	} else if held {
		return a.releaseIfTerminating(ctx)
	}
	inventory := a.readInventory()
	recorder := &progressRecorder{execution: a.execution, plan: name, inventory: inventory}
	done, err := a.Runner.Execute(ctx, a.run, inventory, &st, a.Clock, recorder)
	if errors.Is(err, errRunHeld) {
		a.setPlanStatus(name, st)
		a.writeInventory(inventory)
		a.result.RequeueAfter = 1
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.result.Transient, a.nextSearch, a.lasting = a.result.Transient || done.Transient, done.NextSearch, done.Lasting
	if done.Ended && a.deleted {
		return true, a.releaseInstance(ctx)
	}
	if done.OnlyEndlessLeft && !st.Status.IsTerminal() && len(a.Next.Status.Queue) > 0 {
		next := a.Next.Status.Queue[0]
		plans.Fail(&st, fmt.Sprintf("ended, since it is never done and plan %s waits for it", next.PlanName), a.Clock.Now())
		if trigger.IsScheduled(next.Cause) { // no user has asked for the end
			st.Counted = &v1beta1.CountedRun{}
		}
	}
	a.writeInventory(inventory)
	if a.enforceDeadlines(ctx, name, &st) {
		return false, nil
	}
	return false, a.finishIfEnded(ctx, name, st, inventory)
}

// releaseIfTerminating releases an Instance whose cleanup plan is held, and whose namespace terminates. It reports whether it did.
func (a *action) releaseIfTerminating(ctx context.Context) (bool, error) {
	if !a.deleted {
		return false, nil
	}
	terminating, err := a.IsNamespaceTerminating(ctx)
	if err != nil || !terminating {
		return false, err
	}
	return true, a.releaseInstance(ctx)
}

// finishIfEnded acts on the end of a run, if it has come.
func (a *action) finishIfEnded(ctx context.Context, name string, st v1beta1.PlanStatus, inventory runner.Inventory) error {
	if !st.Status.IsTerminal() {
		a.setPlanStatus(name, st)
		a.result.RequeueAfter = loop.RecheckInterval
		a.holdProgress(name)
		return nil
	}
	a.result.Transient = false
	if st.Status == v1beta1.Complete && a.run.Upgrade {
		if err := a.pruneAbandoned(ctx, inventory); err != nil {
			return err
		}
		if err := a.crds.releaseDropped(ctx); err != nil {
			return err
		}
	}
	a.finishRun(name, st)
	return nil
}

// finishRun puts the end of a run into the status. What comes next is decided upon in the next reconcile: a plan of the queue, or
// what spec has asked for meanwhile.
func (e *execution) finishRun(name string, st v1beta1.PlanStatus) {
	outcome := metrics.OutcomeFatal
	if st.Status == v1beta1.Complete {
		outcome = metrics.OutcomeComplete
	}
	e.endRun(name, st, outcome)
}

// endRun is finishRun with an outcome that does not follow from the status alone.
func (e *execution) endRun(name string, st v1beta1.PlanStatus, outcome metrics.Outcome) {
	e.countRun(name, st, outcome)
	e.Next.Status.PlanStatus[name] = st
	if st.Status == v1beta1.Complete && e.run != nil && e.run.Version != nil {
		plans.CompleteVersion(e.Next.Status.Baseline, name, e.run.Version.Spec)
	}
	e.endSchedules(name, st)
	e.schedules.observe() // who reads that deploy is complete reads when its schedules are due
	e.runs.Delete(client.ObjectKeyFromObject(e.Next))
	e.run, e.result.RequeueAfter = nil, 1
	if st.Status == v1beta1.FatalError {
		e.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventPlanFailed, "Plan %s failed: %s", name, st.Message)
	}
	// The text is KUDO's, to the letter: tests assert it.
	e.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventPlanFinished, "Execution of plan %s finished with status %s", name, st.Status)
}

// countRun counts the end of a run once it is committed.
func (e *execution) countRun(name string, st v1beta1.PlanStatus, outcome metrics.Outcome) {
	run := metrics.Run{Plan: name, Outcome: outcome, Operator: e.operatorName(), Cause: trigger.CauseClass("")}
	if known := e.findActiveRun(name, st); known != nil {
		run.Cause = trigger.CauseClass(known.run.Cause)
	}
	if st.StartedTimestamp != nil {
		run.Duration = e.Clock.Since(st.StartedTimestamp.Time)
	}
	e.AfterCommit(func() { e.Metrics.End(run) })
}

// operatorName is the name of the package of the Instance, as its OperatorVersion has it; empty if that is not known.
func (e *execution) operatorName() string {
	switch {
	case e.run != nil && e.run.Version != nil:
		return e.run.Version.Spec.Operator.Name
	case e.content != nil:
		return e.content.Spec.Operator.Name
	}
	return ""
}
