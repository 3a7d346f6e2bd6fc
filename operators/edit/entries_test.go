package edit

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

func TestSetDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, kind, text, want string
	}{
		"Text":    {"text is text", "", "a b", "a b\n"},
		"Empty":   {"an empty text is one, too", "string", "", "\"\"\n"},
		"Number":  {"a number is a text that looks like one", "integer", "3", "\"3\"\n"},
		"Boolean": {"so is a boolean", "boolean", "true", "\"true\"\n"},
		"Word":    {"and a word that is a boolean in YAML 1.1", "string", "yes", "\"yes\"\n"},
		"Array":   {"an array is a list", "array", "[a, b]", "[a, b]\n"},
		"Map":     {"a map is a map", "map", "{a: 1}", "{a: 1}\n"},
		"Lines":   {"text of lines is a block", "string", "a\nb\n", "|\n    a\n    b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Parameter{Type: tc.kind}
			if err := p.SetDefault(tc.text); err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(p.Default)
			if err != nil || string(got) != tc.want {
				t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
	for _, tc := range []struct{ reason, kind, text string }{
		{"an empty array is written as []", "array", ""},
		{"an empty map is written as {}", "map", "# nothing"},
		{"an array is YAML", "array", "["},
	} {
		p := Parameter{Type: tc.kind}
		if err := p.SetDefault(tc.text); err == nil || p.Default != nil {
			t.Errorf("%s: %v, %v", tc.reason, p.Default, err)
		}
	}
}

// TestTextStaysText checks that a default and an enum are read as the text that was given, whatever YAML takes it for without quotes.
func TestTextStaysText(t *testing.T) {
	for _, text := range []string{
		"yes", "on", "n", "y", "NO", "Off", "~", "null", "", "0777", "0o7", "0b11", "0x1F", "1:30", "190:20:30", "1_000", "1e3", "+1", ".5",
		".inf", "1.0", "2020-01-01", "a: b", "- x", "#c", " x", "x\n", "a\r\nb", "=", "<<", "\ttab", "é", "\u2028", `"`, "'", "[",
		"{{ .Name }}", "*a", "&a", "!x", "%", "@",
	} {
		p := Parameter{Name: "P", Enum: []string{text}}
		if err := p.SetDefault(text); err != nil {
			t.Fatal(err)
		}
		got := read(t, operators.ParamsFileName, Entry{List: "parameters", Value: p}).Params.Parameters[0]
		if got.Default == nil || *got.Default != text {
			t.Errorf("the default %q is read as %v", text, got.Default)
		}
		if diff := cmp.Diff(&[]string{text}, got.Enum); diff != "" {
			t.Errorf("the enum of %q: %s", text, diff)
		}
	}
}

func TestAddStep(t *testing.T) {
	plan := Plan{Strategy: "serial"}
	plan.AddStep("one", "parallel", Step{Name: "a", Tasks: []string{"x"}})
	plan.AddStep("two", "serial", Step{Name: "b", Tasks: []string{"y", "z"}})
	plan.AddStep("one", "serial", Step{Name: "c", Tasks: []string{"x"}})
	want := Plan{Strategy: "serial", Phases: []Phase{
		{Name: "one", Strategy: "parallel", Steps: []Step{{"a", []string{"x"}}, {"c", []string{"x"}}}},
		{Name: "two", Strategy: "serial", Steps: []Step{{"b", []string{"y", "z"}}}},
	}}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("steps of one phase stay together, and a phase keeps its strategy: %s", diff)
	}
}

const (
	operatorYAML = `name: web
operatorVersion: 0.1.0
tasks:
- {name: a, kind: Dummy, spec: {done: true}}
plans:
  deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [a]}]}]}
`
	paramsYAML = "apiVersion: kudo.dev/v1beta1\n"
)

// folder is a package in memory.
func folder() fstest.MapFS {
	return fstest.MapFS{
		operators.OperatorFileName: {Data: []byte(operatorYAML)}, operators.ParamsFileName: {Data: []byte(paramsYAML)},
	}
}

// read returns the package of the folder after an entry was added to a file.
func read(t *testing.T, file string, entry Entry) *operators.Package {
	t.Helper()
	text, err := Insert(folder()[file].Data, entry)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := operators.Read(Overlay(folder(), file, text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return pkg
}

// TestEntriesAreRead checks that each field of an entry has the name under which packages are read.
func TestEntriesAreRead(t *testing.T) {
	no := false
	parameter := Parameter{
		Name: "LIMIT", DisplayName: "Limit", Description: "How many.", Hint: "few", Group: "g", Advanced: true, Type: "string",
		Required: &no, Immutable: true, Sensitive: true, Trigger: "deploy", Enum: []string{"1", "2"}, Pattern: "[12]", MaxLines: 1,
	}
	if err := parameter.SetDefault("1"); err != nil {
		t.Fatal(err)
	}
	pkg := read(t, operators.ParamsFileName, Entry{List: "parameters", Value: parameter})
	yes, one, lines := true, "1", int32(1)
	want := operators.Parameter{Group: "g", Advanced: true, Hint: "few", Parameter: v1beta1.Parameter{
		Name: "LIMIT", DisplayName: "Limit", Description: "How many.", Type: v1beta1.StringType, Required: &no, Immutable: &yes,
		Sensitive: true, Trigger: "deploy", Enum: &[]string{"1", "2"}, Pattern: "[12]", MaxLines: &lines, Default: &one,
	}}
	if diff := cmp.Diff([]operators.Parameter{want}, pkg.Params.Parameters); diff != "" {
		t.Errorf("parameter: %s", diff)
	}

	pkg = read(t, operators.OperatorFileName, Entry{List: "maintainers", Value: ann})
	if got := pkg.Operator.Maintainers; len(got) != 1 || got[0].Name != ann.Name || got[0].Email != ann.Email {
		t.Errorf("maintainers: %+v", got)
	}

	plan := Plan{Strategy: "parallel"}
	plan.AddStep("x", "parallel", Step{Name: "y", Tasks: []string{"a"}})
	pkg = read(t, operators.OperatorFileName, Entry{List: "plans", Name: "backup", Value: plan})
	wanted := v1beta1.Plan{Strategy: "parallel", Phases: []v1beta1.Phase{
		{Name: "x", Strategy: "parallel", Steps: []v1beta1.Step{{Name: "y", Tasks: []string{"a"}}}},
	}}
	if diff := cmp.Diff(wanted, pkg.Operator.Plans["backup"]); diff != "" || pkg.Operator.Plans["deploy"].Phases == nil {
		t.Errorf("plans: %v %s", pkg.Operator.Plans, diff)
	}
}

// TestTasksAreRead checks the fields of all kinds of tasks.
func TestTasksAreRead(t *testing.T) {
	yes := true
	for kind, tc := range map[string]struct {
		added TaskSpec
		want  v1beta1.TaskSpec
	}{
		v1beta1.ApplyTask: {TaskSpec{Resources: []string{"a.yaml"}}, v1beta1.TaskSpec{Resources: []string{"a.yaml"}}},
		v1beta1.ToggleTask: {
			TaskSpec{Resources: []string{"a.yaml"}, Parameter: "P"},
			v1beta1.TaskSpec{Resources: []string{"a.yaml"}, Parameter: "P"},
		},
		v1beta1.PipeTask: {
			TaskSpec{Pod: "p.yaml", Once: true, Pipe: []Pipe{{File: "/f", Kind: "Secret", Key: "k", NameSuffix: "s"}, {EnvFile: "/e", Kind: "ConfigMap", Key: "l"}}},
			v1beta1.TaskSpec{Pod: "p.yaml", Once: true, Pipe: []v1beta1.PipeSpec{
				{File: "/f", Kind: "Secret", Key: "k", NameSuffix: "s"}, {EnvFile: "/e", Kind: "ConfigMap", Key: "l"},
			}},
		},
		v1beta1.KudoOperatorTask: {
			TaskSpec{Package: "db", AppVersion: "1", OperatorVersion: "2", InstanceName: "i", ParameterFile: "p.yaml"},
			v1beta1.TaskSpec{Package: "db", AppVersion: "1", OperatorVersion: "2", InstanceName: "i", ParameterFile: "p.yaml"},
		},
		v1beta1.DummyTask: {TaskSpec{WantErr: true, Fatal: true, Done: &yes}, v1beta1.TaskSpec{WantErr: true, Fatal: true, Done: true}},
	} {
		pkg := read(t, operators.OperatorFileName, Entry{List: "tasks", Value: Task{Name: "b", Kind: kind, Spec: tc.added}})
		if n := len(pkg.Operator.Tasks); n != 2 || pkg.Operator.Tasks[0].Name != "a" {
			t.Errorf("%s: the task comes after the one that is there: %+v", kind, pkg.Operator.Tasks)
			continue
		}
		if diff := cmp.Diff(v1beta1.Task{Name: "b", Kind: kind, Spec: tc.want}, pkg.Operator.Tasks[1]); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestOverlay(t *testing.T) {
	changed := Overlay(folder(), operators.ParamsFileName, []byte("other"))
	for name, want := range map[string]string{operators.ParamsFileName: "other", operators.OperatorFileName: operatorYAML} {
		if got, err := fs.ReadFile(changed, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := fs.ReadFile(Overlay(folder(), "new.yaml", []byte("other")), "new.yaml"); err == nil {
		t.Error("a file that the folder does not have cannot be read")
	}
}

func TestNewFindings(t *testing.T) {
	find := func(file string, line int, message string) operators.Finding {
		return operators.Finding{File: file, Line: line, Message: message}
	}
	before := []operators.Finding{find("a", 1, "x"), find("b", 1, "y")}
	after := []operators.Finding{find("a", 7, "x"), find("a", 8, "y"), find("c", 1, "x")}
	if diff := cmp.Diff([]operators.Finding{after[1], after[2]}, NewFindings(before, after)); diff != "" {
		t.Errorf("what has moved is not new, and what is in another file is: %s", diff)
	}
	if got := NewFindings(before, before); len(got) > 0 {
		t.Errorf("nothing has changed: %v", got)
	}
	if len(after) != 3 || after[0].Line != 7 {
		t.Errorf("the findings that were given have changed: %v", after)
	}
}
