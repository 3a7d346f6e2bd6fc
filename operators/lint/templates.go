package lint

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
)

func parametersDefined(s *Subject) Findings {
	return Findings{Errors: s.analysis().undefined, Warnings: s.analysis().unset}
}

func checkImplicitNames(s *Subject) Findings { return Findings{Errors: s.analysis().invalid} }

func pipes(s *Subject) Findings { return Findings{Errors: s.analysis().noPipe} }

// definitions warns of uses of definitions that do not exist: they fail only when they are reached.
func definitions(s *Subject) Findings { return Findings{Warnings: s.analysis().noDefinition} }

// templatesParse finds templates that are none, or use functions that do not exist or are denied.
func templatesParse(s *Subject) (found Findings) {
	for _, name := range s.templates.Names() {
		if err := s.templates.Check(name); err != nil {
			found.Errors = append(found.Errors, failed(name, err, "template file %q reports the following error: %s"))
		}
	}
	return found
}

// failed is the finding of an error of a template. The format has the template and the reason.
func failed(name string, err error, format string) operators.Finding {
	var e *render.Error
	if !errors.As(err, &e) {
		return templateFinding(name, 0, format, name, err)
	}
	if e.Kind == render.DecodeError {
		// Its line is one of the rendered text, so that the message has to say so.
		return templateFinding(name, 0, format, name, e.Error())
	}
	reason := e.Reason
	if e.Hint != "" {
		reason += "; " + e.Hint
	}
	return templateFinding(e.Template, e.Line, format, name, reason)
}

// templatesDefined finds templates that tasks name, but that are not there.
func templatesDefined(s *Subject) (found Findings) {
	for i := range s.Operator.Tasks {
		for _, use := range s.TaskUses(i) {
			if use.Template != "" && !s.templates.Has(use.Template) {
				found.Errors = append(found.Errors, s.operatorFinding(taskPlaces(i, use.Field), "template %q required by %s but is not defined%s",
					use.Template, use.Task, closestName(use.Template, s.templates.Names())))
			}
		}
	}
	return found
}

// templatesUsed warns of templates that nothing names. Files of definitions are not meant to be.
func templatesUsed(s *Subject) (found Findings) {
	named, a := referenced(s.Package), s.analysis()
	for _, name := range s.templates.Names() {
		if !named[name] && !a.reached[name] && !a.onlyDefines(name) {
			found.Warnings = append(found.Warnings, templateFinding(name, 0, "template %q is not referenced from any task", name))
		}
	}
	return found
}

// rendering is what a use of a template renders to, with the defaults of all parameters.
type rendering struct {
	use    operators.Use
	result render.Result
	err    error
}

// allUses are the uses of templates by all plans; tasks that no plan uses count as if deploy did.
func (s *Subject) allUses() []operators.Use {
	uses := s.Uses()
	inPlan := map[int]bool{}
	for _, use := range uses {
		inPlan[use.Index] = true
	}
	for i := range s.Operator.Tasks {
		if !inPlan[i] {
			for _, use := range s.TaskUses(i) {
				use.Plan, use.Phase, use.Step = "deploy", "deploy", "deploy"
				uses = append(uses, use)
			}
		}
	}
	return uses
}

// render renders each template at all places where it is used.
func (s *Subject) render() []rendering {
	values, err := params.Resolve(s.Definitions(), s.samples())
	if err != nil {
		return nil // said by bounds
	}
	v := render.Variables{
		OperatorName: s.Operator.Name, OperatorVersion: s.Operator.OperatorVersion, AppVersion: s.Operator.AppVersion,
		Namespace: "default", Params: values,
	}
	before := s.versionsBefore()
	all := s.renderFrom(v)
	for _, v.From = range before[1:] {
		for n, r := range s.renderFrom(v) {
			if first := all[n]; !reflect.DeepEqual(r.result, first.result) || fmt.Sprint(r.err) != fmt.Sprint(first.err) {
				all = append(all, r)
			}
		}
	}
	return all
}

// versionsBefore are those that templates are rendered with: none, and then, if they use it, the version itself.
func (s *Subject) versionsBefore() []render.PackageVersion {
	out := []render.PackageVersion{{}}
	if s.templates.UsesFrom() {
		out = append(out, render.PackageVersion{OperatorVersion: s.Operator.OperatorVersion, AppVersion: s.Operator.AppVersion})
	}
	return out
}

