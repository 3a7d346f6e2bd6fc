package operators

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestDependenciesOf checks which tasks are dependencies, and that each comes once.
func TestDependenciesOf(t *testing.T) {
	plan := func(tasks ...string) v1beta1.Plan {
		return v1beta1.Plan{Phases: []v1beta1.Phase{{Steps: []v1beta1.Step{{Tasks: tasks}}}, {Steps: []v1beta1.Step{{Tasks: tasks}}}}}
	}
	task := func(name, kind, pkg string) v1beta1.Task {
		return v1beta1.Task{Name: name, Kind: kind, Spec: v1beta1.TaskSpec{Package: pkg, EnablingParameter: "ON_" + pkg}}
	}
	tasks := []v1beta1.Task{task("a", "KudoOperator", "p"), task("b", "Apply", "q"), task("c", "KudoOperator", "r"),
		task("c", "KudoOperator", "s")}
	for name, tc := range map[string]struct {
		reason string
		plans  map[string]v1beta1.Plan
		want   []string
	}{
		"None":    {"no plan uses a task", nil, nil},
		"Other":   {"a task of another kind is none", map[string]v1beta1.Plan{"deploy": plan("b")}, nil},
		"Missing": {"a task that is not defined is none", map[string]v1beta1.Plan{"deploy": plan("z")}, nil},
		"Twice": {"a task that is used twice comes once", map[string]v1beta1.Plan{"deploy": plan("a", "a"), "update": plan("a")},
			[]string{"0 a p ON_p"}},
		"Order": {"in the order of tasks, of all plans", map[string]v1beta1.Plan{"z": plan("c"), "y": plan("a")},
			[]string{"0 a p ON_p", "2 c r ON_r", "3 c s ON_s"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range DependenciesOf(tasks, tc.plans) {
				got = append(got, string(rune('0'+d.Index))+" "+d.Task+" "+d.Package+" "+d.EnablingParameter)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithDependenciesRefuses checks the message for an index that is no dependency, and that nothing is changed.
func TestWithDependenciesRefuses(t *testing.T) {
	p := packageOf(v1beta1.Task{Name: "a", Kind: "Dummy"},
		v1beta1.Task{Name: "b", Kind: "KudoOperator", Spec: v1beta1.TaskSpec{Package: "p"}})
	p.Operator.Name = "x"
	for index, want := range map[int]string{
		0: "task 0 of operator x is not of kind KudoOperator", -1: "task -1 of operator x is not of kind KudoOperator",
		2: "task 2 of operator x is not of kind KudoOperator",
	} {
		c, err := p.WithDependencies(map[int]Reference{index: {Operator: "y"}})
		if c != nil || err == nil || err.Error() != want {
			t.Errorf("%d: got %v, %v, want %s", index, c, err, want)
		}
	}
	c, err := p.WithDependencies(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, c, cmp.AllowUnexported(Package{})); diff != "" {
		t.Errorf("nothing to replace: -want +got:\n%s", diff)
	}
	c, err = p.WithDependencies(map[int]Reference{1: {Operator: "y"}})
	if err != nil || c.Operator.Tasks[1].Spec.Package != "y" || p.Operator.Tasks[1].Spec.Package != "p" {
		t.Errorf("one to replace: %v, %v", c, err)
	}
}
