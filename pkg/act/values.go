package act

import (
	"context"
	"fmt"
	"maps"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/containment"
	"kudo.dev/kudo/operators/params"
)

// CheckStructure returns an error if a value changes the structure of a template. The given values replace those of the
// Instance.
func CheckStructure(ctx context.Context, spec *v1beta1.OperatorVersionSpec, instance *v1beta1.Instance, given map[string]string) error {
	all := maps.Clone(instance.Spec.Parameters)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, given)
	return containment.Check(ctx, spec, containment.Subject{Name: instance.Name, Namespace: instance.Namespace, Parameters: all,
		From: instance.CompletedVersion()})
}

// CheckGiven returns an error if a given value is not valid. Other parameters may have no value: an install plan needs those only that its
// templates use.
func CheckGiven(defs []v1beta1.Parameter, given map[string]string, where string) error {
	if err := checkNames(defs, given, where); err != nil {
		return err
	}
	return params.ValidateGiven(defs, given).Err()
}

// checkNames returns an error if a given parameter is not defined.
func checkNames(defs []v1beta1.Parameter, given map[string]string, where string) error {
	if unknown := params.Unknown(defs, given); len(unknown) > 0 {
		return fmt.Errorf("parameter %s is not defined by %s", unknown[0], where)
	}
	return nil
}

// CheckValues returns an error if a given value, or one of the others, is not valid. A required parameter may be absent if
// there are sources, whose values are not known here.
func CheckValues(defs []v1beta1.Parameter, given, others map[string]string, from []v1beta1.ParametersSource, where string) error {
	if err := checkNames(defs, given, where); err != nil {
		return err
	}
	all := map[string]string{}
	maps.Copy(all, others)
	maps.Copy(all, given)
	if len(from) > 0 {
		return params.ValidateGiven(defs, all).Err()
	}
	return params.Validate(defs, all).Err()
}
