package runner

import (
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

const (
	// maxNext is how many objects of the steps behind those that are about to write are named at most.
	maxNext = 256
	// nextWork is the work of the renderings that find these names in one Execute.
	nextWork = render.MaxBudget / 8
)

// nextObjects returns the names of the objects of the steps that follow, in the order of the steps. It ends at the first task that is
// no Apply task, or whose templates cannot be rendered. When these names are committed, no commit is needed between two steps whose
// objects are ready at once. A step may write another object than nextObjects has named: the name of that object is committed before
// its step.
func (e *execution) nextObjects() (out []apply.ID) {
	for i, phase := range e.plan.Phases {
		for j, step := range phase.Steps {
			for k, name := range step.Tasks {
				at := plans.Place{Phase: i, Step: j, Task: k}
				if e.tried[at] || e.st.Phases[i].Steps[j].Tasks[k].Status == v1beta1.Complete {
					continue
				}
				variables := e.run.variables(phase.Name, step.Name)
				variables.Budget = e.next
				names, known := e.runner.namesOf(e.run, name, variables)
				if !known || len(out)+len(names) > maxNext {
					return out
				}
				out = append(out, names...)
			}
		}
	}
	return out
}

// namesOf names the objects that an Apply task writes. known is false if the task is of another kind, or the names cannot be known yet.
func (r *Runner) namesOf(run *Run, name string, variables render.Variables) (ids []apply.ID, known bool) {
	def, _ := run.Version.Task(name)
	t, err := task.New(def)
	applies, is := t.(task.Apply)
	if err != nil || !is {
		return nil, false
	}
	made, err := run.render(applies.Resources, variables)
	if err != nil {
		return nil, false
	}
	definitions := apply.Definitions(made.objects)
	for _, obj := range made.objects {
		namespaced, err := r.kinds.Namespaced(obj.GroupVersionKind().GroupKind(), definitions)
		if err != nil {
			return nil, false
		}
		id := apply.IDOf(obj)
		if id.Namespace = ""; namespaced {
			id.Namespace = run.Subject.Namespace
		}
		ids = append(ids, id)
	}
	return ids, true
}

// hasNewClusterScoped reports whether a task has written an object without a namespace whose uid is not in the inventory. Such an object
// belongs to the Instance by its uid alone, which must not be lost.
func (e Effects) hasNewClusterScoped(inventory Inventory) bool {
	return slices.ContainsFunc(e.Written, func(c apply.Change) bool { return c.ID.Namespace == "" && inventory[c.ID].UID != c.Record.UID })
}
