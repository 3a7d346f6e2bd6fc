package operators

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestTaskUses checks which templates each kind of task names, and what is done with them.
func TestTaskUses(t *testing.T) {
	type spec = v1beta1.TaskSpec
	all := spec{Resources: []string{"a", "b", "a"}, Pod: "p", ParameterFile: "f"}
	resources := func(role Role) []Use {
		return []Use{
			{Task: "t", Field: "spec.resources[0]", Template: "a", Role: role}, {Task: "t", Field: "spec.resources[1]", Template: "b", Role: role},
			{Task: "t", Field: "spec.resources[2]", Template: "a", Role: role},
		}
	}
	for name, tc := range map[string]struct {
		reason, kind string
		spec         spec
		want         []Use
	}{
		"Apply":    {"objects are written", "Apply", all, resources(Applied)},
		"Delete":   {"objects are deleted", "Delete", all, resources(Deleted)},
		"Toggle":   {"objects are written or deleted", "Toggle", all, resources(Toggled)},
		"Pipe":     {"a pod", "Pipe", all, []Use{{Task: "t", Field: "spec.pod", Template: "p", Role: PipePod}}},
		"PipeNone": {"a pod that is not named is a use of nothing", "Pipe", spec{}, []Use{{Task: "t", Field: "spec.pod", Role: PipePod}}},
		"Operator": {"a parameter file", "KudoOperator", all,
			[]Use{{Task: "t", Field: "spec.parameterFile", Template: "f", Role: Parameters}}},
		"OperatorNot": {"no parameter file", "KudoOperator", spec{Package: "x"}, nil},
		"Dummy":       {"a Dummy uses nothing", "Dummy", all, nil},
		"Unknown":     {"nor does a kind that does not exist", "apply", all, nil},
		"Empty":       {"an Apply without templates", "Apply", spec{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := packageOf(v1beta1.Task{Name: "t", Kind: tc.kind, Spec: tc.spec})
			if diff := cmp.Diff(tc.want, p.TaskUses(0)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUses checks the order of uses: that of plans in the file, then of phases, steps and tasks; a task that is used twice
// comes twice.
func TestUses(t *testing.T) {
	p, err := Read(pkg(`name: x
plans:
  zeta: {phases: [{name: p, steps: [{name: s, tasks: [b, nope, a]}]}]}
  alpha: {phases: [{name: q, steps: []}, {name: r, steps: [{name: t, tasks: [a]}, {name: u, tasks: [d, a]}]}]}
tasks:
- {name: a, kind: Apply, spec: {resources: [a.yaml]}}
- {name: b, kind: Delete, spec: {resources: [b.yaml, c.yaml]}}
- {name: unused, kind: Apply, spec: {resources: [u.yaml]}}
- {name: d, kind: Dummy}
- {name: a, kind: Delete, spec: {resources: [second.yaml]}}
`, ""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, use := range p.Uses() {
		got = append(got, use.Plan+"/"+use.Phase+"/"+use.Step+"/"+use.Task+" "+string(use.Role)+" "+use.Template)
	}
	want := []string{"zeta/p/s/b delete b.yaml", "zeta/p/s/b delete c.yaml", "zeta/p/s/a apply a.yaml", "alpha/r/t/a apply a.yaml",
		"alpha/r/u/a apply a.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPlanNames checks that plans are listed in the order of the file, and by name where it is not known.
func TestPlanNames(t *testing.T) {
	p, err := Read(pkg("name: x\nplans:\n  z: {}\n  deploy: {}\n  a: {}\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"z", "deploy", "a"}, p.PlanNames()); diff != "" {
		t.Errorf("in the order of the file: -want +got:\n%s", diff)
	}
	flow, err := Read(pkg("name: x\nplans: {z: {}, deploy: {}, a: {}}", ""))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if diff := cmp.Diff([]string{"a", "deploy", "z"}, flow.PlanNames()); diff != "" {
			t.Fatalf("in one line, by name: -want +got:\n%s", diff)
		}
	}
	if names := (&Package{}).PlanNames(); names != nil {
		t.Errorf("no plans: %v", names)
	}
}

// TestPackagePipes checks that two pipes of one name leave a package without pipes, and do not panic.
func TestPackagePipes(t *testing.T) {
	p := packageOf(v1beta1.Task{Name: "t", Kind: "Pipe",
		Spec: v1beta1.TaskSpec{Pod: "a.yaml", Pipe: []v1beta1.PipeSpec{{Key: "k"}, {Key: "k"}}}})
	p.Operator.Plans = map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "p",
		Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"t"}}}}}}}
	if diff := cmp.Diff(map[string]string{}, p.Pipes("i")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.Operator.Tasks[0].Spec.Pipe = p.Operator.Tasks[0].Spec.Pipe[:1]
	if diff := cmp.Diff(map[string]string{"k": "i.deploy.p.s.t.k"}, p.Pipes("i")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
