package runner

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// findMade reports whether the artifacts of a Pipe task with once exist. If they do, it adds them to the effects of the task.
//
//	none exists                                            no: the pod makes them
//	all exist, and are the Instance's                      yes
//	some exist, all of them written by this run            no: the run was interrupted between two writes
//	some exist                                             fatal: the others cannot be made without replacing these
//	one lacks the key of its file                          fatal: as a package has renamed the file, or a user has made the object
//	one belongs to another owner, or is being deleted      fatal, or awaited
func (r *Runner) findMade(ctx context.Context, w *PreparedTask) (bool, error) {
	writer, ok := w.writer.(*instanceWriter)
	if !ok {
		return false, &apply.FatalError{Err: fmt.Errorf("task %q: spec.once cannot be used in an install plan, whose objects are shared: "+
			"remove it", w.Name)}
	}
	var existing []apply.Change
	var absent []string
	ours := true // set if this run has written all artifacts that exist
	for i, pipe := range w.piping.pipes {
		id := artifactID(pipe, w.run.Subject.Namespace, w.piping.names[i])
		change, err := writer.engine.Existing(ctx, id, writer.options)
		switch {
		case err != nil:
			return false, err
		case change.Live != nil && !hasFile(change.Live, pipe):
			return false, &apply.FatalError{Err: fmt.Errorf("task %q makes its objects once: %s exists, but has no key %s: add the key, or "+
				"delete the object to have it made anew", w.Name, id, path.Base(pipe.File))}
		case change.Live == nil:
			absent = append(absent, id.String())
		default:
			existing = append(existing, change)
			ours = ours && change.Live.GetAnnotations()[v1beta1.PlanUIDAnnotation] == string(w.run.UID)
		}
	}
	if len(absent) == 0 {
		w.effects.Written = append(w.effects.Written, existing...)
		return true, nil
	}
	if len(existing) == 0 || ours {
		return false, nil
	}
	return false, &apply.FatalError{Err: fmt.Errorf("task %q makes its objects once: %s exists, but %s does not: restore it, or delete the "+
		"others to have all of them made anew", w.Name, existing[0].ID, strings.Join(absent, ", "))}
}

// isPiped reports whether this step of the run has made all artifacts of a Pipe task and has deleted the pod, as when the manager has
// died before the status said that the task is done. If so, it adds the artifacts to the effects of the task.
func (w *PreparedTask) isPiped(ctx context.Context, mirror apply.View) (bool, error) {
	writer, ok := w.writer.(*instanceWriter)
	if !ok || w.piping.once {
		return false, nil
	}
	pod, v := w.piping.pod, w.piping.variables
	pod.SetNamespace(w.run.Subject.Namespace)
	mirror.Watch(ctx, pod.GroupVersionKind())
	if live, _ := mirror.Get(apply.IDOf(pod)); live != nil {
		return false, nil
	}
	written := make([]apply.Change, len(w.piping.pipes))
	for i, pipe := range slices.Backward(w.piping.pipes) { // the first is written first
		live, err := writer.engine.Live(ctx, artifactID(pipe, w.run.Subject.Namespace, w.piping.names[i]))
		if err != nil || live == nil {
			return false, err
		}
		annotations := live.GetAnnotations()
		if annotations[v1beta1.PlanUIDAnnotation] != string(w.run.UID) || annotations[v1beta1.PlanAnnotation] != v.PlanName ||
			annotations[v1beta1.PhaseAnnotation] != v.PhaseName || annotations[v1beta1.StepAnnotation] != v.StepName {
			return false, nil
		}
		if written[i], err = writer.engine.Existing(ctx, apply.IDOf(live), writer.options); err != nil {
			return false, err
		}
	}
	w.effects.Written = append(w.effects.Written, written...)
	w.effects.Deleted = append(w.effects.Deleted, apply.IDOf(pod))
	return true, nil
}

// hasFile reports whether an artifact has the key of its file. The keys of an envFile are not known.
func hasFile(live *unstructured.Unstructured, pipe v1beta1.PipeSpec) bool {
	if pipe.File == "" {
		return true
	}
	for _, field := range []string{"data", "binaryData"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(live.Object, field, path.Base(pipe.File)); found {
			return true
		}
	}
	return false
}

// prepareMade prepares a Pipe task whose artifacts exist: it deletes the pod that an interrupted run has left, if there is one.
func (r *Runner) prepareMade(ctx context.Context, w *PreparedTask) *PreparedTask {
	pod := w.piping.pod
	pod.SetNamespace(w.run.Subject.Namespace)
	r.mirror.Watch(ctx, pod.GroupVersionKind())
	if live, _ := r.mirror.Get(apply.IDOf(pod)); live == nil {
		return w.decide(plans.Done, "")
	}
	w.objects, w.deletes = []*unstructured.Unstructured{pod}, true
	return w
}

// keepArtifact adds the annotation kudo.dev/keep to an artifact of a task with once, and to an artifact that replaces a kept object: else a
// task that renews the object would remove the annotation.
func (w *PreparedTask) keepArtifact(ctx context.Context, artifact *unstructured.Unstructured, pipe v1beta1.PipeSpec) error {
	keep := w.piping.once
	if !keep && pipe.NameSuffix != "" {
		live, err := w.writer.lookup(ctx, artifactID(pipe, w.run.Subject.Namespace, artifact.GetName()))
		if err != nil {
			return err
		}
		keep = live != nil && v1beta1.IsKept(live.GetAnnotations())
	}
	if keep {
		artifact.SetAnnotations(map[string]string{v1beta1.KeepAnnotation: "true"})
	}
	return nil
}

// artifactID returns the identity of the object that a file of a Pipe task becomes.
func artifactID(pipe v1beta1.PipeSpec, namespace, name string) apply.ID {
	return apply.ID{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: pipe.Kind},
		NamespacedName:   types.NamespacedName{Namespace: namespace, Name: name},
	}
}
