package runner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

func (r *Runner) prepareApply(ctx context.Context, run *Run, w *PreparedTask, resources []string, v render.Variables) *PreparedTask {
	made, err := run.render(resources, v)
	w.templates, w.effects.Events = made.templates, made.events
	if err != nil {
		return w.failed(err)
	}
	if err := r.pack(ctx, run, made.objects); err != nil {
		return w.failed(err)
	}
	return r.prepareObjects(ctx, w, made.objects, v)
}

// prepareObjects enhances objects and looks for what must not be written.
func (r *Runner) prepareObjects(ctx context.Context, w *PreparedTask, objs []*unstructured.Unstructured, v render.Variables) *PreparedTask {
	if len(objs) == 0 {
		return w.decide(plans.Done, "")
	}
	w.rendered = objs
	if err := w.writer.enhance(ctx, v, objs); err != nil {
		return w.failed(err)
	}
	if w.run.Installation == nil {
		if err := w.run.checkInstances(ctx, w.inventory, objs); err != nil {
			return w.failed(err)
		}
	}
	w.objects = objs
	r.mirror.Watch(ctx, kindsOf(objs)...)
	refused := w.writer.preflight(ctx, objs)
	if refused == nil {
		return w
	}
	w.effects.Failed = refused
	if err := refused.Err(); err != nil {
		return w.failed(err)
	}
	return w.decide(plans.Waiting, refused[0].Err.Error())
}

// apply writes the objects and judges their health.
//
//	any failure                          transient, or fatal
//	any object failed permanently           fatal
//	any object awaited or not ready      waiting, for the first of them
//	else                                 done
func (r *Runner) apply(ctx context.Context, w *PreparedTask) (plans.Outcome, Effects) {
	effects := w.effects
	changes := w.writer.apply(ctx, w.objects)
	effects.Readopted = w.describeReadopted(changes)
	sum := &taskHealth{task: w, outcome: plans.Outcome{State: plans.Done, Total: len(changes)}}
	for _, change := range changes {
		effects.addChange(change)
		switch {
		case change.Action == apply.Awaited:
			sum.await(change, change.Err.Error())
		case change.Err == nil && sum.failed == nil: // of the objects after one that has failed, only the writes count
			r.judgeObject(ctx, sum, change, &effects)
		}
	}
	if sum.failed != nil {
		return *sum.failed, effects
	}
	out := sum.outcome
	if sum.unknown && out.State == plans.Waiting {
		out.State = plans.Transient
	}
	if err := changes.Err(); err != nil {
		w.suspect = nil // what could not be written counts
		f := (&PreparedTask{run: w.run, effects: effects}).failed(err)
		f.outcome.Ready, f.outcome.Total = out.Ready, out.Total
		return *f.outcome, f.effects
	}
	return out, effects
}

// addChange adds what has become of an object: that it was written, the fields that were dropped from it, and that it could not be
// written.
func (e *Effects) addChange(change apply.Change) {
	if change.Record.UID != "" {
		e.Written = append(e.Written, change)
	}
	for _, dropped := range change.Dropped {
		e.Events = append(e.Events, [2]string{v1beta1.EventFieldDropped,
			fmt.Sprintf("%s: %s: correct the package's template", change.ID, dropped)})
	}
	if change.Err != nil && change.Action != apply.Awaited {
		e.Failed = append(e.Failed, change)
	}
}

// taskHealth sums up the health of the objects of a task.
type taskHealth struct {
	task    *PreparedTask
	outcome plans.Outcome
	// failed is the outcome if an object has failed permanently; nil if none has.
	failed *plans.Outcome
	// unknown is set if the health of at least one object is unknown.
	unknown bool
}

// await notes that an object is not ready. The message of the first such object is that of the task.
func (h *taskHealth) await(change apply.Change, message string) {
	if h.outcome.State == plans.Done {
		h.outcome.State, h.outcome.Message = plans.Waiting, message
		h.task.suspect = &suspect{change.ID, change.Live, change.Err}
	}
}

// fail notes that an object has failed permanently.
func (h *taskHealth) fail(change apply.Change, message string) {
	h.failed = &plans.Outcome{State: plans.Fatal, Message: fmt.Sprintf("%s: %s", change.ID, message), Ready: h.outcome.Ready,
		Total: h.outcome.Total}
	h.task.suspect = &suspect{id: change.ID, live: change.Live}
}

// judgeObject adds the health of an object that was written to that of its task.
func (r *Runner) judgeObject(ctx context.Context, h *taskHealth, change apply.Change, effects *Effects) {
	result, unknown := r.observeHealth(ctx, h.task, change, effects)
	h.unknown = h.unknown || unknown != nil
	switch result.State {
	case health.Ready:
		h.outcome.Ready++
	case health.Failed:
		h.fail(change, result.Message)
	default:
		remark := ""
		if h.outcome.State == plans.Done {
			remark = r.remark(ctx, h.task, change.ID)
		}
		h.await(change, fmt.Sprintf("%s: %s%s", change.ID, remark, result.Message))
	}
}

// observeHealth returns the health of an object for a task. A failure, or a status, from before the last write does not count. An error
// says that the health is unknown. observeHealth sets Recheck of the effects if a failure does not count now, and may count later.
func (r *Runner) observeHealth(ctx context.Context, w *PreparedTask, change apply.Change, effects *Effects) (health.Result, error) {
	result, unknown := r.Health(ctx, change.Live)
	if result.External {
		judged := w.currentFailure(change, result)
		effects.Recheck = effects.Recheck || judged.State != result.State
		result = judged
	}
	if w.staleStatus != nil && result.State != health.Progressing {
		if message := w.staleStatus(change.Live); message != "" {
			result = health.Result{State: health.Progressing, Message: message}
		}
	}
	return result, unknown
}

// An event names at most maxReadopted of the objects that were taken over again, in at most maxReadoptedText bytes.
const (
	maxReadopted     = 10
	maxReadoptedText = 1000
)

// describeReadopted names the objects that a task has taken over again; empty if it has taken over none.
func (w *PreparedTask) describeReadopted(changes apply.ChangeSet) string {
	names := changes.Readopted()
	if len(names) == 0 {
		return ""
	}
	message := fmt.Sprintf("Plan %s took over again what was kept: %s", w.run.Plan, text.List(names, maxReadopted))
	return text.Truncate(w.run.mask(message), maxReadoptedText)
}

func kindsOf(objs []*unstructured.Unstructured) []schema.GroupVersionKind {
	seen := map[schema.GroupVersionKind]bool{}
	var out []schema.GroupVersionKind
	for _, obj := range objs {
		if gvk := obj.GroupVersionKind(); !seen[gvk] {
			seen[gvk] = true
			out = append(out, gvk)
		}
	}
	return out
}
