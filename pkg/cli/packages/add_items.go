package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/edit"
	"kudo.dev/kudo/pkg/cli/command"
)

func newAddMaintainer(o *addOptions) *cobra.Command {
	return &cobra.Command{
		Use: "maintainer [NAME EMAIL]", Short: "Add a maintainer", Args: maxArgs(2, "a name and an e-mail address"),
		RunE: func(_ *cobra.Command, args []string) error { return o.addMaintainer(args) },
	}
}

func (o *addOptions) addMaintainer(args []string) error {
	ask, err := o.openPrompter(args, "the maintainer, and the e-mail address")
	if err != nil {
		return err
	}
	dir, pkg, err := o.open()
	if err != nil {
		return err
	}
	m := edit.Maintainer{}
	for i, field := range []*string{&m.Name, &m.Email} {
		if i < len(args) {
			*field = args[i]
		}
	}
	if ask != nil {
		err = inOrder([]func() error{
			func() error { return ask.RequiredText(&m.Name, "Name") },
			func() error { return ask.RequiredText(&m.Email, "E-mail address") },
		})
	}
	if err != nil {
		return err
	}
	if m.Name == "" || !strings.Contains(m.Email, "@") {
		return command.UsageError("a maintainer has a name and an e-mail address: got %q and %q", m.Name, m.Email)
	}
	for _, other := range pkg.Operator.Maintainers {
		if other.Name == m.Name && other.Email == m.Email {
			return fmt.Errorf("%s is a maintainer already", m.Name)
		}
	}
	return insertEntry(o.env, dir, pkg, operators.OperatorFileName, "maintainer "+m.Name, edit.Entry{List: "maintainers", Value: m})
}

type addParameterOptions struct {
	edit.Parameter
	standard           string
	optional, standing bool
}

