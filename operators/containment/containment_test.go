package containment

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

// version has a template in each plan, and one that an install plan uses.
func version(t *testing.T, template string, tasks ...string) *v1beta1.OperatorVersionSpec {
	t.Helper()
	standard, empty := "a b", ""
	steps := func(tasks []string) []v1beta1.Phase {
		return []v1beta1.Phase{{Name: "main", Steps: []v1beta1.Step{{Name: "all", Tasks: tasks}}}}
	}
	return &v1beta1.OperatorVersionSpec{
		Parameters: []v1beta1.Parameter{{Name: "A", Default: &standard}, {Name: "B", Default: &empty}},
		Templates:  map[string]string{"t.yaml": template},
		Tasks: []v1beta1.Task{
			{Name: "apply", Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"t.yaml"}}},
			{Name: "pipe", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pod: "t.yaml"}},
			{Name: "child", Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{ParameterFile: "t.yaml"}},
		},
		Plans: map[string]v1beta1.Plan{"deploy": {}, "backup": {Phases: steps(tasks)}},
	}
}

// TestCheck is T21: what admission and the command line say before a run does.
func TestCheck(t *testing.T) {
	const hostile = "[b]"
	data := object + "data: {a: {{ .Params.B }}}\n"
	for name, tc := range map[string]struct {
		reason, template, task, value, want string
	}{
		"Plain":      {"a plain value", data, "apply", "b", ""},
		"Apply":      {"a template of any plan", data, "apply", hostile, "parameter B changes the structure of template t.yaml (data.a is a list instead of one value): a value"},
		"Pipe":       {"the pod of a pipe", data, "pipe", hostile, "parameter B changes the structure"},
		"Parameters": {"the parameters of a dependency", "X: {{ .Params.B }}\n", "child", "x\nY: z", "parameter B changes the structure of template t.yaml (the document has 2 keys instead of 1)"},
		"Unused":     {"a template that no plan uses", data, "", hostile, ""},
		"Quoted":     {"a value between quotes", object + "data: {a: {{ .Params.B | quote }}}\n", "apply", hostile, ""},
		"Broken":     {"a template that fails anyhow: the run says so", "{{ .Params.NONE }}", "apply", hostile, ""},
		"NoObject":   {"a template that is no object anyhow", "a: {{ .Params.B | quote }}", "apply", hostile, ""},
		"Default":    {"what the author wrote is no attack", object + "data: {a: {{ .Params.A | quote }}}\n", "apply", "b", ""},
	} {
		var tasks []string
		if tc.task != "" {
			tasks = append(tasks, tc.task)
		}
		err := Check(t.Context(), version(t, tc.template, tasks...), Subject{Name: "i", Namespace: "ns", Parameters: map[string]string{"B": tc.value}})
		var e *render.Error
		if (err == nil) != (tc.want == "") || err != nil && (!errors.As(err, &e) || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

// TestCheckInstall: the install plan is checked by itself, with its own parameters.
func TestCheckInstall(t *testing.T) {
	spec := version(t, object+"data: {a: {{ .Params.B }}}\n", "apply")
	spec.InstallPlan = "backup"
	subject := Subject{Name: "i", Namespace: "ns", Parameters: map[string]string{"B": "[x]"}}
	if err := Check(t.Context(), spec, subject); err != nil {
		t.Errorf("the plans of Instances: %v", err)
	}
	if err := CheckInstall(t.Context(), spec, subject); err == nil {
		t.Error("the install plan is not checked")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CheckInstall(ended, spec, subject); !errors.Is(err, context.Canceled) {
		t.Errorf("with no time left: %v", err)
	}
}
