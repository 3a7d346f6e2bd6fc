package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// maxNamedFields is how many fields of an object a message names.
const maxNamedFields = 5

// RestoredObjects are the objects that a plan leaves behind, compared with those of the cluster.
type RestoredObjects struct {
	compared []apply.Comparison
	// Problems says which objects do not exist, differ or belong to others, in order; empty if all are as the plan makes them.
	Problems []string
}

// CompareRestored compares what a plan leaves behind with the cluster, with the rights of the run and by its rules of ownership.
// Nothing is written. A Job or a Pod need not exist, since one that has ended is deleted or is not restored. An error is transient.
func (r *Runner) CompareRestored(ctx context.Context, run *Run) (*RestoredObjects, error) {
	engine, err := r.accounts.Engine(run.Account)
	if err != nil {
		return nil, err
	}
	run.budget = &render.Budget{}
	defer func() { run.budget = nil }()
	left := newRemainder()
	plan := run.Version.Spec.Plans[run.Plan]
	for i, phase := range plan.Phases {
		for j, step := range phase.Steps {
			for k := range step.Tasks {
				w := r.Prepare(ctx, run, Inventory{}, plans.Place{Phase: i, Step: j, Task: k})
				if err := r.collect(ctx, run, w, left); err != nil {
					return nil, err
				}
			}
		}
	}
	return run.newRestoredObjects(left.problems, engine.Compare(ctx, left.list(), r.options(run, Inventory{}))), nil
}

// newRestoredObjects says what is wrong with the objects that were compared, after earlier problems. Some problems follow from another
// object: a hash of dependencies differs if a ConfigMap or a Secret does not exist or differs, and the API server refuses a binding whose
// Role it does not find. They are named only if there is no other problem.
func (run *Run) newRestoredObjects(problems []string, compared []apply.Comparison) *RestoredObjects {
	out := &RestoredObjects{Problems: problems}
	var following []string
	for _, c := range compared {
		switch {
		case c.Missing && endsByItself(c.ID):
			continue
		case c.Missing:
			out.Problems = append(out.Problems, c.ID.String()+" does not exist")
		case apierrors.IsNotFound(c.Err): // the object itself exists
			following = append(following, run.mask(c.Err.Error()))
		case c.Err != nil:
			out.Problems = append(out.Problems, run.mask(c.Err.Error()))
		case len(c.Fields) > 0:
			problem := fmt.Sprintf("%s differs in %s", c.ID, text.List(c.Fields, maxNamedFields))
			if len(c.Fields) == 1 && strings.HasSuffix(c.Fields[0], "."+v1beta1.DependenciesHashAnnotation) {
				following = append(following, problem)
			} else {
				out.Problems = append(out.Problems, problem)
			}
		}
		out.compared = append(out.compared, c)
	}
	if len(out.Problems) == 0 {
		out.Problems = following
	}
	slices.Sort(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	return out
}

// endsByItself reports whether objects of a kind end, after which they may be deleted.
func endsByItself(id apply.ID) bool { return id.Kind == "Job" || id.Kind == "Pod" }

// TakeOver makes the run's Instance the owner of objects that were compared and have no problems. Only their metadata change. The error
// is transient: an object has changed since, and is to be compared again.
func (r *Runner) TakeOver(ctx context.Context, run *Run, restored *RestoredObjects) ([]apply.Change, error) {
	engine, err := r.accounts.Engine(run.Account)
	if err != nil {
		return nil, err
	}
	for _, c := range restored.compared {
		c.SetAnnotation(v1beta1.PlanUIDAnnotation, string(run.UID))
	}
	changes := engine.TakeOver(ctx, restored.compared, r.options(run, Inventory{}))
	return changes, changes.Err()
}

// remainder are the objects that the tasks of a plan leave behind, one after the other.
type remainder struct {
	objects  []*unstructured.Unstructured
	at       map[apply.ID]int
	problems []string
}

func newRemainder() *remainder { return &remainder{at: map[apply.ID]int{}} }

// put notes an object in the place of an earlier one of its name.
func (m *remainder) put(obj *unstructured.Unstructured) {
	id := apply.IDOf(obj)
	if i, known := m.at[id]; known {
		m.objects[i] = obj
		return
	}
	m.at[id], m.objects = len(m.objects), append(m.objects, obj)
}

// drop notes that an object was deleted.
func (m *remainder) drop(obj *unstructured.Unstructured) {
	if i, known := m.at[apply.IDOf(obj)]; known {
		m.objects[i] = nil
		delete(m.at, apply.IDOf(obj))
	}
}

func (m *remainder) list() []*unstructured.Unstructured {
	return slices.DeleteFunc(m.objects, func(obj *unstructured.Unstructured) bool { return obj == nil })
}

// collect notes what a task leaves behind.
func (r *Runner) collect(ctx context.Context, run *Run, w *PreparedTask, left *remainder) error {
	if _, nothing := w.task.(task.Dummy); nothing {
		return nil
	}
	if w.piping != nil && (w.outcome == nil || w.outcome.State == plans.Done) {
		return r.collectArtifacts(ctx, w, left)
	}
	if o := w.outcome; o != nil {
		switch {
		case o.State == plans.Done:
		case o.State == plans.Transient:
			return errors.New(run.mask(o.Message))
		case len(w.effects.Failed) > 0:
			for _, refused := range w.effects.Failed {
				left.problems = append(left.problems, run.mask(refused.Err.Error()))
			}
		default:
			left.problems = append(left.problems, run.mask(o.Message))
		}
		return nil
	}
	if w.deletes {
		for _, obj := range append(slices.Clone(w.objects), w.deleteLast...) {
			left.drop(obj)
		}
		return nil
	}
	for _, obj := range w.objects {
		left.put(obj)
	}
	return nil
}

// collectArtifacts notes what a Pipe task has made of files, with the content that the cluster has: the pod that made the files is
// deleted.
func (r *Runner) collectArtifacts(ctx context.Context, w *PreparedTask, left *remainder) error {
	for i, pipe := range w.piping.pipes {
		obj := artifact(pipe, w.piping.names[i], nil)
		id := artifactID(pipe, w.run.Subject.Namespace, w.piping.names[i])
		live, err := w.writer.lookup(ctx, id)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if live == nil {
			left.problems = append(left.problems, id.String()+" does not exist")
			continue
		}
		for _, field := range []string{"data", "binaryData", "type"} {
			if value, set := live.Object[field]; set {
				obj.Object[field] = value
			} else {
				delete(obj.Object, field)
			}
		}
		if err := w.keepArtifact(ctx, obj, pipe); err != nil {
			return err
		}
		if err := w.writer.enhance(ctx, w.piping.variables, []*unstructured.Unstructured{obj}); err != nil {
			return err
		}
		left.put(obj)
	}
	return nil
}

// Message says of the problems what to do about them.
func (o *RestoredObjects) Message() string {
	return fmt.Sprintf("the Instance is annotated %s=true, and not all objects of plan %s are as the plan makes them: %s. Restore them, or "+
		"remove the annotation, so that the plan runs", v1beta1.RestoredAnnotation, v1beta1.DeployPlan, strings.Join(o.Problems, "; "))
}
