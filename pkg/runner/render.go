package runner

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
)

// resolve sets the values of parameters and the names of pipes for templates, once.
func (run *Run) resolve() (err error) {
	if run.values == nil {
		if run.values, err = params.Resolve(params.Sensitive(run.Version.Spec.Parameters, run.Sensitive), run.Parameters); err != nil {
			return err
		}
		if run.defaults, err = params.Resolve(run.Version.Spec.Parameters, nil); err != nil {
			run.defaults = nil // no value is the author's own then, and all are checked
		}
		if run.Installation != nil { // an install plan may leave out what only Instances need
			run.unset = params.Missing(run.Version.Spec.Parameters, run.Parameters)
			for _, name := range run.unset {
				delete(run.values, name)
			}
		}
	}
	if run.pipes == nil {
		run.pipes, err = operators.Pipes(run.Version.Spec, run.Subject.Name, run.Plan)
	}
	return err
}

// mask takes sensitive values out of text: what the API server says of an object may hold some.
func (run *Run) mask(text string) string {
	if run.hidden == nil {
		mask := params.NewMask(run.secrets())
		run.hidden = &mask
	}
	return run.hidden.Text(text)
}

// secrets are the sensitive values.
func (run *Run) secrets() []string {
	var out []string
	for _, name := range run.Sensitive {
		out = append(out, run.Parameters[name])
	}
	return out
}

// variables are what the templates of a step see.
func (run *Run) variables(phase, step string) render.Variables {
	return render.Variables{
		OperatorName: run.Version.Spec.Operator.Name, OperatorVersion: run.Version.Spec.Version, AppVersion: run.Version.Spec.AppVersion,
		From: render.PackageVersion(run.From), Name: run.Subject.Name, Namespace: run.Subject.Namespace,
		PlanName: run.Plan, PhaseName: phase, StepName: step,
		Params: run.values, Unset: run.unset, Defaults: run.defaults, Pipes: run.pipes, Budget: run.budget,
	}
}

// options returns the options of all renderings of the run. The templates of an install plan may make objects of any kind, since only users
// who may install packages decide what they are.
func (run *Run) options(more ...render.Option) []render.Option {
	if run.Installation != nil {
		more = append(more, render.WithAnyKind())
	}
	return more
}

// rendering is what templates render to: objects, the template of each, and events that tell of mistakes, as reason and message.
type rendering struct {
	objects   []*unstructured.Unstructured
	templates []string
	events    [][2]string
}

// render makes the objects of templates, in listed order.
func (run *Run) render(resources []string, v render.Variables) (rendering, error) {
	var out rendering
	resources = uniqueNames(resources)
	results, err := run.Version.Templates.All(resources, v, run.options()...)
	if err != nil {
		return out, err
	}
	seen := map[apply.ID]string{}
	for i, name := range resources {
		result := results[i]
		for _, warning := range result.Warnings {
			out.events = append(out.events, [2]string{v1beta1.EventFieldDropped, warning.String()})
		}
		for _, obj := range result.Objects {
			if other, double := seen[apply.IDOf(obj)]; double {
				conflict := fmt.Sprintf("templates %s and %s both make %s", other, name, apply.IDOf(obj))
				if other == name {
					conflict = fmt.Sprintf("template %s makes %s twice", name, apply.IDOf(obj))
				}
				return out, &apply.FatalError{Err: fmt.Errorf("%s: name each object once in a task", conflict)}
			}
			seen[apply.IDOf(obj)] = name
			out.objects, out.templates = append(out.objects, obj), append(out.templates, name)
		}
	}
	return out, nil
}

// uniqueNames drops names that are listed twice.
func uniqueNames(names []string) []string {
	known := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		twice := known[name]
		known[name] = true
		return twice
	})
}
