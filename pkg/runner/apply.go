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
		if err := r.checkInstances(ctx, w.run, w.inventory, objs); err != nil {
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
	out := plans.Outcome{State: plans.Done, Total: len(changes)}
	unknownHealth := false // the health of at least one object is unknown
	effects.Readopted = w.describeReadopted(changes)
	var failed *plans.Outcome
	wait := func(change apply.Change, message string) {
		if out.State == plans.Done {
			out.State, out.Message, w.suspect = plans.Waiting, message, &suspect{change.ID, change.Live, change.Err}
		}
	}
	for _, change := range changes {
		if change.Record.UID != "" {
			effects.Written = append(effects.Written, change)
		}
		for _, dropped := range change.Dropped {
			effects.Events = append(effects.Events, [2]string{v1beta1.EventFieldDropped,
				fmt.Sprintf("%s: %s: correct the package's template", change.ID, dropped)})
		}
		if change.Action == apply.Awaited {
			wait(change, change.Err.Error())
			continue
		}
		if change.Err != nil {
			effects.Failed = append(effects.Failed, change)
			continue
		}
		if failed != nil { // what was written counts, whatever has failed before it
			continue
		}
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
		unknownHealth = unknownHealth || unknown != nil
		switch result.State {
		case health.Ready:
			out.Ready++
		case health.Failed:
			failed = &plans.Outcome{State: plans.Fatal, Message: fmt.Sprintf("%s: %s", change.ID, result.Message), Ready: out.Ready,
				Total: out.Total}
			w.suspect = &suspect{id: change.ID, live: change.Live}
		default:
			remark := ""
			if out.State == plans.Done {
				remark = r.remark(ctx, w, change.ID)
			}
			wait(change, fmt.Sprintf("%s: %s%s", change.ID, remark, result.Message))
		}
	}
	if failed != nil {
		return *failed, effects
	}
	if unknownHealth && out.State == plans.Waiting {
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
