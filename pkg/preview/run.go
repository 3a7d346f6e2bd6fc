package preview

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// follow previews the run that a decision starts, and leaves the Instance as the run would.
func (c *computation) follow(ctx context.Context, decision trigger.Decision) error {
	start := decision.Start
	run := c.newRun(start, c.runValues(decision.Deferred))
	usage := usageBefore(ctx, c, run)
	st, err := c.execute(ctx, run, c.inventory)
	if err != nil {
		return err
	}
	if st.Status == v1beta1.Complete && start.Upgrade {
		if err := c.prune(ctx, run); err != nil {
			return err
		}
	}
	c.out.Runs[len(c.out.Runs)-1].Capacity = c.capacityOf(ctx, usage)
	c.finish(decision, st)
	return nil
}

// execute previews a run, which changes the inventory as it would.
func (c *computation) execute(ctx context.Context, run *runner.Run, inventory runner.Inventory) (v1beta1.PlanStatus, error) {
	plan := run.Version.Spec.Plans[run.Plan]
	st := plans.Start(run.Plan, plan, run.UID, 0, c.Clock.Now())
	out := Run{Plan: run.Plan, Cause: c.mask.Text(run.Cause)}
	for _, phase := range plan.Phases {
		out.Steps += len(phase.Steps)
	}
	if run.Installation != nil {
		out.Of = "OperatorVersion " + run.Source
	}
	c.out.Runs, c.run = append(c.out.Runs, out), run
	if _, err := c.runner.Execute(ctx, run, inventory, &st, c.Clock, recorder{c, inventory}); err != nil {
		return st, err
	}
	switch {
	case ctx.Err() != nil:
		return st, ctx.Err()
	case st.Status == v1beta1.FatalError:
		c.out.Runs[len(c.out.Runs)-1].Failure = &Failure{Step: failedStep(st), Message: c.mask.Text(st.Message)}
	case st.Status != v1beta1.Complete:
		c.unknown("plan %s would not end: %s", run.Plan, st.Message)
	}
	return st, nil
}

// newRun returns the run of a request, as the controller would start it.
func (c *computation) newRun(start *trigger.Request, values map[string]string) *runner.Run {
	i := c.instance
	uid := i.UID
	if uid == "" {
		uid = "00000000-0000-0000-0000-000000000000" // it is not created yet
	}
	account, privileged := c.runAccount(i)
	return &runner.Run{
		Subject: runner.Subject{Kind: "Instance", Namespace: i.Namespace, Name: i.Name, UID: uid, Annotations: i.Annotations,
			Owners: i.OwnerReferences},
		Source: i.OperatorVersionKey().String(), Version: c.version, Plan: start.Plan, Cause: start.Cause, UID: "preview",
		Parameters: values, Sensitive: c.sensitive, Upgrade: start.Upgrade, From: i.CompletedVersion(),
		Suspend: i.Spec.Suspend && plans.AppliesSpec(start.Plan),
		Account: account, Privileged: privileged,
		Keys: c.keys, Instances: c.Client,
	}
}

// failedStep names the step of a run that has failed, as `phase/step`; empty if none has.
func failedStep(st v1beta1.PlanStatus) string {
	for _, phase := range st.Phases {
		for _, step := range phase.Steps {
			if step.Status == v1beta1.FatalError {
				return plans.StepKey(phase.Name, step.Name)
			}
		}
	}
	return ""
}

