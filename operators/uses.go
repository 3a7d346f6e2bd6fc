package operators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Role is what a task does with what a template renders to.
type Role string

const (
	// Applied objects are written.
	Applied Role = "apply"
	// Deleted objects are deleted.
	Deleted Role = "delete"
	// Toggled objects are written or deleted, as a parameter says.
	Toggled Role = "toggle"
	// PipePod is the pod of a Pipe task, to which the engine gives its name and a container.
	PipePod Role = "pod"
	// Parameters are those of a dependency: a map, and no objects.
	Parameters Role = "parameters"
)

// Use is one use of a template by a task.
type Use struct {
	// Plan, Phase and Step are where the task stands; empty for a task that no plan uses.
	Plan, Phase, Step string
	// Task is the name of the task, and Index its place in Operator.Tasks.
	Task  string
	Index int
	// Field of the task that names the template, as in `spec.resources[0]`.
	Field string
	// Template is its path below templates/. It need not exist.
	Template string
	// Role is what is done with it.
	Role Role
}

// TaskUses lists the templates that a task names, in their order. The index is that of Operator.Tasks.
func (p *Package) TaskUses(index int) []Use {
	task := p.Operator.Tasks[index]
	use := func(field, template string, role Role) Use {
		return Use{Task: task.Name, Index: index, Field: field, Template: template, Role: role}
	}
	roles := map[string]Role{v1beta1.ApplyTask: Applied, v1beta1.DeleteTask: Deleted, v1beta1.ToggleTask: Toggled}
	var uses []Use
	switch task.Kind {
	case v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask:
		for i, template := range task.Spec.Resources {
			uses = append(uses, use(fmt.Sprintf("spec.resources[%d]", i), template, roles[task.Kind]))
		}
	case v1beta1.PipeTask:
		uses = append(uses, use("spec.pod", task.Spec.Pod, PipePod))
	case v1beta1.KudoOperatorTask:
		if task.Spec.ParameterFile != "" {
			uses = append(uses, use("spec.parameterFile", task.Spec.ParameterFile, Parameters))
		}
	}
	return uses
}

// Uses lists all uses of templates in the order of plans, phases, steps and tasks. Tasks that are not defined are left out.
func (p *Package) Uses() []Use {
	var uses []Use
	p.eachTask(func(plan, phase, step string, index int) {
		for _, use := range p.TaskUses(index) {
			use.Plan, use.Phase, use.Step = plan, phase, step
			uses = append(uses, use)
		}
	})
	return uses
}

// eachTask visits the tasks of all plans in their order.
func (p *Package) eachTask(visit func(plan, phase, step string, index int)) {
	defined := make(map[string]int, len(p.Operator.Tasks))
	for i := len(p.Operator.Tasks) - 1; i >= 0; i-- {
		defined[p.Operator.Tasks[i].Name] = i
	}
	for _, name := range p.PlanNames() {
		for _, phase := range p.Operator.Plans[name].Phases {
			for _, step := range phase.Steps {
				for _, task := range step.Tasks {
					if index, ok := defined[task]; ok {
						visit(name, phase.Name, step.Name, index)
					}
				}
			}
		}
	}
}

// PlanNames lists the plans in the order of the file.
func (p *Package) PlanNames() []string {
	return slices.SortedStableFunc(maps.Keys(p.Operator.Plans), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Line(OperatorFileName, "plans."+a), p.Line(OperatorFileName, "plans."+b)), strings.Compare(a, b))
	})
}

// Pipes are the keys of all pipes with the names of the objects that hold their files, as KUDO names them:
// instance, plan, phase, step, task and key, each without anything but letters and digits.
func (p *Package) Pipes(instance string) map[string]string {
	pipes, err := Pipes(&v1beta1.OperatorVersionSpec{Tasks: p.Operator.Tasks, Plans: p.Operator.Plans}, instance, "")
	if err != nil {
		return map[string]string{} // two pipes of one key: the plan fails, and says so
	}
	return pipes
}
