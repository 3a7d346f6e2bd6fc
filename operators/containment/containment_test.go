package containment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/test/corpus"
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
		"From":       {"G5: what an upgrade from the version that is there renders", object + "data: {a: {{ if eq .From.AppVersion \"15\" }}{{ .Params.B }}{{ end }}}\n", "apply", hostile, "parameter B changes the structure"},
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
		err := Check(t.Context(), version(t, tc.template, tasks...), Subject{Name: "i", Namespace: "ns", Parameters: map[string]string{"B": tc.value},
			From: v1beta1.PackageVersion{AppVersion: "15"}})
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

// TestBudget: however an OperatorVersion spends what it may hold, a check ends, and says which bound it was.
func TestBudget(t *testing.T) {
	const refused = "the values of parameters cannot be checked, since the templates of all plans together take more work than that of going through 256 MiB: " +
		"make the templates smaller, or use them in fewer steps; values of letters and digits need no check"
	steps := func(n int, tasks ...string) v1beta1.Plan {
		phase := v1beta1.Phase{Name: "main"}
		for i := range n {
			phase.Steps = append(phase.Steps, v1beta1.Step{Name: fmt.Sprint(i), Tasks: tasks})
		}
		return v1beta1.Plan{Phases: []v1beta1.Phase{phase}}
	}
	lines := strings.Repeat("  # a line\n", 100_000)
	for name, tc := range map[string]struct {
		reason string
		value  string
		change func(spec *v1beta1.OperatorVersionSpec)
		want   string
	}{
		"Loops": {"templates that compute for long, each within its bound", "a b", func(spec *v1beta1.OperatorVersionSpec) {
			spec.Templates["t.yaml"] = object + `{{ $a := repeat 1000000 "aB" }}{{ range until 20 }}{{ $x := lower $a }}{{ end }}` + "data: {a: {{ .Params.B | quote }}}\n"
			spec.Plans["backup"] = steps(100, "apply")
		}, refused},
		"Parsing": {"long templates in many steps", "a b", func(spec *v1beta1.OperatorVersionSpec) {
			spec.Templates["t.yaml"] = object + "data:\n" + lines + "  a: {{ .Params.B | quote }}\n"
			spec.Plans["backup"] = steps(10_000, "apply")
		}, refused},
		"Values": {"long values in many steps", strings.Repeat("a b ", 250_000), func(spec *v1beta1.OperatorVersionSpec) {
			spec.Templates["t.yaml"] = object
			spec.Plans["backup"] = steps(10_000, "apply")
		}, refused},
		"Guilty": {"a value that is refused, among many that may be to blame", "[b]", func(spec *v1beta1.OperatorVersionSpec) {
			text := object + "data:\n" + lines
			for n := range 50 {
				name, value := fmt.Sprintf("A%d", n), "[b]"
				spec.Parameters = append(spec.Parameters, v1beta1.Parameter{Name: name, Default: &value})
				text += fmt.Sprintf("  %s: {{ .Params.%s }}\n", name, name)
			}
			spec.Templates["t.yaml"] = text + "  a: {{ .Params.B }}\n"
			spec.Plans["backup"] = steps(1, "apply")
		}, ""},
		"Plans": {"plans without steps, and pipes in one", "a b", func(spec *v1beta1.OperatorVersionSpec) {
			for n := range 10_000 {
				name := fmt.Sprintf("p%d", n)
				spec.Tasks = append(spec.Tasks, v1beta1.Task{Name: name, Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pod: "none.yaml", Pipe: []v1beta1.PipeSpec{{Key: name}}}})
				spec.Plans[name] = steps(1, name)
			}
		}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			spec, began := version(t, object+"data: {a: {{ .Params.B | quote }}}\n", "apply"), time.Now()
			tc.change(spec)
			err := check(t.Context(), spec, Subject{Name: "i", Namespace: "ns", Parameters: map[string]string{"B": tc.value}}, render.NewBudget(MaxWork/8), func(string) bool { return true })
			t.Logf("answered after %s", time.Since(began).Round(time.Millisecond))
			if err == nil || tc.want != "" && err.Error() != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestPackagesStayBelow: a check of any package that is there takes less than an eighth of what it may.
func TestPackagesStayBelow(t *testing.T) {
	folders := corpus.Folders(t, filepath.Join("..", "catalog"), operators.OperatorFileName)
	if dir := corpus.Optional(t); dir != "" {
		folders = append(folders, corpus.Folders(t, dir, operators.OperatorFileName)...)
	}
	checked := 0
	for _, folder := range folders {
		pkg, err := operators.Read(os.DirFS(folder))
		if err != nil {
			continue // a package that is meant to be wrong
		}
		_, ov, err := operators.Convert(pkg, "ns")
		if err != nil {
			continue
		}
		given := map[string]string{}
		for _, name := range params.Missing(ov.Spec.Parameters, nil) {
			given[name] = "1"
		}
		for _, def := range ov.Spec.Parameters {
			if def.Type == "" || def.Type == v1beta1.StringType {
				values := maps.Clone(given)
				values[def.Name] = "[a, b]"
				err := check(t.Context(), &ov.Spec, Subject{Name: "i", Namespace: "ns", Parameters: values}, render.NewBudget(MaxWork/8), func(string) bool { return true })
				var e *render.Error
				if errors.As(err, &e) && e.Kind == render.BudgetError {
					t.Errorf("%s, parameter %s: %v", folder, def.Name, err)
				}
				checked++
			}
		}
	}
	t.Logf("%d parameters of %d folders", checked, len(folders))
}