// renderFrom renders each template at all places where it is used, from one version before.
func (s *Subject) renderFrom(v render.Variables) (all []rendering) {
	type place struct {
		template, plan, phase, step string
		role                        operators.Role
	}
	done := map[place]bool{}
	for _, use := range s.allUses() {
		at := place{use.Template, use.Plan, use.Phase, use.Step, use.Role}
		if done[at] || !s.templates.Has(use.Template) || s.templates.Check(use.Template) != nil {
			continue // said by templatesDefined and templatesParse
		}
		done[at] = true
		v.Name = operators.DefaultInstanceName(s.Operator.Name)
		if s.installs(use) {
			v.Name = operators.VersionName(s.Operator.Name, s.Operator.AppVersion, s.Operator.OperatorVersion)
		}
		v.Pipes = s.Pipes(v.Name)
		v.PlanName, v.PhaseName, v.StepName = use.Plan, use.Phase, use.Step
		r := s.renderUse(use, v)
		if r.err != nil {
			// A template may demand a parameter that other templates do without.
			if demanded, err := params.Resolve(s.Definitions(), s.optionalSamples()); err == nil {
				given := v
				given.Params = demanded
				if again := s.renderUse(use, given); again.err == nil {
					r = again
				}
			}
		}
		all = append(all, r)
	}
	return all
}

func (s *Subject) renderUse(use operators.Use, v render.Variables) rendering {
	r := rendering{use: use}
	switch use.Role {
	case operators.Parameters:
		_, r.err = s.templates.Parameters(use.Template, v)
	default:
		r.result, r.err = s.templates.Objects(use.Template, v, s.options(use)...)
	}
	return r
}

// options are those with which the engine renders a use of a template.
func (s *Subject) options(use operators.Use) (options []render.Option) {
	if use.Role == operators.PipePod {
		options = append(options, render.WithoutNames())
	}
	if s.installs(use) {
		options = append(options, render.WithAnyKind())
	}
	return options
}

// samples are made-up values of parameters that users must set, by their type.
func (s *Subject) samples() map[string]string {
	samples := map[string]string{}
	for _, name := range params.Missing(s.Definitions(), nil) {
		samples[name] = "sample"
	}
	for _, p := range s.Definitions() {
		if _, missing := samples[p.Name]; !missing {
			continue
		}
		switch {
		case p.Enum != nil && len(*p.Enum) > 0:
			samples[p.Name] = (*p.Enum)[0]
		case p.Type == "integer", p.Type == "number":
			samples[p.Name] = "1"
		case p.Type == "boolean":
			samples[p.Name] = "true"
		}
	}
	return samples
}

// optionalSamples are samples, and made-up values of the texts that are empty by default.
func (s *Subject) optionalSamples() map[string]string {
	samples := s.samples()
	for _, p := range s.Definitions() {
		if _, given := samples[p.Name]; !given && (p.Type == "" || p.Type == "string") && p.Default != nil && *p.Default == "" {
			samples[p.Name] = "sample"
		}
	}
	return samples
}

// renders finds templates that fail with the defaults, or do not render to objects. If a value had to be made up, the
// failure may come from it, and is a warning.
func renders(s *Subject) (found Findings) {
	samples := s.samples()
	reported := map[operators.Finding]bool{}
	for _, r := range s.rendered() {
		for _, w := range r.result.Warnings {
			found.Warnings = append(found.Warnings, templateFinding(w.Template, 0, "line %d of what %s renders to: %s", w.Line, w.Template,
				w.Message))
		}
		if r.err == nil {
			continue
		}
		finding := failed(r.use.Template, r.err, "rendering template %q with the defaults failed: %s")
		switch {
		case reported[finding], s.withHint(finding):
		case len(samples) > 0:
			finding.Message += fmt.Sprintf(" (with made-up values for %s)", strings.Join(slices.Sorted(maps.Keys(samples)), ", "))
			found.Warnings = append(found.Warnings, finding)
		default:
			found.Errors = append(found.Errors, finding)
		}
		reported[finding] = true
	}
	return found
}

