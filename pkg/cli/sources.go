package cli

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/containment"
	"kudo.dev/kudo/operators/params"
)

// sourceFlags name Secrets and ConfigMaps that give values to parameters.
type sourceFlags struct {
	texts []string
	flags *pflag.FlagSet
}

const sourcesFlag = "parameters-from"

func (s *sourceFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.texts, sourcesFlag, nil,
		"a Secret or ConfigMap of the namespace whose keys give parameters their values, as secret/NAME or configmap/NAME; may be given several times, later ones win, and -p wins over all")
	s.flags = flags
}

// given tells whether the flag was given.
func (s *sourceFlags) given() bool { return s.flags.Changed(sourcesFlag) }

// read returns the sources. A flag with an empty value stands for none.
func (s *sourceFlags) read() ([]v1beta1.ParametersSource, error) {
	kinds := map[string]string{"secret": "Secret", "configmap": "ConfigMap", "cm": "ConfigMap"}
	var out []v1beta1.ParametersSource
	for _, text := range s.texts {
		if text == "" {
			continue
		}
		kind, name, _ := strings.Cut(text, "/")
		if kinds[strings.ToLower(kind)] == "" || name == "" {
			return nil, usage("--%s %q: must be secret/NAME or configmap/NAME", sourcesFlag, text)
		}
		out = append(out, v1beta1.ParametersSource{Kind: kinds[strings.ToLower(kind)], Name: name})
	}
	return out, nil
}

// checkStructure refuses values that change the structure of a template. Beside the given values, the Instance has others.
func checkStructure(ctx context.Context, spec *v1beta1.OperatorVersionSpec, instance *v1beta1.Instance, given map[string]string) error {
	all := maps.Clone(instance.Spec.Parameters)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, given)
	return containment.Check(ctx, spec, containment.Subject{Name: instance.Name, Namespace: instance.Namespace, Parameters: all})
}

// checkPackage is checkStructure for the Instance of a package, and for the parameters of its install plan.
func checkPackage(ctx context.Context, pkg *operators.Package, instance *v1beta1.Instance, installing map[string]string) error {
	_, version, err := operators.Convert(pkg, instance.Namespace)
	if err != nil {
		return nil // said where it is created
	}
	if err := checkStructure(ctx, &version.Spec, instance, nil); err != nil {
		return err
	}
	return containment.CheckInstall(ctx, &version.Spec, containment.Subject{Name: version.Name, Namespace: version.Namespace, Parameters: installing})
}

// checkValues refuses values that can never be right. Beside the given values, the Instance has others; what its sources
// give is not known here, so that a parameter may be missing then.
func checkValues(defs []v1beta1.Parameter, given, others map[string]string, from []v1beta1.ParametersSource, where string) error {
	if unknown := params.Unknown(defs, given); len(unknown) > 0 {
		return fmt.Errorf("parameter %s is not defined by %s", unknown[0], where)
	}
	all := map[string]string{}
	maps.Copy(all, others)
	maps.Copy(all, given)
	if len(from) > 0 {
		return params.ValidateGiven(defs, all).Err()
	}
	return params.Validate(defs, all).Err()
}
