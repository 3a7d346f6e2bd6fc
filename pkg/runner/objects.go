package runner

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// Objects renders all objects that an install plan names, and returns them with the changes of those that do not match. It writes nothing.
func (r *Runner) Objects(ctx context.Context, run *Run) ([]*unstructured.Unstructured, apply.ChangeSet, error) {
	var objs []*unstructured.Unstructured
	var refused apply.ChangeSet
	for i, phase := range run.Version.Spec.Plans[run.Plan].Phases {
		for j, step := range phase.Steps {
			for k := range step.Tasks {
				w := r.Prepare(ctx, run, nil, plans.Place{Phase: i, Step: j, Task: k})
				if o := w.outcome; o != nil && len(w.effects.Failed) == 0 && (o.State == plans.Fatal || o.State == plans.Transient) {
					return nil, nil, errors.New(o.Message)
				}
				refused = append(refused, w.effects.Failed...)
				if !w.deletes {
					objs = append(objs, w.objects...)
				}
				objs = append(objs, w.Artifacts()...)
			}
		}
	}
	return objs, refused, nil
}

// Rendered are the objects that a task would apply, also where it is refused before any is written.
func (w *PreparedTask) Rendered() []*unstructured.Unstructured { return w.rendered }

// Artifacts name what a Pipe task makes, without its content.
func (w *PreparedTask) Artifacts() []*unstructured.Unstructured {
	if w.piping == nil {
		return nil
	}
	var out []*unstructured.Unstructured
	for i, pipe := range w.piping.pipes {
		obj := artifact(pipe, w.piping.names[i], nil)
		obj.SetNamespace(w.piping.pod.GetNamespace())
		out = append(out, obj)
	}
	return out
}
