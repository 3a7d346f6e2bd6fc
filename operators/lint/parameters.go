package lint

import (
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
)

// duplicateParameters finds names that come twice, upper and lower case being the same.
func duplicateParameters(s *Subject) (found Findings) {
	seen := map[string]bool{}
	for i, p := range s.Params.Parameters {
		name := strings.ToLower(p.Name)
		if seen[name] {
			found.Errors = append(found.Errors, s.parameterFinding(i, "name", "parameter %q has a duplicate", p.Name))
		}
		seen[name] = true
	}
	return found
}

// invalidCharacters finds names that lists of parameters could not hold.
func invalidCharacters(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if p.Name == "" {
			found.Errors = append(found.Errors, s.parameterFinding(i, "name", "a parameter has no name"))
		}
		for _, bad := range []string{";", ","} {
			if strings.Contains(p.Name, bad) {
				found.Errors = append(found.Errors, s.parameterFinding(i, "name", "parameter %q contains invalid character '%s'", p.Name, bad))
			}
		}
	}
	return found
}

// toggleParameters finds tasks that are switched by a parameter which does not exist.
func toggleParameters(s *Subject) (found Findings) {
	var defined []string
	for _, p := range s.Params.Parameters {
		defined = append(defined, p.Name)
	}
	for i, task := range s.Operator.Tasks {
		if task.Kind == v1beta1.ToggleTask && task.Spec.Parameter != "" && !slices.Contains(defined, task.Spec.Parameter) {
			found.Errors = append(found.Errors, s.operatorFinding(taskPlaces(i, "spec.parameter"), "parameter %q in ToggleTask %s is not defined%s",
				task.Spec.Parameter, task.Name, closestName(task.Spec.Parameter, defined)))
		}
		if switched := task.Spec.EnablingParameter; task.Kind == v1beta1.KudoOperatorTask && switched != "" &&
			!slices.Contains(defined, switched) {
			found.Errors = append(found.Errors, s.operatorFinding(taskPlaces(i, "spec.enablingParameter"), "parameter %q in KudoOperatorTask %s "+
				"is not defined%s",
				switched, task.Name, closestName(switched, defined)))
		}
	}
	return found
}

// parametersUsed warns of parameters that change nothing: no template, no Toggle, no plan.
func parametersUsed(s *Subject) (found Findings) {
	used := map[string]bool{}
	for _, task := range s.Operator.Tasks {
		used[task.Spec.Parameter], used[task.Spec.EnablingParameter] = true, true
	}
	for i, p := range s.Params.Parameters {
		if p.Name != "" && p.Trigger == "" && !used[p.Name] && !s.analysis().uses(p.Name) {
			found.Warnings = append(found.Warnings, s.parameterFinding(i, "name", "parameter %q defined but not used.", p.Name))
		}
	}
	return found
}

// checkImmutables finds parameters that could never get a value after an Instance was made without one.
func checkImmutables(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if p.IsImmutable() && !p.IsRequired() && !p.HasDefault() {
			found.Errors = append(found.Errors, s.parameterFinding(i, "immutable",
				"parameter %q is immutable but is not marked as required or has a default value", p.Name))
		}
	}
	return found
}

var parameterTypes = []string{
	string(v1beta1.StringType), string(v1beta1.IntegerType), string(v1beta1.NumberType),
	string(v1beta1.BooleanType), string(v1beta1.ArrayType), string(v1beta1.MapType),
}

// types warns of types that do not exist: they count as string.
func types(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if p.Type != "" && !slices.Contains(parameterTypes, string(p.Type)) {
			found.Warnings = append(found.Warnings, s.parameterFinding(i, "type", "parameter %q has the unknown type %q, which counts as string: "+
				"use %s%s",
				p.Name, p.Type, strings.Join(parameterTypes, ", "), closestName(string(p.Type), parameterTypes)))
		}
	}
	return found
}

// bounds finds patterns and maxLines that cannot be used, lists of allowed values that are empty or mistyped, and allowed
// values and defaults that are mistyped or out of bounds.
func bounds(s *Subject) (found Findings) {
	fail := func(i int, field, format string, args ...any) {
		found.Errors = append(found.Errors, s.parameterFinding(i, field, format, args...))
	}
	for i, p := range s.Params.Parameters {
		if field, problem := params.CheckBounds(p.Parameter); problem != nil {
			fail(i, field, "%s", problem.Error())
			continue
		}
		if p.Enum != nil && len(*p.Enum) == 0 {
			fail(i, "enum", "parameter %q has an enum without values", p.Name)
			continue
		}
		if p.Enum != nil {
			def := p.Parameter
			def.Enum = nil
			for j, value := range *p.Enum {
				if problem := params.Check(def, value); problem != nil {
					problem.Remedy = "correct the enum in params.yaml"
					fail(i, fmt.Sprintf("enum[%d]", j), "%s", problem.Error())
				}
			}
		}
		for _, problem := range params.ValidateDefaults([]v1beta1.Parameter{p.Parameter}) {
			fail(i, "default", "%s", problem.Error())
		}
	}
	return found
}

// groups finds groups that are not declared, come twice, or have names that are no path elements.
func groups(s *Subject) (found Findings) {
	declared := map[string]bool{}
	var known []string
	for i, g := range s.Params.Groups {
		at := []string{fmt.Sprintf("groups[%d].name", i), fmt.Sprintf("groups[%d]", i)}
		fail := func(format string, args ...any) {
			found.Errors = append(found.Errors, s.finding(operators.ParamsFileName, at, format, args...))
		}
		switch {
		case g.Name == "":
			fail("a parameter group has no name")
		case strings.Contains(g.Name, "/"):
			fail("parameter group %q contains invalid character '/'", g.Name)
		case declared[g.Name]:
			fail("parameter group %q has a duplicate", g.Name)
		}
		declared[g.Name] = true
		known = append(known, g.Name)
	}
	for i, p := range s.Params.Parameters {
		switch {
		case strings.Contains(p.Group, "/"):
			found.Errors = append(found.Errors, s.parameterFinding(i, "group", "parameter group %q of parameter %q contains invalid character '/'",
				p.Group, p.Name))
		case p.Group != "" && !declared[p.Group]:
			found.Errors = append(found.Errors, s.parameterFinding(i, "group", "parameter group %q of parameter %q is not declared%s", p.Group,
				p.Name, closestName(p.Group, known)))
		}
	}
	return found
}

// checkSensitives warns of defaults that are to be secret: who reads the package reads them.
func checkSensitives(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if p.Sensitive && p.Default != nil && *p.Default != "" {
			found.Warnings = append(found.Warnings, s.parameterFinding(i, "default", "parameter %q is sensitive, and has a default, which is no "+
				"secret: remove it", p.Name))
		}
	}
	return found
}

// advanced finds parameters that are for experts, but that everybody must set.
func advanced(s *Subject) (found Findings) {
	for i, p := range s.Params.Parameters {
		if p.Advanced && p.IsRequired() && !p.HasDefault() {
			found.Errors = append(found.Errors, s.parameterFinding(i, "advanced",
				"parameter %q is advanced and required, but has no default: users would have to set it", p.Name))
		}
	}
	return found
}
