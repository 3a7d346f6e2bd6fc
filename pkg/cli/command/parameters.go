package command

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/containment"
	"kudo.dev/kudo/pkg/act"
)

// SourceFlags name Secrets and ConfigMaps that give values to parameters.
type SourceFlags struct {
	texts []string
	flags *pflag.FlagSet
}

// SourcesFlag is the name of the flag of sources.
const SourcesFlag = "parameters-from"

// Add adds the flag.
func (s *SourceFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.texts, SourcesFlag, nil,
		"a Secret or ConfigMap of the namespace whose keys give parameters their values, as secret/NAME or configmap/NAME; may be "+
			"repeated, later ones win, and -p wins over all")
	s.flags = flags
}

// IsSet reports whether the command line has the flag.
func (s *SourceFlags) IsSet() bool { return s.flags.Changed(SourcesFlag) }

// Read returns the sources of the flags; a flag with an empty value has none.
func (s *SourceFlags) Read() ([]v1beta1.ParametersSource, error) {
	kinds := map[string]string{"secret": "Secret", "configmap": "ConfigMap", "cm": "ConfigMap"}
	var out []v1beta1.ParametersSource
	for _, text := range s.texts {
		if text == "" {
			continue
		}
		kind, name, _ := strings.Cut(text, "/")
		if kinds[strings.ToLower(kind)] == "" || name == "" {
			return nil, UsageError("--%s %q: must be secret/NAME or configmap/NAME", SourcesFlag, text)
		}
		out = append(out, v1beta1.ParametersSource{Kind: kinds[strings.ToLower(kind)], Name: name})
	}
	return out, nil
}

// InstallParameterFlags set parameters of an install plan.
type InstallParameterFlags struct{ texts []string }

// Add adds the flag.
func (p *InstallParameterFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&p.texts, "install-parameter", nil, "parameter of the install plan, as NAME=VALUE; may be repeated")
}

// IsSet reports whether the command line has the flag.
func (p *InstallParameterFlags) IsSet() bool { return len(p.texts) > 0 }

// Read returns the parameters of the flags, which must be those of the package's install plan, or nil if there are none.
func (p *InstallParameterFlags) Read(pkg *operators.Package) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range p.texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, UsageError("--install-parameter %q: must be NAME=VALUE", text)
		}
		out[name] = value
	}
	if len(out) == 0 {
		return nil, nil
	}
	if pkg.Operator.InstallPlan == "" {
		return nil, UsageError("--install-parameter: operator %s has no install plan", pkg.Operator.Name)
	}
	return out, act.CheckGiven(pkg.Definitions(), out, DescribePackage(pkg))
}

// CheckPackage checks the structure as CheckStructure does, for the Instance and the install parameters of a package.
func CheckPackage(ctx context.Context, pkg *operators.Package, instance *v1beta1.Instance, installing map[string]string) error {
	_, version, err := operators.Convert(pkg, instance.Namespace)
	if err != nil {
		return nil // the error is reported when the OperatorVersion is created
	}
	if err := act.CheckStructure(ctx, &version.Spec, instance, nil); err != nil {
		return err
	}
	return containment.CheckInstall(ctx, &version.Spec, containment.Subject{Name: version.Name, Namespace: version.Namespace,
		Parameters: installing})
}
