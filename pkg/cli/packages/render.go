package packages

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
)

type renderOptions struct {
	env *command.Env

	command.ParameterFlags
	command.VersionFlags
	manifestFlags
	plan, phase, step, instance string
	from                        render.PackageVersion
}

func newRender(env *command.Env) *cobra.Command {
	o := &renderOptions{env: env}
	cmd := &cobra.Command{
		Use:   "render PACKAGE",
		Short: "Print what the templates of a package render to, or its manifests",
		Long: `Print what the templates of a package render to, in the order of plans, phases, steps and tasks, without a cluster.
A document that several tasks have is printed once. What kudo adds to objects when it writes them is not shown.
With --manifests, print the Operators, the OperatorVersions and the Instance that install would create.

  kubectl kudo package render ./web --plan deploy -p REPLICAS=3 -n lab --instance site
  kubectl kudo package render ./web --manifests -d fleet/web -n lab --instance site`,
		Args:    command.AnyPackage(),
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "only this plan")
	f.StringVar(&o.phase, "phase", "", "only phases of this name")
	f.StringVar(&o.step, "step", "", "only steps of this name")
	f.StringVar(&o.instance, "instance", "", "name of the Instance (default <operator>-instance)")
	f.StringVar(&o.from.AppVersion, "from-app-version", "", "what .From.AppVersion is: the version before an upgrade")
	f.StringVar(&o.from.OperatorVersion, "from-operator-version", "", "what .From.OperatorVersion is")
	o.VersionFlags.Add(f)
	o.ParameterFlags.Add(f)
	o.manifestFlags.add(f)
	return cmd
}

func (o *renderOptions) run(ctx context.Context, name string) error {
	given, err := o.Read()
	if err != nil {
		return err
	}
	if o.manifests {
		return o.writeManifests(ctx, name, given)
	}
	pkg, err := o.env.FindPackage(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	if err := act.CheckValues(pkg.Definitions(), given, nil, nil, command.DescribePackage(pkg)); err != nil {
		return err
	}
	uses, err := o.pick(pkg)
	if err != nil {
		return err
	}
	values, err := params.Resolve(pkg.Definitions(), given)
	if err != nil {
		return err
	}
	v := render.Variables{
		OperatorName: pkg.Operator.Name, OperatorVersion: pkg.Operator.OperatorVersion, AppVersion: pkg.Operator.AppVersion, From: o.from,
		Name: o.instance, Namespace: *o.env.Flags.Namespace, Params: values,
	}
	if v.Name == "" {
		v.Name = operators.DefaultInstanceName(pkg.Operator.Name)
	}
	if v.Namespace == "" {
		v.Namespace = "default"
	}
	if err := operators.CheckInstanceName(v.Name); err != nil {
		return command.UsageError("--instance: %w", err)
	}
	v.Pipes = pkg.Pipes(v.Name)
	v.Defaults, _ = params.Resolve(pkg.Definitions(), nil)
	r := rendered{templates: render.New(pkg.Templates), installs: pkg.Operator.InstallPlan, at: map[string]int{}}
	for _, use := range uses {
		v.PlanName, v.PhaseName, v.StepName = use.Plan, use.Phase, use.Step
		if err = r.add(use, v); err != nil {
			break
		}
	}
	for _, d := range r.documents {
		o.env.Printf("---\n# task %s, template %s%s\n%s", placeOf(d.use), d.use.Template, d.remark, d.text)
	}
	return err
}

// pick are the uses of templates that the flags ask for.
func (o *renderOptions) pick(pkg *operators.Package) ([]operators.Use, error) {
	if _, ok := pkg.Operator.Plans[o.plan]; o.plan != "" && !ok {
		return nil, fmt.Errorf("package %s has no plan %q: there are %s", pkg.Operator.Name, o.plan, strings.Join(pkg.PlanNames(), ", "))
	}
	var picked []operators.Use
	for _, use := range pkg.Uses() {
		if (o.plan == "" || use.Plan == o.plan) && (o.phase == "" || use.Phase == o.phase) && (o.step == "" || use.Step == o.step) {
			picked = append(picked, use)
		}
	}
	if len(picked) == 0 && (o.phase != "" || o.step != "") {
		return nil, fmt.Errorf("no task with templates of package %s is in such a phase and step: kubectl kudo package list plans shows them",
			pkg.Operator.Name)
	}
	return picked, nil
}

// rendered are the documents of a package in the order of their first use, each once.
type rendered struct {
	templates *render.Set
	installs  string // the install plan
	documents []renderedDocument
	at        map[string]int // template and text -> place in documents
}

type renderedDocument struct {
	use          operators.Use
	remark, text string
}

// add renders a use of a template. Text that is no YAML is kept all the same, since the lines of the error are its lines.
func (r *rendered) add(use operators.Use, v render.Variables) error {
	text, err := r.templates.Text(use.Template, v)
	if err != nil {
		return fmt.Errorf("task %s: %w", placeOf(use), err)
	}
	var options []render.Option
	if r.installs != "" && use.Plan == r.installs {
		options = append(options, render.WithAnyKind())
	}
	switch use.Role {
	case operators.Parameters:
		_, err = r.templates.Parameters(use.Template, v)
	case operators.PipePod:
		_, err = r.templates.Objects(use.Template, v, append(options, render.WithoutNames())...)
	default:
		_, err = r.templates.Objects(use.Template, v, options...)
	}
	if err != nil {
		r.documents = append(r.documents, renderedDocument{use, " (as it is rendered, which is wrong)", strings.TrimRight(text, "\n")})
		return fmt.Errorf("task %s: %w", placeOf(use), err)
	}
	for _, document := range separator.Split(text, -1) {
		if document = strings.Trim(document, "\r\n"); !blank(document) {
			r.keep(use, document)
		}
	}
	return nil
}

// keep keeps a document once. One that is deleted here and applied there, to be made anew, counts as applied.
func (r *rendered) keep(use operators.Use, document string) {
	if use.Role == operators.Parameters {
		document = "# " + strings.ReplaceAll(document, "\n", "\n# ") // no object: for readers only
	}
	d := renderedDocument{use, remarks[use.Role], document}
	key := use.Template + "\x00" + document
	at, known := r.at[key]
	switch {
	case !known:
		r.at[key] = len(r.documents)
		r.documents = append(r.documents, d)
	case r.documents[at].use.Role == operators.Deleted && use.Role != operators.Deleted:
		r.documents[at] = d
	}
}

// separator is a line between documents. What follows three dashes on the line is dropped: a comment.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t]+#.*|[ \t]*)\r?$`)

// remarks say what is special about what a task does with a template.
var remarks = map[operators.Role]string{
	operators.Deleted:    " (deleted)",
	operators.Toggled:    " (applied or deleted)",
	operators.PipePod:    " (pod of a pipe, which gets its name and a container when it runs)",
	operators.Parameters: " (parameters of a dependency, no object)",
}

func placeOf(use operators.Use) string {
	return strings.Join([]string{use.Plan, use.Phase, use.Step, use.Task}, ".")
}

// blank reports whether a document has nothing but comments.
func blank(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
