package operators

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// packageOf is a package of tasks, with the templates a.yaml and sub/b.yaml.
func packageOf(tasks ...v1beta1.Task) *Package {
	return &Package{Operator: OperatorFile{Tasks: tasks}, Templates: map[string]string{"a.yaml": "", "sub/b.yaml": ""}}
}

// TestTaskErrors checks the whole message of each mistake, in the order of tasks: at install, and when a task is reached.
func TestTaskErrors(t *testing.T) {
	type spec = v1beta1.TaskSpec
	file := v1beta1.PipeSpec{File: "/x", Kind: "Secret", Key: "k"}
	for name, tc := range map[string]struct {
		reason string
		task   v1beta1.Task
		want   []string // at install
		more   []string // besides, when the task is reached
	}{
		"NoName": {"steps refer to tasks by name", v1beta1.Task{Kind: "Dummy"}, nil,
			[]string{`tasks[0].name: task "": a task needs a name, by which steps refer to it`}},
		"ApplyNothing": {"an Apply needs a template", v1beta1.Task{Name: "t", Kind: "Apply"}, nil,
			[]string{`tasks[0].spec.resources: task "t": a task of kind Apply needs at least one template`}},
		"DeleteNothing": {"a Delete needs a template", v1beta1.Task{Name: "t", Kind: "Delete"}, nil,
			[]string{`tasks[0].spec.resources: task "t": a task of kind Delete needs at least one template`}},
		"ToggleNothing": {"a Toggle needs a template and a parameter", v1beta1.Task{Name: "t", Kind: "Toggle"},
			[]string{`tasks[0].spec.parameter: task "t": a Toggle needs the name of the parameter that selects`},
			[]string{`tasks[0].spec.resources: task "t": a task of kind Toggle needs at least one template`}},
		"ToggleTemplate": {"templates of a Toggle exist",
			v1beta1.Task{Name: "t", Kind: "Toggle",
				Spec: spec{Parameter: "P",
					Resources: []string{"x"}}}, []string{`tasks[0].spec.resources[0]: task "t": there is no template "x" in templates`}, nil},
		"TemplateEmpty": {"a template has a name", v1beta1.Task{Name: "t", Kind: "Apply", Spec: spec{Resources: []string{"a.yaml", ""}}},
			[]string{`tasks[0].spec.resources[1]: task "t": the name of a template is missing`}, nil},
		"TemplateNear": {"a name that was meant is proposed",
			v1beta1.Task{Name: "t", Kind: "Apply",
				Spec: spec{Resources: []string{"sub/c.yaml"}}},
			[]string{`tasks[0].spec.resources[0]: task "t": there is no template "sub/c.yaml" in templates, did you mean sub/b.yaml?`}, nil},
		"TemplateLong": {"a long name is cut",
			v1beta1.Task{Name: "t", Kind: "Apply",
				Spec: spec{Resources: []string{strings.Repeat("x", 100)}}}, []string{`tasks[0].spec.resources[0]: task "t": there is no template "` +
				strings.Repeat("x", 61) + `…" in templates`}, nil},
		"PipeNothing": {"a Pipe needs a pod and a file", v1beta1.Task{Name: "t", Kind: "Pipe"},
			[]string{`tasks[0].spec.pod: task "t": the name of a template is missing`,
				`tasks[0].spec.pipe: task "t": a Pipe needs at least one file`}, nil},
		"PipeFiles": {"each file of a Pipe is checked",
			v1beta1.Task{Name: "t", Kind: "Pipe",
				Spec: spec{Pod: "a.yaml",
					Pipe: []v1beta1.PipeSpec{file, {Kind: "Secret", Key: "k"}, {File: "/a", EnvFile: "/b", Kind: "ConfigMap", Key: "a_-9"}}}}, nil,
			[]string{`tasks[0].spec.pipe[1]: task "t": exactly one of file and envFile is needed`,
				`tasks[0].spec.pipe[2]: task "t": exactly one of file and envFile is needed`}},
		"PipeKind": {"the kind of a pipe is written exactly",
			v1beta1.Task{Name: "t", Kind: "Pipe",
				Spec: spec{Pod: "a.yaml", Pipe: []v1beta1.PipeSpec{{File: "/a", Kind: "secret", Key: "k"}, {File: "/a", Key: "k"}}}}, nil,
			[]string{`tasks[0].spec.pipe[0].kind: task "t": there is no kind of pipe "secret": use Secret or ConfigMap`,
				`tasks[0].spec.pipe[1].kind: task "t": there is no kind of pipe "": use Secret or ConfigMap`}},
		"PipeKey": {"a key is part of a name",
			v1beta1.Task{Name: "t", Kind: "Pipe",
				Spec: spec{Pod: "a.yaml",
					Pipe: []v1beta1.PipeSpec{{File: "/a", Kind: "Secret"}, {File: "/a", Kind: "Secret", Key: "a.b"},
						{File: "/a", Kind: "Secret", Key: "a\n"}}}}, nil,
			[]string{`tasks[0].spec.pipe[0].key: task "t": "" is no key: use letters, digits, _ and -`,
				`tasks[0].spec.pipe[1].key: task "t": "a.b" is no key: use letters, digits, _ and -`,
				`tasks[0].spec.pipe[2].key: task "t": "a\n" is no key: use letters, digits, _ and -`}},
		"PipeSuffix": {"G2: a suffix ends a name",
			v1beta1.Task{Name: "t", Kind: "Pipe",
				Spec: spec{Pod: "a.yaml", Pipe: []v1beta1.PipeSpec{{File: "/a", Kind: "Secret", Key: "k", NameSuffix: "tls"},
					{File: "/b", Kind: "Secret", Key: "l", NameSuffix: "{{ .Name }}"}}}}, nil,
			[]string{`tasks[0].spec.pipe[1].nameSuffix: task "t": "{{ .Name }}" cannot end the name of an object: use lower-case letters, digits and -, at most 63`}},
		"NoPackage": {"a dependency needs a package", v1beta1.Task{Name: "t", Kind: "KudoOperator", Spec: spec{ParameterFile: "a.yaml"}}, nil,
			[]string{`tasks[0].spec.package: task "t": a KudoOperator task needs the package to install`}},
		"ParamFile": {"a parameter file is a template",
			v1beta1.Task{Name: "t", Kind: "KudoOperator",
				Spec: spec{Package: "p",
					ParameterFile: "b.yaml"}},
			[]string{`tasks[0].spec.parameterFile: task "t": there is no template "b.yaml" in templates, did you mean a.yaml?`}, nil},
		"Kind": {"a kind that was meant is proposed", v1beta1.Task{Name: "t", Kind: "KudoOperators"},
			[]string{`tasks[0].kind: task "t": there is no kind "KudoOperators": did you mean KudoOperator?`}, nil},
		"KindFar": {"else all kinds are named", v1beta1.Task{Name: "t", Kind: "Wait"},
			[]string{`tasks[0].kind: task "t": there is no kind "Wait": use one of Apply, Delete, Toggle, Dummy, Pipe, KudoOperator`}, nil},
		"KindMissing": {"a kind is needed", v1beta1.Task{Name: "t"},
			[]string{`tasks[0].kind: task "t": the kind is missing: use one of Apply, Delete, Toggle, Dummy, Pipe, KudoOperator`}, nil},
		"Others": {"fields of other kinds do not matter",
			v1beta1.Task{Name: "t", Kind: "Dummy", Spec: spec{Resources: []string{"x"}, Pod: "x", ParameterFile: "x"}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := packageOf(tc.task)
			texts := func(errs Errors) []string {
				for i := range errs {
					if errs[i].File != OperatorFileName {
						t.Errorf("the file is %q", errs[i].File)
					}
					errs[i].File = ""
				}
				return findings(errs)
			}
			if diff := cmp.Diff(tc.want, texts(p.ValidateTasks())); diff != "" {
				t.Errorf("%s: at install: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(append(tc.want, tc.more...), texts(p.ValidateTaskFields())); diff != "" {
				t.Errorf("%s: when it is reached: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTaskErrorsOrder checks that mistakes come in the order of the tasks, those of install first.
func TestTaskErrorsOrder(t *testing.T) {
	p := packageOf(v1beta1.Task{Name: "a", Kind: "Apply"}, v1beta1.Task{Name: "b", Kind: "X"},
		v1beta1.Task{Kind: "Toggle", Spec: v1beta1.TaskSpec{Resources: []string{"a.yaml"}}})
	var fields []string
	for _, e := range p.ValidateTaskFields() {
		fields = append(fields, e.Field)
	}
	if diff := cmp.Diff([]string{"tasks[1].kind", "tasks[2].spec.parameter", "tasks[0].spec.resources", "tasks[2].name"},
		fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTaskErrorLines checks that a mistake has the line of its field, or that of its task.
func TestTaskErrorLines(t *testing.T) {
	p, err := Read(pkg("name: x\ntasks:\n- name: a\n  kind: Apply\n  spec:\n    resources:\n    - a.yaml\n    - b.yaml\n- name: b\n"+
		"  kind: Pipe\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`operator.yaml:7: tasks[0].spec.resources[0]: task "a": there is no template "a.yaml" in templates`,
		`operator.yaml:8: tasks[0].spec.resources[1]: task "a": there is no template "b.yaml" in templates`,
		`operator.yaml:9: tasks[1].spec.pod: task "b": the name of a template is missing`,
		`operator.yaml:9: tasks[1].spec.pipe: task "b": a Pipe needs at least one file`,
	}
	if diff := cmp.Diff(want, findings(p.ValidateTasks())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