func newAddParameter(o *addOptions) *cobra.Command {
	p := &addParameterOptions{}
	cmd := &cobra.Command{
		Use: "parameter [NAME]", Short: "Add a parameter", Args: maxArgs(1, "the name of the parameter"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.standing = cmd.Flags().Changed("default")
			return o.addParameter(p, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.standard, "default", "", "value if users set none; of arrays and maps, as YAML")
	f.StringVar(&p.Description, "description", "", "what it does")
	f.StringVar(&p.DisplayName, "display-name", "", "name for people")
	f.StringVar(&p.Hint, "hint", "", "what values are good")
	f.StringVar(&p.Group, "group", "", "group to show it in")
	f.StringVar(&p.Type, "type", "", "string (default), integer, number, boolean, array or map")
	f.StringVar(&p.Trigger, "trigger", "", "plan that runs when it changes")
	f.StringSliceVar(&p.Enum, "enum", nil, "values that it may have, separated by commas")
	f.StringVar(&p.Pattern, "pattern", "", "regular expression (RE2) that the whole value must match; of type string")
	f.IntVar(&p.MaxLines, "max-lines", 0, "how many lines the value may have; of type string (default any number)")
	f.BoolVar(&p.optional, "optional", false, "it may be left unset")
	f.BoolVar(&p.Immutable, "immutable", false, "it cannot be changed")
	f.BoolVar(&p.Sensitive, "sensitive", false, "its value is not to be seen, such as a password")
	f.BoolVar(&p.Advanced, "advanced", false, "it is for experts")
	return cmd
}

func (o *addOptions) addParameter(p *addParameterOptions, args []string) error {
	ask, err := o.openPrompter(args, "the parameter")
	if err != nil {
		return err
	}
	dir, pkg, err := o.open()
	if err != nil {
		return err
	}
	p.Name = strings.Join(args, "")
	if ask != nil {
		if err := p.ask(ask, pkg); err != nil {
			return err
		}
	}
	if p.Name == "" {
		return command.UsageError("a parameter needs a name")
	}
	if p.optional {
		p.Required = new(bool)
	}
	if p.standing {
		if err := p.SetDefault(p.standard); err != nil {
			return command.UsageError("--default: %w", err)
		}
	}
	return insertEntry(o.env, dir, pkg, operators.ParamsFileName, "parameter "+p.Name, edit.Entry{List: "parameters", Value: p.Parameter})
}

func (p *addParameterOptions) ask(a *command.Prompter, pkg *operators.Package) error {
	if p.Type == "" {
		p.Type = "string"
	}
	steps := []func() error{
		func() error { return a.RequiredText(&p.Name, "Name") },
		func() error { return a.Text(&p.DisplayName, "Name for people") },
		func() error { return a.Text(&p.Description, "What it does") },
		func() error { return a.Text(&p.Hint, "What values are good") },
		func() error {
			return a.Choose(&p.Type, "Type", []string{"string", "integer", "number", "boolean", "array", "map"})
		},
		func() error { return a.Text(&p.standard, "Default (empty for none)") },
		func() error {
			p.standing = p.standing || p.standard != ""
			if p.standing {
				return nil
			}
			return a.Confirm(&p.optional, "May it be left unset?")
		},
		func() error { return a.Confirm(&p.Immutable, "Can it never be changed?") },
		func() error {
			return a.Text(&p.Trigger, "Plan that runs when it changes ("+strings.Join(pkg.PlanNames(), ", ")+"; empty for update)")
		},
	}
	return inOrder(steps)
}

// inOrder runs steps until one fails.
func inOrder(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// strategies of plans and phases.
func strategies() []string { return []string{"serial", "parallel"} }

func newAddPlan(o *addOptions) *cobra.Command {
	plan := edit.Plan{}
	var phases string
	var steps []string
	cmd := &cobra.Command{
		Use: "plan [NAME]", Short: "Add a plan", Args: maxArgs(1, "the name of the plan"),
		Long: `Add a plan. Phases are in the order in which the steps name them first.

  kubectl kudo package add plan backup --step prepare/check=check --step dump/job=dump,clean`,
		RunE: func(_ *cobra.Command, args []string) error {
			return o.addPlan(&plan, phases, steps, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&plan.Strategy, "strategy", "serial", "order of the phases: serial or parallel")
	f.StringVar(&phases, "phase-strategy", "serial", "order of the steps in a phase: serial or parallel")
	f.StringArrayVar(&steps, "step", nil, "a step as PHASE/STEP=TASK,TASK…; may be repeated")
	return cmd
}

func (o *addOptions) addPlan(plan *edit.Plan, phases string, steps, args []string) error {
	ask, err := o.openPrompter(args, "the plan")
	if err != nil {
		return err
	}
	dir, pkg, err := o.open()
	if err != nil {
		return err
	}
	name := strings.Join(args, "")
	if ask != nil {
		if err := askPlan(ask, pkg, plan, &name, &steps); err != nil {
			return err
		}
	}
	if name == "" || len(steps) == 0 {
		return command.UsageError("a plan needs a name and a --step")
	}
	for _, strategy := range []string{plan.Strategy, phases} {
		if !slices.Contains(strategies(), strategy) {
			return command.UsageError("%q is no strategy: there are %s", strategy, strings.Join(strategies(), " and "))
		}
	}
	for _, step := range steps {
		if err := addStep(plan, step, phases); err != nil {
			return err
		}
	}
	if _, exists := pkg.Operator.Plans[name]; exists {
		return fmt.Errorf("the package has a plan %q already", name)
	}
	return insertEntry(o.env, dir, pkg, operators.OperatorFileName, "plan "+name, edit.Entry{List: "plans", Name: name, Value: plan})
}

// addStep adds a step that is written as PHASE/STEP=TASK,TASK.
func addStep(plan *edit.Plan, text, strategy string) error {
	place, tasks, _ := strings.Cut(text, "=")
	phase, step, found := strings.Cut(place, "/")
	if !found || phase == "" || step == "" || len(command.SplitList(tasks)) == 0 {
		return command.UsageError("--step %q: must be PHASE/STEP=TASK,TASK…", text)
	}
	plan.AddStep(phase, strategy, edit.Step{Name: step, Tasks: command.SplitList(tasks)})
	return nil
}

// askPlan asks for a plan, step by step.
func askPlan(a *command.Prompter, pkg *operators.Package, plan *edit.Plan, name *string, steps *[]string) error {
	if err := inOrder([]func() error{
		func() error { return a.RequiredText(name, "Name") },
		func() error { return a.Choose(&plan.Strategy, "Order of the phases", strategies()) },
	}); err != nil {
		return err
	}
	var tasks []string
	for _, task := range pkg.Operator.Tasks {
		tasks = append(tasks, task.Name)
	}
	for more := true; more; {
		var phase, step string
		var run []string
		err := inOrder([]func() error{
			func() error { return a.RequiredText(&phase, "Phase") },
			func() error { return a.RequiredText(&step, "Step") },
			func() error { return a.List(&run, "Tasks ("+strings.Join(tasks, ", ")+")") },
			func() error { more = false; return a.Confirm(&more, "Another step?") },
		})
		if err != nil {
			return err
		}
		*steps = append(*steps, phase+"/"+step+"="+strings.Join(run, ","))
	}
	return nil
}
