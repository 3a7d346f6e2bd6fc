package runner

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
)

// ProgressRecorder connects an execution to the object whose plan runs.
type ProgressRecorder interface {
	// RecordIntent commits the run and the objects that it is about to write. Nothing is written before it returns. done is set
	// if something was done since the last call that must not be done twice, or that what comes next would undo.
	RecordIntent(ctx context.Context, st v1beta1.PlanStatus, ids []apply.ID, done bool) error
	// RecordEffects takes what a task did.
	RecordEffects(effects Effects)
}

// ExecutionResult is what came of an execution.
type ExecutionResult struct {
	// Transient is set if something failed that may succeed at the next attempt, or may be judged otherwise without an event.
	Transient bool
	// OnlyEndlessLeft is set if nothing is left but tasks that are never done.
	OnlyEndlessLeft bool
	// Ended is set if the namespace terminates.
	Ended bool
	// NextSearch is when the cause of what a task waits for is to be looked for; zero if no task waits.
	NextSearch time.Time
}

// scheduleSearch notes a time at which a search is due; the earliest counts.
func (r *ExecutionResult) scheduleSearch(due time.Time) {
	if !due.IsZero() && (r.NextSearch.IsZero() || due.Before(r.NextSearch)) {
		r.NextSearch = due
	}
}

// Execute goes through the plan of a run until nothing is ready that has not been tried in this call.
func (r *Runner) Execute(ctx context.Context, run *Run, inventory Inventory, st *v1beta1.PlanStatus, clock clock.PassiveClock,
	hooks ProgressRecorder) (ExecutionResult, error) {
	plan := run.Version.Spec.Plans[run.Plan]
	if !plans.Matches(plan, *st) {
		plans.AlignStatus(plan, st)
	}
	plans.Summarize(plan, st, clock.Now())
	run.begin(clock)
	defer func() { run.budget = nil }()
	r.warnOfQuotas(ctx, run, inventory, *st, hooks)
	// done and completed, since the last commit: what must not be done twice, and anything.
	tried, out, done, completed := map[plans.Place]bool{}, ExecutionResult{OnlyEndlessLeft: true}, false, false
	for !st.Status.IsTerminal() {
		batch := r.batch(ctx, run, inventory, *st, tried)
		if len(batch) == 0 {
			break
		}
		// A Job that was deleted before it was recorded as done would run again.
		done = done || completed && slices.ContainsFunc(batch, func(w *PreparedTask) bool { return w.outcome == nil && w.deletes })
		sayNeeds(plan, st, batch, clock.Now())
		if err := hooks.RecordIntent(ctx, *st, objectsToWrite(batch), done); err != nil {
			return out, err
		}
		completed = completed && !done
		wrote := false
		done = false
		for _, work := range batch {
			if st.Status.IsTerminal() {
				break
			}
			if wrote && run.Installation == nil { // what a task wrote may be what the pods of the next depend on
				work = r.prepareAgain(ctx, run, inventory, work.Place)
			}
			plans.MarkStepStarted(st, work.Place, clock.Now())
			work.started, work.now = st.Phases[work.Place.Phase].Steps[work.Place.Step].StartedTimestamp.Time, clock.Now()
			outcome, effects := r.Do(ctx, run, work)
			out.scheduleSearch(r.conclude(ctx, run, work, &outcome, effects, culpritAt(*st, work.Place)))
			run.maskResult(&outcome, effects.Events)
			r.countError(run.Version.Kinds[work.Name], outcome)
			done = done || lasting(run.Version.Kinds[work.Name], outcome)
			completed = completed || outcome.State == plans.Done
			out.OnlyEndlessLeft = out.OnlyEndlessLeft && (outcome.State == plans.Done || work.NeverCompletes())
			out.Transient = out.Transient || outcome.State == plans.Transient || effects.Recheck
			out.Ended = out.Ended || effects.NamespaceTerminating
			wrote = wrote || len(effects.Written)+len(effects.Deleted) > 0
			hooks.RecordEffects(effects)
			plans.Record(plan, st, work.Place, outcome, clock.Now())
		}
	}
	return out, nil
}

