package operators

import (
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Dependency is a KudoOperator task of a package.
type Dependency struct {
	// Index of the task in Operator.Tasks, and its name.
	Index int
	Task  string
	// Package is how the package refers to the other one: a name, a path relative to the package, or a URL.
	Package string
	// AppVersion and OperatorVersion that are asked for; empty ones are any.
	AppVersion, OperatorVersion string
	// EnablingParameter is the parameter that switches the dependency on and off; empty if it is always on.
	EnablingParameter string
	// Content is the content digest that the other package must have; empty if any content is taken.
	Content string
	// From is where the lock file says that the other package was found, with a digest; empty if it does not.
	From string
}

// Reference is the operator version that a dependency was found to be.
type Reference struct {
	// Operator is the name of the operator.
	Operator string
	// AppVersion may be empty, if that package has none.
	AppVersion, OperatorVersion string
	// Content is the content digest that the OperatorVersion must have; empty if any content is taken.
	Content string
}

// Dependencies lists the KudoOperator tasks that plans use, in the order of the tasks, as DependenciesOf does. The lock of the package, if
// it has one that fits, says which versions they are.
func (p *Package) Dependencies() []Dependency {
	all := DependenciesOf(p.Operator.Tasks, p.Operator.Plans)
	for i := range all {
		d := &all[i]
		if entry := p.Lock.Entry(d.Task); entry != nil && entry.Wanted == d.Wanted() {
			f := entry.Found
			d.AppVersion, d.OperatorVersion, d.Content, d.From = f.AppVersion, f.OperatorVersion, f.Content, f.From
		}
	}
	return all
}

// DependenciesOf lists the KudoOperator tasks that plans use, in the order of the tasks, without those whose Instance is shared, which is
// installed by itself. In an OperatorVersion that was made of a package whose dependencies are resolved, the tasks name operators and
// versions that are neither empty nor ranges.
func DependenciesOf(tasks []v1beta1.Task, plans map[string]v1beta1.Plan) []Dependency {
	used := map[string]bool{}
	for _, plan := range plans {
		for _, phase := range plan.Phases {
			for _, step := range phase.Steps {
				for _, task := range step.Tasks {
					used[task] = true
				}
			}
		}
	}
	var found []Dependency
	for i, task := range tasks {
		if task.Kind == v1beta1.KudoOperatorTask && !task.Spec.Shared && used[task.Name] {
			found = append(found, Dependency{Index: i, Task: task.Name, Package: task.Spec.Package,
				AppVersion: task.Spec.AppVersion, OperatorVersion: task.Spec.OperatorVersion, EnablingParameter: task.Spec.EnablingParameter,
				Content: task.Spec.Content})
		}
	}
	return found
}

// WithDependencies is a copy of the package whose KudoOperator tasks refer to what they were found to be, so that it needs no lock. The
// keys are the indices of Dependencies; the error names one that is no KudoOperator task.
func (p *Package) WithDependencies(found map[int]Reference) (*Package, error) {
	c := p.DeepCopy()
	for i, reference := range found {
		if i < 0 || i >= len(c.Operator.Tasks) || c.Operator.Tasks[i].Kind != v1beta1.KudoOperatorTask {
			return nil, fmt.Errorf("task %d of operator %s is not of kind %s", i, p.Operator.Name, v1beta1.KudoOperatorTask)
		}
		spec := &c.Operator.Tasks[i].Spec
		spec.Package, spec.AppVersion, spec.OperatorVersion = reference.Operator, reference.AppVersion, reference.OperatorVersion
		spec.Content = reference.Content
	}
	c.Lock = nil
	return c, nil
}
