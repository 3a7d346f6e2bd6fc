package trigger

import (
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Refusal says why a spec can never be right, and what to do.
type Refusal struct {
	// Field of the Instance.
	Field string
	// Message says what is wrong with it and the remedy.
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Field + ": " + r.Message }

func refuse(field, format string, args ...any) error {
	return &Refusal{Field: field, Message: fmt.Sprintf(format, args...)}
}

// immutable guards parameters that are fixed at creation.
//
//	same version:     immutable changed, added or removed                      refused
//	another version:  mutable before, immutable now                            needs a value in spec
//	                  not there before, immutable now                          needs a value in spec
//	                  immutable before and now, changed                        refused
//	                  immutable before, mutable now                            free
//	                  old version not known any more: a default that was
//	                  fixed at creation, immutable now, changed                refused
func immutable(in Input) error {
	sameVersion := in.Instance.Status.Baseline.OperatorVersion == in.Instance.OperatorVersionKey().String()
	diff := map[string]bool{}
	for _, name := range changed(in) {
		diff[name] = true
	}
	for _, def := range in.Version.Parameters {
		if !def.IsImmutable() {
			continue
		}
		field := "spec.parameters[" + def.Name + "]"
		var old *v1beta1.Parameter
		if in.Old != nil {
			old = find(in.Old.Parameters, def.Name)
		}
		value, set := in.Given[def.Name]
		held, isFixed := in.Instance.Status.Baseline.ImmutableDefaults[def.Name]
		switch {
		case isFixed && (!set || value == held): // spec says nothing else than what holds
		case sameVersion || (old != nil && old.IsImmutable()) || (isFixed && in.Old == nil):
			if diff[def.Name] {
				return refuse(field, "the parameter is immutable: its value was fixed when the Instance was created. Set it back, or create another "+
					"Instance")
			}
		case in.Old == nil: // the old version is not known any more: nothing to compare with
		case !set && !in.ParametersFromUnread:
			return refuse(field, "the parameter is immutable in %s and was not before: set its value in spec.parameters or parametersFrom along "+
				"with the upgrade", in.Instance.OperatorVersionKey())
		}
	}
	return nil
}

// Validate checks an edit before it is stored: what is denied here can never be right. The old Instance is nil at
// creation. It holds for living and for deleted Instances.
func Validate(old *v1beta1.Instance, in Input) error {
	if old != nil && in.Instance.DeletionTimestamp != nil {
		return whileDeleting(old, in.Instance)
	}
	exec := in.Instance.Spec.PlanExecution
	if exec.PlanName == v1beta1.CleanupPlan && (old == nil || withoutExecutionStatus(old.Spec) != withoutExecutionStatus(in.Instance.Spec)) {
		return refuse("spec.planExecution.planName", "plan cleanup runs only when the Instance is deleted: use kubectl kudo uninstall")
	}
	_, err := requests(in)
	return err
}

// withoutExecutionStatus is planExecution without its status, which is ignored.
func withoutExecutionStatus(spec v1beta1.InstanceSpec) v1beta1.PlanExecution {
	return v1beta1.PlanExecution{PlanName: spec.PlanExecution.PlanName, UID: spec.PlanExecution.UID}
}

func whileDeleting(old, now *v1beta1.Instance) error {
	a, b := old.Spec.DeepCopy(), now.Spec.DeepCopy()
	a.PlanExecution, b.PlanExecution = withoutExecutionStatus(old.Spec), withoutExecutionStatus(now.Spec)
	if !equal(a, b) {
		return refuse("spec", "the Instance is being deleted, so its spec cannot be changed any more: no plan but cleanup runs")
	}
	return nil
}
