// Package containment checks that the parameters of an Instance stay values in all templates that its plans render.
package containment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
)

// Subject is an Instance, or the OperatorVersion of an install plan, as templates see it.
type Subject struct {
	Name, Namespace string
	// Parameters are those that are given.
	Parameters map[string]string
	// From is the version that the last complete run of plan deploy, update or upgrade had; empty before the first.
	From v1beta1.PackageVersion
}

// MaxWork is how much work a check may do (see render.Budget): a second or two. Whoever writes an OperatorVersion must not hold
// up admission.
const MaxWork = render.MaxWork

// Check returns an error for the first template of a plan of Instances whose structure a parameter changes, and nil if
// there is none. It returns an error, too, if the check takes more than MaxWork. Templates that fail for any other reason are passed
// over: the run says why they fail. It ends early with the error of the context. An error of a template is a *render.Error.
func Check(ctx context.Context, spec *v1beta1.OperatorVersionSpec, subject Subject) error {
	return check(ctx, spec, subject, render.NewBudget(MaxWork), func(plan string) bool { return plan != spec.InstallPlan })
}

// CheckInstall is Check for the templates of the install plan.
func CheckInstall(ctx context.Context, spec *v1beta1.OperatorVersionSpec, subject Subject) error {
	return check(ctx, spec, subject, render.NewBudget(MaxWork), func(plan string) bool { return plan == spec.InstallPlan })
}

func check(ctx context.Context, spec *v1beta1.OperatorVersionSpec, subject Subject, budget *render.Budget,
	wanted func(plan string) bool) error {
	v := render.Variables{
		Budget:       budget,
		OperatorName: spec.Operator.Name, OperatorVersion: spec.Version, AppVersion: spec.AppVersion,
		Name: subject.Name, Namespace: subject.Namespace, From: render.PackageVersion(subject.From),
	}
	var err error
	if v.Params, err = params.Resolve(spec.Parameters, subject.Parameters); err != nil {
		return nil // said by params.Validate
	}
	if v.Defaults, err = params.Resolve(spec.Parameters, nil); err != nil {
		v.Defaults = nil
	}
	if v.Harmless() {
		return nil
	}
	c := checker{spec: spec, templates: render.New(spec.Templates), tasks: map[string]v1beta1.Task{}, done: map[string]bool{}}
	for _, task := range spec.Tasks {
		c.tasks[task.Name] = task
	}
	c.pipesWork = pipesWork(spec)
	for _, name := range slices.Sorted(maps.Keys(spec.Plans)) {
		plan := spec.Plans[name]
		if !wanted(name) {
			continue
		}
		if err := c.plan(ctx, name, plan, v); err != nil {
			return err
		}
	}
	return nil
}

type checker struct {
	spec      *v1beta1.OperatorVersionSpec
	templates *render.Set
	tasks     map[string]v1beta1.Task
	done      map[string]bool
	// pipesWork is the work of finding the pipes of a plan.
	pipesWork int
}

// pipesWork is the work of operators.Pipes, which goes through the tasks, and through all plans if one of them is a Pipe task.
func pipesWork(spec *v1beta1.OperatorVersionSpec) int {
	const each, name = 64, 2048 // a name takes regular expressions
	work, pipes := each*len(spec.Tasks), false
	for _, task := range spec.Tasks {
		pipes = pipes || task.Kind == v1beta1.PipeTask
	}
	if !pipes {
		return work
	}
	for _, plan := range spec.Plans {
		work += each
		for _, phase := range plan.Phases {
			for _, step := range phase.Steps {
				work += name * len(step.Tasks)
			}
		}
	}
	return work
}

func (c *checker) plan(ctx context.Context, name string, plan v1beta1.Plan, v render.Variables) error {
	v.PlanName = name
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := refusal(v.Budget.Spend(c.pipesWork)); err != nil {
		return err
	}
	v.Pipes, _ = operators.Pipes(c.spec, v.Name, name) // a run says what is wrong with them
	for _, phase := range plan.Phases {
		for _, step := range phase.Steps {
			v.PhaseName, v.StepName = phase.Name, step.Name
			for _, used := range step.Tasks {
				if err := c.task(ctx, c.tasks[used], v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// task renders the templates of a task, each once for every place of its use.
func (c *checker) task(ctx context.Context, task v1beta1.Task, v render.Variables) error {
	var options []render.Option
	if v.PlanName == c.spec.InstallPlan {
		options = append(options, render.WithAnyKind())
	}
	objects := func(name string) error {
		_, err := c.templates.Objects(name, v, append(options, render.WithoutNames())...)
		return err
	}
	for _, name := range task.Spec.Resources {
		if err := c.once(ctx, name, v, objects); err != nil {
			return err
		}
	}
	if task.Kind == v1beta1.PipeTask {
		return c.once(ctx, task.Spec.Pod, v, objects)
	}
	if task.Kind == v1beta1.KudoOperatorTask && task.Spec.ParameterFile != "" {
		return c.once(ctx, task.Spec.ParameterFile, v, func(name string) error {
			_, err := c.templates.Parameters(name, v)
			return err
		})
	}
	return nil
}

func (c *checker) once(ctx context.Context, template string, v render.Variables, renders func(string) error) error {
	place := fmt.Sprintf("%q %q %q %q", template, v.PlanName, v.PhaseName, v.StepName)
	if c.done[place] {
		return nil
	}
	c.done[place] = true
	if err := ctx.Err(); err != nil {
		return err
	}
	return refusal(renders(template))
}

// refusal is the error of a template for which the values are refused; nil for any other.
func refusal(err error) error {
	var e *render.Error
	switch {
	case !errors.As(err, &e):
	case e.Kind == render.StructureError:
		return e
	case e.Kind == render.BudgetError:
		e.Template, e.Line, e.Source = "", 0, "" // it is not that one's fault
		e.Reason = fmt.Sprintf("the values of parameters cannot be checked, since the templates of all plans together take more work than that "+
			"of going through %d MiB", MaxWork>>20)
		e.Hint = "make the templates smaller, or use them in fewer steps; values of letters and digits need no check"
		return e
	}
	return nil
}
