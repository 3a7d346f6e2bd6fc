package admission

import (
	"fmt"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans/schedule"
)

// schedules returns an error for an invalid schedule that the edit adds or changes, and warnings for other invalid schedules, such as one
// whose plan the new version lacks. It does not check plans if the OperatorVersion does not exist.
func schedules(old, instance *v1beta1.Instance, ov *v1beta1.OperatorVersion) (warnings []string, err error) {
	var version *v1beta1.OperatorVersionSpec
	if ov != nil {
		version = &ov.Spec
	}
	seen := map[string]bool{}
	for _, s := range instance.Spec.Schedules {
		field := "spec.schedules[" + s.Name + "]"
		if seen[s.Name] {
			return nil, fmt.Errorf("%s: it is there twice: give each schedule a name of its own", field)
		}
		seen[s.Name] = true
		_, wrong := schedule.Check(s, version)
		switch {
		case wrong == nil:
		case old != nil && slices.Contains(old.Spec.Schedules, s):
			warnings = append(warnings, fmt.Sprintf("%s does not run: %s", field, wrong))
		default:
			return nil, fmt.Errorf("%s: %w", field, wrong)
		}
	}
	return warnings, nil
}
