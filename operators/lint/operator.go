package lint

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/text"
)

// names finds what Kubernetes does not take as a name, and where the lock does not fit the tasks. That a version is missing is said by
// versions.
func names(s *Subject) (found Findings) {
	_, _, err := operators.Convert(s.Package, "")
	var errs operators.Errors
	errors.As(err, &errs)
	for _, e := range errs {
		if e.Field == "operatorVersion" && s.Operator.OperatorVersion == "" {
			continue
		}
		found.Errors = append(found.Errors, e)
	}
	return found
}

// versions finds versions that are missing or are no semantic ones.
func versions(s *Subject) (found Findings) {
	f := s.Operator
	for _, v := range []struct {
		field, value string
		required     bool
	}{
		{"operatorVersion", f.OperatorVersion, true}, {"kubernetesVersion", f.KubernetesVersion, true},
		{"appVersion", f.AppVersion, false}, {"kudoVersion", f.KudoVersion, false},
	} {
		if v.value == "" {
			if v.required {
				found.Errors = append(found.Errors, s.operatorFinding([]string{v.field}, "%q is required and must be semver", v.field))
			}
			continue
		}
		if _, err := semver.NewVersion(v.value); err != nil {
			found.Errors = append(found.Errors, s.operatorFinding([]string{v.field}, "unable to parse %q: %q is not semver", v.field, v.value))
		}
	}
	return found
}

// taskFields finds tasks that fail when they are reached. Templates that are missing are said by templatesDefined.
func taskFields(s *Subject) (found Findings) {
	elsewhere := map[string]bool{}
	for i := range s.Operator.Tasks {
		for _, use := range s.TaskUses(i) {
			if use.Template != "" {
				elsewhere[fmt.Sprintf("tasks[%d].%s", i, use.Field)] = true
			}
		}
	}
	for _, e := range s.ValidateTaskFields() {
		if !elsewhere[e.Field] {
			found.Errors = append(found.Errors, operators.Finding{File: e.File, Line: e.Line, Message: "task validation error: " + e.Message})
		}
	}
	return found
}

// endlessTasks warns of Dummy tasks that are never done.
func endlessTasks(s *Subject) (found Findings) {
	for i, task := range s.Operator.Tasks {
		if task.Kind == v1beta1.DummyTask && !task.Spec.Done && !task.Spec.WantErr {
			found.Warnings = append(found.Warnings, s.operatorFinding(taskPlaces(i, "spec.done"),
				"task %q is a Dummy that is never done: its plan stays in progress until another one is asked for or it is cancelled", task.Name))
		}
	}
	return found
}

// duplicateTasks warns of tasks whose name an earlier one has: steps run that one.
func duplicateTasks(s *Subject) (found Findings) {
	seen := map[string]bool{}
	for i, task := range s.Operator.Tasks {
		if seen[task.Name] && task.Name != "" {
			found.Warnings = append(found.Warnings, s.operatorFinding(taskPlaces(i, "name"),
				"task %q is never run: an earlier task has the same name", task.Name))
		}
		seen[task.Name] = true
	}
	return found
}

// taskPlaces are the fields where a finding about a task may stand, the best first.
func taskPlaces(index int, field string) []string {
	at := fmt.Sprintf("tasks[%d]", index)
	return []string{at + "." + field, at}
}

// eachStep visits the steps of all plans, with the path of each.
func (s *Subject) eachStep(visit func(plan, path string, step v1beta1.Step)) {
	for _, name := range s.PlanNames() {
		for i, phase := range s.Operator.Plans[name].Phases {
			for j, step := range phase.Steps {
				visit(name, fmt.Sprintf("plans.%s.phases[%d].steps[%d]", name, i, j), step)
			}
		}
	}
}

// tasksDefined finds steps that name tasks which do not exist.
func tasksDefined(s *Subject) (found Findings) {
	var defined []string
	known := map[string]bool{}
	for _, task := range s.Operator.Tasks {
		defined = append(defined, task.Name)
		known[task.Name] = true
	}
	s.eachStep(func(plan, path string, step v1beta1.Step) {
		for k, task := range step.Tasks {
			if !known[task] {
				found.Errors = append(found.Errors, s.operatorFinding([]string{fmt.Sprintf("%s.tasks[%d]", path, k), path},
					"task %q in plan %q is not defined%s", task, plan, closestName(task, defined)))
			}
		}
	})
	return found
}

// closestName proposes a name for one that does not exist.
func closestName(name string, names []string) string {
	if near := text.Nearest(name, names); near != "" {
		return ", did you mean " + near + "?"
	}
	return ""
}

// tasksUsed warns of tasks that no step names.
func tasksUsed(s *Subject) (found Findings) {
	used := map[string]bool{}
	s.eachStep(func(_, _ string, step v1beta1.Step) {
		for _, task := range step.Tasks {
			used[task] = true
		}
	})
	for i, task := range s.Operator.Tasks {
		if task.Name != "" && !used[task.Name] {
			found.Warnings = append(found.Warnings, s.operatorFinding(taskPlaces(i, "name"), "task %q defined but not used", task.Name))
		}
	}
	return found
}

// triggers finds parameters that trigger a plan which does not exist.
func triggers(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if _, ok := s.Operator.Plans[p.Trigger]; p.Trigger != "" && !ok {
			found.Errors = append(found.Errors, s.parameterFinding(i, "trigger", "plan %q used in parameter %q is not defined%s",
				p.Trigger, p.Name, closestName(p.Trigger, s.PlanNames())))
		}
	}
	return found
}

// deployPlan finds that there is no plan that could make an Instance.
func deployPlan(s *Subject) (found Findings) {
	if _, ok := s.Operator.Plans[v1beta1.DeployPlan]; !ok {
		found.Errors = append(found.Errors, s.operatorFinding([]string{"plans"}, "an operator is required to have '%s' plan", v1beta1.DeployPlan))
	}
	return found
}

// strategies warns of strategies that are omitted or unknown: they mean parallel, where a
// reader may expect the order of the file.
func strategies(s *Subject) (found Findings) {
	check := func(strategy v1beta1.Strategy, path, what string, members int) {
		switch {
		case strategy == "" && members > 0:
			found.Warnings = append(found.Warnings, s.operatorFinding([]string{path}, "%s has no strategy, which means parallel: say serial or "+
				"parallel", what))
		case strategy != "" && strategy != v1beta1.Serial && strategy != v1beta1.Parallel:
			found.Warnings = append(found.Warnings, s.operatorFinding([]string{path + ".strategy", path}, "%s has the unknown strategy %q, which "+
				"means parallel: say serial or parallel", what, strategy))
		}
	}
	for _, name := range s.PlanNames() {
		plan, path := s.Operator.Plans[name], "plans."+name
		check(plan.Strategy, path, fmt.Sprintf("plan %q", name), len(plan.Phases))
		for i, phase := range plan.Phases {
			check(phase.Strategy, fmt.Sprintf("%s.phases[%d]", path, i), fmt.Sprintf("phase %q of plan %q", phase.Name, name), len(phase.Steps))
		}
	}
	return found
}
