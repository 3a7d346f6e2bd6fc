package runner

import (
	"context"
	"slices"

	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// Hooks connect an execution to the object whose plan runs.
type Hooks interface {
	// Intend commits the run and the objects that it is about to write. Nothing is written before it returns. It is told
	// whether something was done since the last time that must not be done twice.
	Intend(ctx context.Context, st v1beta1.PlanStatus, ids []apply.ID, done bool) error
	// Take takes what a task did.
	Take(effects Effects)
}

// Progress is what came of an execution.
type Progress struct {
	// Transient is set if something failed that may pass.
	Transient bool
	// Never is set if nothing is left but tasks that are never done.
	Never bool
	// Ended is set if the namespace is going.
	Ended bool
}

// Execute goes through the plan of a run until nothing is ready that has not been tried in this pass.
func (r *Runner) Execute(ctx context.Context, run *Run, inventory Inventory, st *v1beta1.PlanStatus, clock clock.PassiveClock, hooks Hooks) (Progress, error) {
	plan := run.Version.Spec.Plans[run.Plan]
	if !plans.Fits(plan, *st) {
		plans.Fit(plan, st)
	}
	plans.Summarise(plan, st, clock.Now())
	tried, out, done := map[plans.Place]bool{}, Progress{Never: true}, false
	for !st.Status.IsTerminal() {
		batch := r.batch(ctx, run, inventory, *st, tried)
		if len(batch) == 0 {
			break
		}
		if err := hooks.Intend(ctx, *st, intents(batch), done); err != nil {
			return out, err
		}
		wrote := false
		done = false
		for _, work := range batch {
			if st.Status.IsTerminal() {
				break
			}
			if wrote && run.Holder == nil { // what a task wrote may be what the pods of the next depend on
				work = r.Prepare(ctx, run, inventory, work.Place)
			}
			plans.Enter(st, work.Place, clock.Now())
			outcome, effects := r.Do(ctx, run, work)
			outcome.Message = run.mask(outcome.Message)
			for i := range effects.Events {
				effects.Events[i][1] = run.mask(effects.Events[i][1])
			}
			done = done || lasting(run.Version.Kinds[work.Name], outcome)
			out.Never = out.Never && (outcome.State == plans.Done || work.Never())
			out.Transient = out.Transient || outcome.State == plans.Transient
			out.Ended = out.Ended || effects.Ended
			wrote = wrote || len(effects.Written)+len(effects.Gone) > 0
			hooks.Take(effects)
			plans.Record(plan, st, work.Place, outcome, clock.Now())
		}
	}
	return out, nil
}

// batch prepares what is ready and has not been tried. Of an install plan nothing is written if anything of the batch
// cannot be: a mismatch leaves nothing half installed.
func (r *Runner) batch(ctx context.Context, run *Run, inventory Inventory, st v1beta1.PlanStatus, tried map[plans.Place]bool) []*Work {
	var batch []*Work
	for _, at := range plans.Ready(run.Version.Spec.Plans[run.Plan], run.Version.Kinds, st) {
		if !tried[at] {
			tried[at] = true
			batch = append(batch, r.Prepare(ctx, run, inventory, at))
		}
	}
	fatal := func(w *Work) bool { return w.outcome != nil && w.outcome.State == plans.Fatal }
	if run.Holder != nil && slices.ContainsFunc(batch, fatal) {
		return slices.DeleteFunc(batch, func(w *Work) bool { return !fatal(w) })
	}
	return batch
}

// intents are the objects that the work is about to write.
func intents(batch []*Work) []apply.ID {
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

// lasting tells whether an outcome must be written down before anything else is done: a manager that dies would do again
// what has an effect each time, after what comes next.
func lasting(kind string, outcome plans.Outcome) bool {
	return outcome.State == plans.Done && plans.RunOnce(kind) && kind != v1beta1.DummyTask
}
