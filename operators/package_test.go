package operators

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/test/corpus"
)

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		VersionName("mysql", "5.7", "0.3.0"): "mysql-5.7-0.3.0",
		VersionName("cowsay", "", "0.2.0"):   "cowsay-0.2.0",
		DefaultInstanceName("mysql"):         "mysql-instance",
		ChildInstanceName("parent", "child"): "parent-child",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCheckInstanceName(t *testing.T) {
	for name, tc := range map[string]struct{ reason, name, want string }{
		"Right":   {"dots are allowed, as in other names", "db.v1-instance", ""},
		"Longest": {"what a label takes", strings.Repeat("x", 63), ""},
		"Long":    {"what it does not take", strings.Repeat("x", 64), "is longer than 63 characters"},
		"Letters": {"what names no object", "My_DB", `"My_DB" cannot name an Instance`},
		"Empty":   {"a name is needed", "", "cannot name an Instance"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckInstanceName(tc.name); err != nil {
				got = err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	fsys := pkg("name: x\noperatorVersion: 0.1.0\nappVersion: 5.7\nurl: u\ntasks: [{name: a, kind: Dummy}]\nplans: {deploy: {}}", "parameters: [{name: A, default: 1, hint: h}]")
	fsys["templates/a.yaml"] = &fstest.MapFile{Data: []byte("a")}
	p, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	operator, version, err := Convert(p, "ns")
	if err != nil {
		t.Fatal(err)
	}
	yes, no, one := true, false, "1"
	wantOperator := &v1beta1.Operator{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kudo.dev/v1beta1", Kind: "Operator"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "ns"},
		Spec:       v1beta1.OperatorSpec{URL: "u"},
	}
	wantVersion := &v1beta1.OperatorVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kudo.dev/v1beta1", Kind: "OperatorVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: "x-5.7-0.1.0", Namespace: "ns"},
		Spec: v1beta1.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Kind: "Operator", Name: "x"}, Version: "0.1.0", AppVersion: "5.7",
			Templates: map[string]string{"a.yaml": "a"}, Tasks: []v1beta1.Task{{Name: "a", Kind: "Dummy"}}, Plans: map[string]v1beta1.Plan{"deploy": {}},
			Parameters: []v1beta1.Parameter{{Name: "A", Default: &one, Required: &yes, Immutable: &no}},
		},
	}
	if diff := cmp.Diff(wantOperator, operator); diff != "" {
		t.Errorf("Operator: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(wantVersion, version); diff != "" {
		t.Errorf("OperatorVersion: -want +got:\n%s", diff)
	}
	version.Spec.Templates["a.yaml"], *version.Spec.Parameters[0].Default, version.Spec.Tasks[0].Name = "", "", ""
	if p.Templates["a.yaml"] != "a" || *p.Params.Parameters[0].Default != "1" || p.Operator.Tasks[0].Name != "a" {
		t.Error("the objects share nothing with the package")
	}
}

func TestConvertRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ reason, operator, want string }{
		"NoName":    {"a name is needed", "operatorVersion: 1.0.0", "operator.yaml: name: a name is required"},
		"NoVersion": {"a version is needed", "name: x", "operator.yaml: operatorVersion: a version is required"},
		"Upper":     {"names are lower case", "\nname: MyOp\noperatorVersion: 1.0.0", `operator.yaml:2: name: "MyOp" cannot name an object: use lower case`},
		"Long":      {"a name is a label", "name: " + strings.Repeat("x", 64) + "\noperatorVersion: 1.0.0", "cannot be the label kudo.dev/operator"},
		"Plus":      {"versions are part of a name", "name: x\noperatorVersion: 1.0.0+build", `operator.yaml:2: operatorVersion: "1.0.0+build" is part of the name`},
		"App":       {"versions are part of a name", "name: x\noperatorVersion: 1.0.0\nappVersion: v1_2", `operator.yaml:3: appVersion: "v1_2" is part of the name`},
		"Whole":     {"the whole is too long", "name: x\noperatorVersion: 1.0.0\nappVersion: " + strings.Repeat("1.", 123) + "1", "made of name, appVersion and operatorVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(pkg(tc.operator, ""))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := Convert(p, "ns"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestValidateTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, task        string
		installs, completes string // what is wrong at install, and what besides when it runs; empty is nothing
	}{
		"Apply":        {"a template that is there", "{kind: Apply, spec: {resources: [a.yaml]}}", "", ""},
		"Missing":      {"a template that is not", "{kind: Delete, spec: {resources: [a.yaml, b.yaml]}}", `tasks[0].spec.resources[1]: task "t": there is no template "b.yaml" in templates, did you mean a.yaml?`, ""},
		"NoResources":  {"an empty Apply is installed, but cannot run", "{kind: Apply}", "", "needs at least one template"},
		"Toggle":       {"a Toggle without parameter", "{kind: Toggle, spec: {resources: [a.yaml]}}", "a Toggle needs the name of the parameter", ""},
		"Pipe":         {"a Pipe without files", "{kind: Pipe, spec: {pod: a.yaml}}", "a Pipe needs at least one file", ""},
		"PipeNoPod":    {"a Pipe without pod", "{kind: Pipe, spec: {pipe: [{file: /a, kind: Secret, key: k}]}}", "spec.pod: task \"t\": the name of a template is missing", ""},
		"PipeBad":      {"files of a Pipe", "{kind: Pipe, spec: {pod: a.yaml, pipe: [{file: /a, envFile: /b, kind: Pod, key: a.b}]}}", "", "exactly one of file and envFile"},
		"Dummy":        {"a Dummy needs nothing", "{kind: Dummy}", "", ""},
		"KudoOperator": {"a dependency needs a package", "{kind: KudoOperator}", "", "needs the package to install"},
		"ParamFile":    {"a parameter file is a template", "{kind: KudoOperator, spec: {package: x, parameterFile: p.yaml}}", `there is no template "p.yaml"`, ""},
		"Kind":         {"kinds are written exactly", "{kind: apply}", `there is no kind "apply": did you mean Apply?`, ""},
		"NoKind":       {"a kind is needed", "{spec: {}}", "the kind is missing: use one of Apply", ""},
		"UnknownKind":  {"kinds that do not exist", "{kind: Helm}", `there is no kind "Helm": use one of Apply`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := pkg("name: x\ntasks:\n- "+strings.Replace(tc.task, "{", "{name: t, ", 1), "")
			fsys["templates/a.yaml"] = &fstest.MapFile{}
			p, err := Read(fsys)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what, want string, errs Errors) {
				if (want == "") != (len(errs) == 0) || !strings.Contains(errs.Error(), want) {
					t.Errorf("%s: %s: %q does not say %q", tc.reason, what, errs.Error(), want)
				}
				for _, e := range errs {
					if e.Line != 3 || e.File != "operator.yaml" {
						t.Errorf("the line is named: %v", e)
					}
				}
			}
			check("at install", tc.installs, p.ValidateTasks())
			check("in full", tc.installs+tc.completes, p.ValidateTaskFields())
		})
	}
}

