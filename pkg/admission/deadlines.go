package admission

import (
	"errors"
	"fmt"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans/deadline"
)

// deadlines returns an error for an invalid deadline that the edit adds or changes, and warnings for other invalid deadlines, such as one
// whose step the new version lacks. It does not check plans and steps if the OperatorVersion does not exist.
func deadlines(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) (warnings []string, err error) {
	var version *v1beta1.OperatorVersionSpec
	if ov != nil {
		version = &ov.Spec
	}
	all := instance.Spec.Deadlines
	problems := deadline.Check(all, version)
	for n, d := range all {
		p, wrong := problems[n]
		switch {
		case !wrong:
		case old != nil && slices.Contains(old.Spec.Deadlines, d) && count(all, d) <= count(old.Spec.Deadlines, d) &&
			!addsDuplicate(all[:n], d, old.Spec.Deadlines):
			warnings = append(warnings, fmt.Sprintf("a deadline has no effect: %s", p))
		default:
			return nil, errors.New(p.String())
		}
	}
	return warnings, nil
}

// addsDuplicate reports whether the edit puts a new deadline before one that is for the same: that would count in its place.
func addsDuplicate(before []v1beta1.Deadline, d v1beta1.Deadline, old []v1beta1.Deadline) bool {
	return slices.ContainsFunc(before, func(other v1beta1.Deadline) bool {
		return other.Plan == d.Plan && other.Step == d.Step && other.Then == d.Then && !slices.Contains(old, other)
	})
}

// count returns how often a deadline is listed.
func count(all []v1beta1.Deadline, d v1beta1.Deadline) (n int) {
	for _, other := range all {
		if other == d {
			n++
		}
	}
	return n
}

// timing checks the schedules and the deadlines of an edit.
func timing(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) (warnings []string, err error) {
	if warnings, err = schedules(old, instance, ov); err != nil {
		return nil, err
	}
	more, err := deadlines(old, instance, ov)
	return append(warnings, more...), err
}
