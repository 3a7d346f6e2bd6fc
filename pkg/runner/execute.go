package runner

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
)

// ProgressRecorder connects an execution to the object whose plan runs.
type ProgressRecorder interface {
	// RecordIntent commits the run and the objects that it is about to write. Nothing is written before it returns.
	RecordIntent(ctx context.Context, st v1beta1.PlanStatus, intent Intent) error
	// RecordEffects takes what a task did.
	RecordEffects(effects Effects)
}

// Intent is what an execution is about to do.
type Intent struct {
	// Objects are about to be written.
	Objects []apply.ID
	// Next returns objects that the steps behind these may write at once, as far as their names are known. It renders templates.
	Next func() []apply.ID
	// Done is set if something was done since the last intent that must not be done twice, or that what comes next would undo.
	Done bool
}

// ExecutionResult is the result of an execution.
type ExecutionResult struct {
	// Transient is set if a task failed that may succeed at the next attempt, or if the health of an object may change without an event.
	Transient bool
	// OnlyEndlessLeft is set if nothing is left but tasks that are never done.
	OnlyEndlessLeft bool
	// Ended is set if the namespace terminates.
	Ended bool
	// Lasting is set if a task was done since the last intent that must not be done twice, or whose objects have uids that must not be lost.
	Lasting bool
	// NextSearch is when the cause of what a task waits for is to be looked for; zero if no task waits.
	NextSearch time.Time
}

// scheduleSearch notes a time at which a search is due; the earliest counts.
func (r *ExecutionResult) scheduleSearch(due time.Time) {
	if !due.IsZero() && (r.NextSearch.IsZero() || due.Before(r.NextSearch)) {
		r.NextSearch = due
	}
}

// execution is one call of Execute.
type execution struct {
	runner    *Runner
	run       *Run
	inventory Inventory
	plan      v1beta1.Plan
	st        *v1beta1.PlanStatus
	clock     clock.PassiveClock
	hooks     ProgressRecorder
	result    ExecutionResult
	// tried are the places whose tasks were done.
	tried map[plans.Place]bool
	// next is the budget of the renderings for Intent.Next.
	next *render.Budget
	// completed is set if any task was done since the last commit with done set.
	completed bool
}

// Execute does the tasks of a run that are ready, each once in this call, until no other one is ready.
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
	e := &execution{runner: r, run: run, inventory: inventory, plan: plan, st: st, clock: clock, hooks: hooks,
		result: ExecutionResult{OnlyEndlessLeft: true}, tried: map[plans.Place]bool{}, next: render.NewBudget(nextWork)}
	for !st.Status.IsTerminal() {
		batch := r.batch(ctx, run, inventory, *st, e.tried)
		if len(batch) == 0 {
			break
		}
		if err := e.recordIntent(ctx, batch); err != nil {
			return e.result, err
		}
		e.doBatch(ctx, batch)
	}
	return e.result, nil
}

// recordIntent commits the run before the tasks of a batch write.
func (e *execution) recordIntent(ctx context.Context, batch []*PreparedTask) error {
	// A Job that was deleted before it was recorded as done would run again.
	done := e.result.Lasting || e.completed && slices.ContainsFunc(batch, func(w *PreparedTask) bool { return w.outcome == nil && w.deletes })
	sayNeeds(e.plan, e.st, batch, e.clock.Now())
	if err := e.hooks.RecordIntent(ctx, *e.st, Intent{Objects: objectsToWrite(batch), Next: e.nextObjects, Done: done}); err != nil {
		return err
	}
	e.result.Lasting, e.completed = false, e.completed && !done
	return nil
}

// doBatch does the tasks of a batch in their order, until the plan ends.
func (e *execution) doBatch(ctx context.Context, batch []*PreparedTask) {
	wrote := false
	for _, work := range batch {
		if e.st.Status.IsTerminal() {
			return
		}
		if wrote && e.run.Installation == nil { // the pods of the next task may depend on what this one wrote
			work = e.runner.prepareAgain(ctx, e.run, e.inventory, work.Place)
		}
		effects := e.doTask(ctx, work)
		wrote = wrote || len(effects.Written)+len(effects.Deleted) > 0
	}
}

// doTask does a task, and records its outcome and its effects.
func (e *execution) doTask(ctx context.Context, work *PreparedTask) Effects {
	plans.MarkStepStarted(e.st, work.Place, e.clock.Now())
	work.started, work.now = e.st.Phases[work.Place.Phase].Steps[work.Place.Step].StartedTimestamp.Time, e.clock.Now()
	outcome, effects := e.runner.Do(ctx, e.run, work)
	e.result.scheduleSearch(e.runner.conclude(ctx, e.run, work, &outcome, effects, culpritAt(*e.st, work.Place)))
	e.run.maskResult(&outcome, effects.Events)
	kind := e.run.Version.Kinds[work.Name]
	e.runner.countError(kind, outcome)
	e.result.Lasting = e.result.Lasting || lasting(kind, outcome) || effects.hasNewClusterScoped(e.inventory)
	e.completed = e.completed || outcome.State == plans.Done
	e.result.OnlyEndlessLeft = e.result.OnlyEndlessLeft && (outcome.State == plans.Done || work.NeverCompletes())
	e.result.Transient = e.result.Transient || outcome.State == plans.Transient || effects.Recheck
	e.result.Ended = e.result.Ended || effects.NamespaceTerminating
	e.hooks.RecordEffects(effects)
	plans.Record(e.plan, e.st, work.Place, outcome, e.clock.Now())
	return effects
}

// conclude lets the Judge decide the outcome of a task if there is one, and otherwise adds the templates and parameters that made the task
// fail, and the culprit. It returns when the next search is due.
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

// lasting reports whether an outcome must be recorded before the next task: otherwise, a manager that is started again would repeat the
// task after the next one, and the task has an effect each time.
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