func TestDependencies(t *testing.T) {
	p, err := Read(pkg(`
name: x
tasks:
- {name: unused, kind: KudoOperator, spec: {package: no}}
- {name: b, kind: KudoOperator, spec: {package: ../b, operatorVersion: 1.10}}
- {name: other, kind: Dummy}
- {name: a, kind: KudoOperator, spec: {package: a, appVersion: 2, instanceName: i}}
plans: {deploy: {phases: [{steps: [{tasks: [a, other]}]}]}, update: {phases: [{steps: [{tasks: [b, a]}]}]}}
`, ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []Dependency{{Index: 1, Task: "b", Package: "../b", OperatorVersion: "1.10"}, {Index: 3, Task: "a", Package: "a", AppVersion: "2"}}
	if diff := cmp.Diff(want, p.Dependencies()); diff != "" {
		t.Errorf("dependencies that plans use: -want +got:\n%s", diff)
	}
	c, err := p.WithDependencies(map[int]Reference{1: {Operator: "bee", AppVersion: "3", OperatorVersion: "1.11"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1beta1.TaskSpec{Package: "bee", AppVersion: "3", OperatorVersion: "1.11"}, c.Operator.Tasks[1].Spec); diff != "" {
		t.Errorf("references are replaced: -want +got:\n%s", diff)
	}
	if p.Operator.Tasks[1].Spec.Package != "../b" || c.Operator.Tasks[3].Spec.InstanceName != "i" {
		t.Error("only in the copy, and only these")
	}
	if _, err := p.WithDependencies(map[int]Reference{2: {}}); err == nil {
		t.Error("a task that is no dependency is refused")
	}
}

// All packages by others are read, converted, and rendered with their defaults in each step of each plan.
func TestCorpus(t *testing.T) {
	root := corpus.Require(t)
	for _, folder := range corpus.Folders(t, root, OperatorFileName) {
		t.Run(strings.TrimPrefix(folder, root+"/"), func(t *testing.T) {
			p, err := Read(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range p.Warnings {
				t.Log("warning:", warning)
			}
			if _, _, err := Convert(p, "default"); err != nil {
				t.Error(err)
			}
			if err := p.ValidateTaskFields().Err(); err != nil {
				t.Error(err)
			}
			if err := params.ValidateDefaults(p.Definitions()).Err(); err != nil {
				t.Error(err)
			}
			renderAll(t, p)
		})
	}
}

func renderAll(t *testing.T, p *Package) {
	t.Helper()
	// A value for what has none, as a user gives it.
	given := map[string]string{}
	for _, name := range params.Missing(p.Definitions(), nil) {
		given[name] = "given"
	}
	values, err := params.Resolve(p.Definitions(), given)
	if err != nil {
		t.Fatal(err)
	}
	set := render.New(p.Templates)
	v := render.Variables{OperatorName: p.Operator.Name, OperatorVersion: p.Operator.OperatorVersion, AppVersion: p.Operator.AppVersion,
		Name: DefaultInstanceName(p.Operator.Name), Namespace: "default", Params: values, Pipes: map[string]string{}}
	tasks := map[string]v1beta1.Task{}
	for _, task := range p.Operator.Tasks {
		tasks[task.Name] = task
		for _, pipe := range task.Spec.Pipe {
			v.Pipes[pipe.Key] = "artifact"
		}
	}
	for name, plan := range p.Operator.Plans {
		for _, phase := range plan.Phases {
			for _, step := range phase.Steps {
				v.PlanName, v.PhaseName, v.StepName = name, phase.Name, step.Name
				for _, task := range step.Tasks {
					renderTask(t, set, tasks[task], v)
				}
			}
		}
	}
}

func renderTask(t *testing.T, set *render.Set, task v1beta1.Task, v render.Variables) {
	t.Helper()
	for _, template := range task.Spec.Resources {
		result, err := set.Objects(template, v)
		if err != nil {
			t.Error(err)
		}
		for _, warning := range result.Warnings {
			t.Log("warning:", warning)
		}
	}
	if task.Spec.Pod != "" {
		if result, err := set.Objects(task.Spec.Pod, v, render.WithoutNames()); err != nil || len(result.Objects) != 1 {
			t.Errorf("rule 14: a pipe pod is one object without a name: %d, %v", len(result.Objects), err)
		}
	}
	if task.Spec.ParameterFile != "" {
		if _, err := set.Parameters(task.Spec.ParameterFile, v); err != nil {
			t.Error(err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("name: x\ntasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]\nplans: {deploy: {phases: [{steps: [{tasks: [a]}]}]}}", "parameters: [{name: A, default: 1, enum: [1, {a: b}]}]")
	f.Add("plans: &a {x: {phases: [*a]}}\n<<: *a", "groups: [{prio: 1}]")
	f.Fuzz(func(t *testing.T, operator, parameters string) {
		p, err := Read(pkg(operator, parameters))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		_ = p.ValidateTaskFields().Error()
		_ = p.Dependencies()
		_, _, _ = Convert(p.DeepCopy(), "ns")
		_, _ = params.Resolve(p.Definitions(), nil)
	})
}