// finish leaves the Instance as the end of a run would.
func (c *computation) finish(decision trigger.Decision, st v1beta1.PlanStatus) {
	status := &c.instance.Status
	if status.PlanStatus == nil {
		status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	if !st.Status.IsTerminal() {
		st.Status = v1beta1.Complete
	}
	status.PlanStatus[st.Name] = st
	status.Queue, status.Baseline = decision.Queue, decision.Baseline
	if st.Status == v1beta1.Complete {
		plans.CompleteVersion(status.Baseline, st.Name, c.version.Spec)
	}
}

// prune previews what happens to objects that the new version does not name.
func (c *computation) prune(ctx context.Context, run *runner.Run) error {
	left, err := runner.AbandonedObjects(run, c.inventory)
	if err != nil {
		c.warn("objects of the old version would stay, since the objects of the new version cannot be determined: %s", err)
		return nil
	}
	for _, id := range left {
		t := c.at(id, "")
		kept, err := c.runner.Prune(ctx, run, c.inventory, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			t.unknown = err.Error()
		default:
			t.kept = kept
		}
		delete(c.inventory, id)
	}
	return nil
}

// recorder takes what the tasks of a run do.
type recorder struct {
	*computation
	inventory runner.Inventory
}

// RecordIntent implements runner.ProgressRecorder: nothing is committed.
func (r recorder) RecordIntent(_ context.Context, _ v1beta1.PlanStatus, intent runner.Intent) error {
	for _, id := range intent.Objects {
		if _, known := r.inventory[id]; !known {
			r.inventory[id] = apply.Record{}
		}
	}
	return nil
}

// RecordEffects implements runner.ProgressRecorder.
func (r recorder) RecordEffects(effects runner.Effects) {
	for _, change := range effects.Written {
		r.inventory[change.ID] = change.Record
	}
	for _, id := range effects.Deleted {
		delete(r.inventory, id)
	}
	plan := r.run.Plan
	for _, event := range effects.Events { // the event of a run that exceeds a quota says that it was started
		r.warn("%s", strings.Replace(event[1], "Plan "+plan+" was started, and needs", "plan "+plan+" would need", 1))
	}
}

// judge notes what a task does, and regards as done what only has to be awaited.
//
//	done                                             done
//	waiting                                          done: what is awaited comes about once it is really written
//	waits for ever                                   fatal
//	failed, and all that failed is not known here    done
//	refused, since kinds come with the same run      done
//	failed for a transient reason                    fatal: the plan would retry until the reason has passed
//	failed with a fatal error                        fatal
func (c *computation) judge(w *runner.PreparedTask, outcome plans.Outcome, effects runner.Effects) plans.Outcome {
	place, step := c.place(w), doer{c.run, w.Place.Phase, w.Place.Step}
	for _, change := range effects.Written {
		t := c.at(change.ID, place)
		t.shared = c.run.Installation != nil
		t.sameHash, t.uncertain = c.settleHash(change.ID)
		t.written = append(t.written, step)
		t.compete()
	}
	for _, id := range effects.Deleted {
		t := c.at(id, place)
		t.deleted = append(t.deleted, step)
		t.compete()
	}
	for _, artifact := range w.Artifacts() {
		t := c.at(apply.IDOf(artifact), place)
		t.unknown = fmt.Sprintf("its content is made by the pod of task %s", w.Name)
		c.inventory[apply.IDOf(artifact)] = apply.Record{}
	}
	if needs := w.Needs(); needs != "" && outcome.State == plans.Waiting && len(effects.Written)+len(effects.Failed) == 0 {
		c.unknown("what task %s would write, which waits: %s", w.Name, needs)
	} else if needs != "" {
		c.warn("%s", needs)
	}
	if outcome.State == plans.Waiting && len(effects.Written)+len(effects.Failed) == 0 && !w.NeverCompletes() {
		c.warn("task %s would wait: %s", w.Name, outcome.Message)
	}
	refused := c.noteFailures(effects.Failed, place)
	c.blame(w, effects.Failed, c.changedParameters())
	done := plans.Outcome{State: plans.Done, Ready: outcome.Ready, Total: outcome.Total}
	switch {
	case outcome.State == plans.Waiting && w.NeverCompletes():
		outcome.State = plans.Fatal
		return outcome
	case outcome.State == plans.Done, outcome.State == plans.Waiting:
		return done
	case len(effects.Failed) > 0 && !refused:
		c.noteRest(w, place)
		return done
	case len(effects.Failed) == 0 && c.noteNewKinds(w, place, c.run.Subject.Namespace):
		return done
	case outcome.State == plans.Transient && len(effects.Failed) == 0:
		c.unknown("task %s could not be previewed: %s", w.Name, outcome.Message)
		return done
	}
	outcome.State = plans.Fatal
	return outcome
}

// place names the place of a task, as `plan/phase/step/task`.
func (c *computation) place(w *runner.PreparedTask) string {
	phase := c.run.Version.Spec.Plans[c.run.Plan].Phases[w.Place.Phase]
	return strings.Join([]string{c.run.Plan, phase.Name, phase.Steps[w.Place.Step].Name, w.Name}, "/")
}

// isUnanswered reports whether an error says that the API server did not answer the question, such as a missing right or a timeout. For
// another user, or later, the answer may be that the write is admitted.
func isUnanswered(err error) bool {
	return apierror.IsRightMissing(err) || strings.Contains(err.Error(), "does not support dry run") || isLate(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// ErrLate is the error of a request that was not answered before the time of the preview was over.
var ErrLate = errors.New("the time of the preview is over")

func isLate(err error) bool { return errors.Is(err, ErrLate) }