// withHint reports whether the analysis has said already why a line fails.
func (s *Subject) withHint(f operators.Finding) bool {
	a := s.analysis()
	for _, list := range [][]operators.Finding{a.undefined, a.invalid, a.noPipe} {
		for _, known := range list {
			if f.Line > 0 && known.File == f.File && known.Line == f.Line {
				return true
			}
		}
	}
	return false
}

// namespaceText finds objects of kind Namespace in parts of a template that the defaults leave out.
var namespaceText = regexp.MustCompile(`(?m)^["']?kind["']?:[ \t]*["']?Namespace["']?[ \t\r]*(#.*)?$`)

func isNamespace(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Namespace" && o.GetAPIVersion() == "v1"
}

// namespaceManifest finds that the template of the namespace is missing, or holds anything but one Namespace.
func namespaceManifest(s *Subject) (found Findings) {
	manifest := s.Operator.NamespaceManifest
	if manifest == "" {
		return found
	}
	fail := func(format string, args ...any) {
		found.Errors = append(found.Errors, s.operatorFinding([]string{"namespaceManifest"}, format, args...))
	}
	if !s.templates.Has(manifest) {
		fail("template %q required by namespaceManifest but is not defined%s", manifest, closestName(manifest, s.templates.Names()))
		return found
	}
	values, err := params.Resolve(s.Definitions(), s.samples())
	if err != nil || s.templates.Check(manifest) != nil {
		return found // said by bounds and templatesParse
	}
	result, err := s.templates.Objects(manifest, render.Variables{
		OperatorName: s.Operator.Name, OperatorVersion: s.Operator.OperatorVersion, AppVersion: s.Operator.AppVersion,
		Name: operators.DefaultInstanceName(s.Operator.Name), Namespace: "default", Params: values,
	}, render.WithoutNames())
	if err != nil {
		found.Errors = append(found.Errors, failed(manifest, err, "rendering template %q with the defaults failed: %s"))
		return found
	}
	if len(result.Objects) != 1 || !isNamespace(result.Objects[0]) {
		fail("namespaceManifest %q must hold exactly one object of kind Namespace, and nothing else", manifest)
	}
	return found
}

// claims finds PersistentVolumeClaims of plans that are deleted with the Instance, and of which the template does not say that this is
// meant, by the annotation KeepAnnotation.
func claims(s *Subject) (found Findings) {
	reported := map[string]bool{}
	for _, r := range s.rendered() {
		applies := r.use.Role == operators.Applied || r.use.Role == operators.Toggled
		if !applies || s.installs(r.use) {
			continue
		}
		for _, o := range r.result.Objects {
			_, decided := o.GetAnnotations()[v1beta1.KeepAnnotation]
			if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "PersistentVolumeClaim"}) || decided ||
				v1beta1.IsKept(o.GetAnnotations()) || reported[r.use.Template] {
				continue
			}
			reported[r.use.Template] = true
			found.Warnings = append(found.Warnings, templateFinding(r.use.Template, 0, "PersistentVolumeClaim %s is deleted with the Instance, "+
				"and its data with it: add the annotation %s: \"true\" to keep it, or \"false\" if that is meant", o.GetName(), v1beta1.KeepAnnotation))
		}
	}
	return found
}

// namespaces finds objects of kind Namespace in templates of plans: the namespace of an Instance is there before it. The
// install plan makes what Instances share, which may be in a namespace of its own.
func namespaces(s *Subject) (found Findings) {
	bad := map[string]bool{}
	for _, r := range s.rendered() {
		for _, o := range r.result.Objects {
			if isNamespace(o) {
				bad[r.use.Template] = true
			}
		}
	}
	for name, text := range s.Templates {
		if namespaceText.MatchString(text) {
			bad[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		if name == s.Operator.NamespaceManifest || s.onlyInstalls(name) {
			continue
		}
		or := ""
		if s.Operator.InstallPlan != "" {
			or = ", and those that only the install plan uses"
		}
		line := 0
		if at := namespaceText.FindStringIndex(s.Templates[name]); at != nil {
			line = strings.Count(s.Templates[name][:at[0]], "\n") + 1
		}
		found.Errors = append(found.Errors, operators.Finding{File: path.Join(operators.TemplatesFolder, name), Line: line,
			Message: fmt.Sprintf("template %q contains a Namespace: only the template that namespaceManifest names may%s", name, or)})
	}
	return found
}
