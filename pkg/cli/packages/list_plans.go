package packages

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/xlab/treeprint"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/cli/command"
)

func newListPlans(env *command.Env) *cobra.Command {
	o := &listOptions{env: env}
	cmd := newListing("plans", "List the plans of a package", o, func(pkg *operators.Package) error { return o.listPlans(pkg) })
	cmd.Flags().BoolVarP(&o.withTasks, "with-tasks", "t", false, "with the tasks of each step")
	return cmd
}

// listedPlan is a plan as -o prints it; a list, since the order is that of the file.
type listedPlan struct {
	Name string `json:"name"`
	v1beta1.Plan
}

func (o *listOptions) listPlans(pkg *operators.Package) error {
	names := pkg.PlanNames()
	if o.output != "" {
		listed := []listedPlan{}
		for _, name := range names {
			listed = append(listed, listedPlan{name, pkg.Operator.Plans[name]})
		}
		return o.env.PrintValue(o.output, listed)
	}
	tasks := map[string]v1beta1.Task{}
	for _, task := range pkg.Operator.Tasks {
		tasks[task.Name] = task
	}
	root := treeprint.NewWithRoot(pkg.Operator.Name)
	for _, name := range names {
		plan := pkg.Operator.Plans[name]
		planBranch := root.AddBranch(fmt.Sprintf("Plan %s (%s strategy)", name, command.StrategyName(plan.Strategy)))
		for _, phase := range plan.Phases {
			phaseBranch := planBranch.AddBranch(fmt.Sprintf("Phase %s (%s strategy)", phase.Name, command.StrategyName(phase.Strategy)))
			for _, step := range phase.Steps {
				if !o.withTasks {
					phaseBranch.AddNode("Step " + step.Name)
					continue
				}
				stepBranch := phaseBranch.AddBranch("Step " + step.Name)
				for _, task := range step.Tasks {
					stepBranch.AddNode(describeTask(task, tasks))
				}
			}
		}
	}
	return o.env.Print(root.String())
}

func describeTask(name string, tasks map[string]v1beta1.Task) string {
	task, ok := tasks[name]
	if !ok {
		return fmt.Sprintf("Task %s [not defined]", name)
	}
	line := fmt.Sprintf("Task %s [%s]", name, task.Kind)
	if uses := taskUses(task); uses != "" {
		line += " " + uses
	}
	return line
}
