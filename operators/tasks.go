package operators

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/versions"
	"kudo.dev/kudo/pkg/text"
)

var taskKinds = []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask, v1beta1.DummyTask, v1beta1.PipeTask,
	v1beta1.KudoOperatorTask}

// IsTaskKind reports whether a kind of tasks exists.
func IsTaskKind(kind string) bool { return slices.Contains(taskKinds, kind) }

// ValidateTasks is the check that install and upgrade make: each task has a kind that exists, its templates are
// there, a Toggle has a parameter, a Pipe has files. It is weaker than ValidateTaskFields on purpose: packages that
// KUDO installed install.
func (p *Package) ValidateTasks() Errors {
	c := taskChecker{pkg: p}
	for i, task := range p.Operator.Tasks {
		c.at(i)
		switch task.Kind {
		case v1beta1.ApplyTask, v1beta1.DeleteTask:
			c.templates("resources", task.Spec.Resources)
		case v1beta1.ToggleTask:
			c.templates("resources", task.Spec.Resources)
			if task.Spec.Parameter == "" {
				c.fail("spec.parameter", "a Toggle needs the name of the parameter that selects")
			}
		case v1beta1.PipeTask:
			c.template("spec.pod", task.Spec.Pod)
			if len(task.Spec.Pipe) == 0 {
				c.fail("spec.pipe", "a Pipe needs at least one file")
			}
		case v1beta1.KudoOperatorTask:
			if task.Spec.ParameterFile != "" {
				c.template("spec.parameterFile", task.Spec.ParameterFile)
			}
		case v1beta1.DummyTask:
		default:
			c.kind(task.Kind)
		}
	}
	return c.errors
}

// ValidateTaskFields finds what makes a task fail when it is reached: all of ValidateTasks, and fields that its kind
// requires.
func (p *Package) ValidateTaskFields() Errors {
	c := taskChecker{pkg: p, errors: p.ValidateTasks()}
	for i, task := range p.Operator.Tasks {
		c.at(i)
		if task.Name == "" {
			c.fail("name", "a task needs a name, by which steps refer to it")
		}
		switch task.Kind {
		case v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask:
			if len(task.Spec.Resources) == 0 {
				c.fail("spec.resources", "a task of kind %s needs at least one template", task.Kind)
			}
		case v1beta1.PipeTask:
			for j, pipe := range task.Spec.Pipe {
				c.pipe(fmt.Sprintf("spec.pipe[%d]", j), pipe)
			}
		case v1beta1.KudoOperatorTask:
			if task.Spec.Package == "" {
				c.fail("spec.package", "a KudoOperator task needs the package to install")
			}
			if field, remedy := CheckShared(task.Spec); field != "" {
				c.fail("spec."+field, "%s", remedy)
			}
		}
	}
	return c.errors
}

// CheckShared returns the field that is wrong of a KudoOperator task whose Instance is shared, and the remedy; empty if none is, or if the
// Instance is not shared.
func CheckShared(spec v1beta1.TaskSpec) (field, remedy string) {
	switch {
	case !spec.Shared:
		return "", ""
	case len(validation.IsDNS1123Subdomain(spec.Package)) > 0:
		return "package", "must be the name of an operator, since a shared Instance is installed by itself"
	case len(validation.IsDNS1123Subdomain(spec.InstanceName)) > 0:
		return "instanceName", "must be the name of the Instance that is shared"
	case spec.ParameterFile != "":
		return "parameterFile", "cannot be used with shared: the Instance has parameters of its own"
	case spec.Content != "":
		return "content", "cannot be used with shared: the Instance is upgraded by itself"
	}
	const remedyOfRange = `must be a version or a range such as ^1.2 or ">=1.0, <3"`
	switch {
	case versions.CheckRange(spec.AppVersion) != nil:
		return "appVersion", remedyOfRange
	case versions.CheckRange(spec.OperatorVersion) != nil:
		return "operatorVersion", remedyOfRange
	}
	return "", ""
}

type taskChecker struct {
	pkg    *Package
	errors Errors
	field  string
	name   string
}

func (c *taskChecker) at(i int) {
	c.field, c.name = fmt.Sprintf("tasks[%d]", i), c.pkg.Operator.Tasks[i].Name
}

func (c *taskChecker) fail(field, format string, args ...any) {
	at := c.field + "." + field
	line := c.pkg.Line(OperatorFileName, at)
	if line == 0 {
		line = c.pkg.Line(OperatorFileName, c.field)
	}
	c.errors = append(c.errors, Finding{File: OperatorFileName, Line: line, Field: at,
		Message: fmt.Sprintf("task %q: ", c.name) + fmt.Sprintf(format, args...)})
}

func (c *taskChecker) kind(kind string) {
	hint := "use one of Apply, Delete, Toggle, Dummy, Pipe, KudoOperator"
	if near := text.Nearest(kind, taskKinds); near != "" {
		hint = "did you mean " + near + "?"
	}
	if kind == "" {
		c.fail("kind", "the kind is missing: %s", hint)
		return
	}
	c.fail("kind", "there is no kind %q: %s", text.Truncate(kind, 64), hint)
}

func (c *taskChecker) templates(field string, names []string) {
	for i, name := range names {
		c.template(fmt.Sprintf("spec.%s[%d]", field, i), name)
	}
}

func (c *taskChecker) template(field, name string) {
	if _, ok := c.pkg.Templates[name]; ok {
		return
	}
	if name == "" {
		c.fail(field, "the name of a template is missing")
		return
	}
	hint := ""
	if near := text.Nearest(name, slices.Sorted(maps.Keys(c.pkg.Templates))); near != "" {
		hint = ", did you mean " + near + "?"
	}
	c.fail(field, "there is no template %q in %s%s", text.Truncate(name, 64), TemplatesFolder, hint)
}

var pipeKey = regexp.MustCompile(`^[a-zA-Z0-9_\-]+$`)

func (c *taskChecker) pipe(field string, pipe v1beta1.PipeSpec) {
	if (pipe.File == "") == (pipe.EnvFile == "") {
		c.fail(field, "exactly one of file and envFile is needed")
	}
	if pipe.Kind != "Secret" && pipe.Kind != "ConfigMap" {
		c.fail(field+".kind", "there is no kind of pipe %q: use Secret or ConfigMap", text.Truncate(pipe.Kind, 64))
	}
	if !pipeKey.MatchString(pipe.Key) {
		c.fail(field+".key", "%q is no key: use letters, digits, _ and -", text.Truncate(pipe.Key, 64))
	}
	if pipe.NameSuffix != "" && len(validation.IsDNS1123Label(pipe.NameSuffix)) > 0 {
		c.fail(field+".nameSuffix", "%q cannot end the name of an object: use lower-case letters, digits and -, at most 63",
			text.Truncate(pipe.NameSuffix, 64))
	}
}
