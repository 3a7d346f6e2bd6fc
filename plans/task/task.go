// Package task holds the kinds of tasks as validated values.
package task

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// Task is one of Apply, Delete, Toggle, Dummy, Pipe and KudoOperator.
type Task interface{ Kind() string }

// Apply writes the objects of templates, and waits until they are healthy.
type Apply struct{ Resources []string }

// Delete deletes the objects of templates, and waits until they no longer exist.
type Delete struct{ Resources []string }

// Toggle applies or deletes, as a boolean parameter says.
type Toggle struct {
	Resources []string
	Parameter string
}

// Dummy does nothing, and ends as its fields say.
type Dummy struct{ WantErr, Fatal, Done bool }

// Pipe makes Secrets and ConfigMaps of files that a pod writes.
type Pipe struct {
	Pod   string
	Pipes []v1beta1.PipeSpec
	// Once is set if the objects are made only while none of them exists.
	Once bool
}

// KudoOperator runs another operator as a dependency.
type KudoOperator struct {
	Package, AppVersion, OperatorVersion string
	InstanceName, ParameterFile          string
	// EnablingParameter is a boolean parameter that decides whether there is a dependency; empty if there always is.
	EnablingParameter string
	// Content is the content digest that the OperatorVersion must have; empty if any is taken.
	Content string
	// Shared is set if the Instance is not made, but awaited.
	Shared bool
}

// Kind implements Task.
func (Apply) Kind() string { return v1beta1.ApplyTask }

// Kind implements Task.
func (Delete) Kind() string { return v1beta1.DeleteTask }

// Kind implements Task.
func (Toggle) Kind() string { return v1beta1.ToggleTask }

// Kind implements Task.
func (Dummy) Kind() string { return v1beta1.DummyTask }

// Kind implements Task.
func (Pipe) Kind() string { return v1beta1.PipeTask }

// Kind implements Task.
func (KudoOperator) Kind() string { return v1beta1.KudoOperatorTask }

var pipeKey = regexp.MustCompile(`^[a-zA-Z0-9_\-]+$`)

// New validates a task of an OperatorVersion. An error names the task, the field and the remedy.
func New(t v1beta1.Task) (Task, error) {
	fail := func(field, remedy string) (Task, error) {
		return nil, fmt.Errorf("task %q of kind %s: spec.%s: %s", t.Name, t.Kind, field, remedy)
	}
	spec := t.Spec
	switch t.Kind {
	case v1beta1.ApplyTask:
		if len(spec.Resources) == 0 {
			return fail("resources", "is empty: name at least one template to apply")
		}
		return Apply{spec.Resources}, nil
	case v1beta1.DeleteTask:
		if len(spec.Resources) == 0 {
			return fail("resources", "is empty: name at least one template whose objects are deleted")
		}
		return Delete{spec.Resources}, nil
	case v1beta1.ToggleTask:
		if len(spec.Resources) == 0 {
			return fail("resources", "is empty: name at least one template to toggle")
		}
		if spec.Parameter == "" {
			return fail("parameter", "is empty: name the boolean parameter that decides")
		}
		return Toggle{spec.Resources, spec.Parameter}, nil
	case v1beta1.DummyTask:
		return Dummy{spec.WantErr, spec.Fatal, spec.Done}, nil
	case v1beta1.PipeTask:
		return pipe(t, fail)
	case v1beta1.KudoOperatorTask:
		if spec.Package == "" {
			return fail("package", "is empty: name the operator to install")
		}
		if field, remedy := operators.CheckShared(spec); field != "" {
			return fail(field, remedy)
		}
		if spec.Content != "" && !operators.IsContentDigest(spec.Content) {
			return fail("content", "must be a content digest, sha256:<hex>: kubectl kudo package lock finds it")
		}
		return KudoOperator{spec.Package, spec.AppVersion, spec.OperatorVersion, spec.InstanceName, spec.ParameterFile,
			spec.EnablingParameter, spec.Content, spec.Shared}, nil
	}
	return nil, fmt.Errorf("task %q: kind %q is unknown: use Apply, Delete, Toggle, Dummy, Pipe or KudoOperator", t.Name, t.Kind)
}

func pipe(t v1beta1.Task, fail func(field, remedy string) (Task, error)) (Task, error) {
	if t.Spec.Pod == "" {
		return fail("pod", "is empty: name the template of the pod")
	}
	if len(t.Spec.Pipe) == 0 {
		return fail("pipe", "is empty: list at least one file")
	}
	for i, p := range t.Spec.Pipe {
		field := fmt.Sprintf("pipe[%d]", i)
		switch {
		case (p.File == "") == (p.EnvFile == ""):
			return fail(field, "set one of file and envFile")
		case p.Kind != "Secret" && p.Kind != "ConfigMap":
			return fail(field+".kind", "must be Secret or ConfigMap")
		case !pipeKey.MatchString(p.Key):
			return fail(field+".key", "must be of letters, digits, _ and -")
		case p.NameSuffix != "" && len(validation.IsDNS1123Label(p.NameSuffix)) > 0:
			return fail(field+".nameSuffix", "must be of lower-case letters, digits and -, at most 63, and begin and end with a letter or digit")
		}
	}
	return Pipe{t.Spec.Pod, t.Spec.Pipe, t.Spec.Once}, nil
}
