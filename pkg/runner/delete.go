package runner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// prepareDelete renders the objects to delete. Only their names matter; unknown kinds are nothing to do.
func (r *Runner) prepareDelete(run *Run, w *PreparedTask, resources []string, v render.Variables) *PreparedTask {
	made, err := run.render(resources, v)
	if err != nil {
		return w.failed(err)
	}
	definitions := apply.Definitions(made.objects)
	for _, obj := range made.objects {
		gvk := obj.GroupVersionKind()
		served, err := r.kinds.Served(gvk)
		if err != nil {
			return w.failed(fmt.Errorf("%s: %w", apply.IDOf(obj), err))
		}
		if !served {
			continue
		}
		namespaced, err := r.kinds.Namespaced(gvk.GroupKind(), definitions)
		switch {
		case err != nil:
			return w.failed(err)
		case !namespaced:
			obj.SetNamespace("")
		case run.Installation == nil || obj.GetNamespace() == "":
			obj.SetNamespace(run.Subject.Namespace)
		}
		w.objects = append(w.objects, obj)
	}
	w.deletes = true
	return w
}

func (r *Runner) delete(ctx context.Context, w *PreparedTask) (plans.Outcome, Effects) {
	effects := w.effects
	out := plans.Outcome{State: plans.Done, Total: len(w.objects)}
	var first error
	for _, removal := range w.writer.remove(ctx, w.objects) {
		switch {
		case removal.Err != nil:
			if first == nil || apply.IsFatal(removal.Err) && !apply.IsFatal(first) {
				first = removal.Err
			}
		case removal.ForeignOwner != "":
			effects.Events = append(effects.Events, [2]string{v1beta1.EventForeignObjectKept,
				fmt.Sprintf("%s belongs to %s: task %s did not delete it", removal.ID, removal.ForeignOwner, w.Name)})
			out.Ready++
		case removal.KeepAnnotated:
			effects.Events = append(effects.Events, [2]string{v1beta1.EventResourceKept,
				fmt.Sprintf("%s is annotated to be kept: task %s did not delete it", removal.ID, w.Name)})
			out.Ready++
		case removal.Done:
			effects.Deleted = append(effects.Deleted, removal.ID)
			out.Ready++
		default:
			if out.State == plans.Done {
				out.State, out.Message = plans.Waiting, removal.Waiting+r.held(ctx, removal.ID)
			}
		}
	}
	if first != nil {
		f := (&PreparedTask{run: w.run, effects: effects}).failed(first)
		f.outcome.Ready, f.outcome.Total = out.Ready, out.Total
		return *f.outcome, f.effects
	}
	if out.State == plans.Done && w.deleteLast != nil {
		return r.delete(ctx, &PreparedTask{Name: w.Name, run: w.run, writer: w.writer, objects: w.deleteLast, effects: effects})
	}
	return out, effects
}

// held says what holds an Instance that is being deleted, if its cleanup plan has failed; empty else.
func (r *Runner) held(ctx context.Context, id apply.ID) string {
	if !isInstance(id.GroupVersionKind) {
		return ""
	}
	live, err := r.engine.Live(ctx, id)
	if err != nil || live == nil {
		return ""
	}
	st, _, _ := unstructured.NestedMap(live.Object, "status", "planStatus", v1beta1.CleanupPlan)
	if st["status"] != string(v1beta1.FatalError) {
		return ""
	}
	return fmt.Sprintf(": its plan %s failed: %v. Remove the cause, then retry: kubectl kudo plan retry --instance %s -n %s",
		v1beta1.CleanupPlan, st["message"], id.Name, id.Namespace)
}