// conclude has the outcome of a task judged, or else adds what made it fail: templates and parameters, and the culprit. It returns when the
// next search is due.
func (r *Runner) conclude(ctx context.Context, run *Run, w *PreparedTask, outcome *plans.Outcome, effects Effects,
	before *v1beta1.Culprit) time.Time {
	if r.judge != nil {
		*outcome = r.judge(w, *outcome, effects)
		return time.Time{}
	}
	w.nameTemplates(outcome, effects)
	return r.explain(ctx, run, w, outcome, effects, before)
}

// culpritAt returns what was found of the task at a place before.
func culpritAt(st v1beta1.PlanStatus, at plans.Place) *v1beta1.Culprit {
	return st.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Culprit
}

// maskResult takes sensitive values out of what a task says.
func (run *Run) maskResult(outcome *plans.Outcome, events [][2]string) {
	outcome.Message = run.mask(outcome.Message)
	for i := range events {
		events[i][1] = run.mask(events[i][1])
	}
}

// prepareAgain prepares a task of a batch in which an earlier task has written.
func (r *Runner) prepareAgain(ctx context.Context, run *Run, inventory Inventory, at plans.Place) *PreparedTask {
	w := r.Prepare(ctx, run, inventory, at)
	r.checkDependencies(ctx, w)
	return w
}

// batch prepares what is ready and has not been tried. Of an install plan nothing is written if anything of the batch
// cannot be: a mismatch leaves nothing half installed.
func (r *Runner) batch(ctx context.Context, run *Run, inventory Inventory, st v1beta1.PlanStatus,
	tried map[plans.Place]bool) []*PreparedTask {
	var batch []*PreparedTask
	for _, at := range plans.Ready(run.Version.Spec.Plans[run.Plan], run.Version.Kinds, st) {
		if !tried[at] {
			tried[at] = true
			w := r.Prepare(ctx, run, inventory, at)
			run.depends.noteMade(w)
			batch = append(batch, w)
		}
	}
	run.depends.partial = slices.ContainsFunc(batch, func(w *PreparedTask) bool {
		return w.outcome != nil && w.outcome.State == plans.Transient && w.objects == nil
	})
	for _, w := range batch { // only now: a task may make what an earlier one depends on
		r.checkDependencies(ctx, w)
	}
	fatal := func(w *PreparedTask) bool { return w.outcome != nil && w.outcome.State == plans.Fatal }
	if run.Installation != nil && slices.ContainsFunc(batch, fatal) {
		return slices.DeleteFunc(batch, func(w *PreparedTask) bool { return !fatal(w) })
	}
	return batch
}

// sayNeeds puts what tasks miss into their messages, before their first write.
func sayNeeds(plan v1beta1.Plan, st *v1beta1.PlanStatus, batch []*PreparedTask, now time.Time) {
	for _, w := range batch {
		at := w.Place
		if w.needs != "" && st.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status == v1beta1.Pending {
			plans.Record(plan, st, at, plans.Outcome{State: plans.Waiting, Message: w.run.mask(w.needs)}, now)
		}
	}
}

// objectsToWrite are the objects that the work is about to write.
func objectsToWrite(batch []*PreparedTask) []apply.ID {
	var out []apply.ID
	for _, w := range batch {
		if w.outcome != nil || w.deletes {
			continue
		}
		for _, obj := range w.objects {
			out = append(out, apply.IDOf(obj))
		}
	}
	return out
}

// lasting reports whether an outcome must be recorded before anything else is done: a manager that dies would do again
// what has an effect each time, after what comes next.
func lasting(kind string, outcome plans.Outcome) bool {
	return outcome.State == plans.Done && plans.RunOnce(kind) && kind != v1beta1.DummyTask
}

// countError counts an outcome that is an error, by the kind of the task.
func (r *Runner) countError(kind string, outcome plans.Outcome) {
	if !operators.IsTaskKind(kind) {
		kind = metrics.Other
	}
	switch outcome.State {
	case plans.Transient:
		r.metrics.TaskError(kind, metrics.ClassTransient)
	case plans.Fatal:
		r.metrics.TaskError(kind, metrics.ClassFatal)
	}
}
