package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

// Update changes parameters and schedules of an Instance.
type Update struct {
	Instance *v1beta1.Instance
	// Version is the OperatorVersion of the Instance.
	Version *v1beta1.OperatorVersion
	// Set are the parameters that get a value, and Unset those that are set back to their defaults.
	Set   map[string]string
	Unset []string
	// ParametersFrom and Schedules are those that the Instance is to have.
	ParametersFrom []v1beta1.ParametersSource
	Schedules      []v1beta1.Schedule
	// Placement is the one that the Instance is to have; nil leaves it as it is.
	Placement *v1beta1.Placement
	// GivesRights is set if the account of the Instance is given what the new values need.
	GivesRights bool
}

// Check returns an error if a value does not fit its parameter or changes the structure of a template, or if what is to be unset is not
// set.
func (u Update) Check(ctx context.Context) error {
	if err := u.checkValues(); err != nil {
		return err
	}
	for _, name := range u.Unset {
		if _, set := u.Instance.Spec.Parameters[name]; !set {
			return fmt.Errorf("parameter %s of instance %s is not set", name, u.Instance.Name)
		}
	}
	return CheckStructure(ctx, &u.Version.Spec, u.Changed(), u.Set)
}

// checkValues returns an error if a value can never be right: clusters may have no webhooks.
func (u Update) checkValues() error {
	changed := slices.DeleteFunc(slices.Clone(u.Version.Spec.Parameters), func(def v1beta1.Parameter) bool {
		_, set := u.Set[def.Name]
		return !set
	})
	if err := CheckValues(changed, u.Set, nil, nil, "operatorversion "+u.Version.Name); err != nil {
		return err
	}
	for _, def := range changed {
		value := u.Set[def.Name]
		if def.IsImmutable() && u.Instance.Spec.OperatorVersion.Name == u.Version.Name && u.Instance.Spec.Parameters[def.Name] != value {
			return fmt.Errorf("parameter %s is immutable: its value was fixed when the instance was created", def.Name)
		}
	}
	return nil
}

// Change implements Edit.
func (u Update) Change(ctx context.Context, _ client.Client) (Change, error) {
	return Change{Verb: "updated", Apply: u.Apply}, u.Check(ctx)
}

// Apply edits the spec of an Instance.
func (u Update) Apply(i *v1beta1.Instance) {
	SetParameters(i, u.Set)
	i.Spec.ParametersFrom, i.Spec.Schedules = u.ParametersFrom, u.Schedules
	for _, name := range u.Unset {
		delete(i.Spec.Parameters, name)
	}
	setPlacement(i, u.Placement)
}

// Changed returns the Instance as the update leaves it.
func (u Update) Changed() *v1beta1.Instance {
	out := u.Instance.DeepCopy()
	u.Apply(out)
	return out
}

// Preview implements Edit.
func (u Update) Preview(ctx context.Context, p *Previewer, _ Change) (*preview.Preview, error) {
	return p.Edit(ctx, preview.Edit{Verb: "update", Before: u.Instance, After: u.Changed(), Version: u.Version, GivesRights: u.GivesRights})
}

// Command implements Action. It has the parameters only; those that are sensitive are to be read from a file.
func (u Update) Command() string {
	args := valueArgs(u.Version, u.Set)
	for _, name := range u.Unset {
		args = append(args, "--unset", name)
	}
	return commandOf("update", u.Instance, args...)
}

// fileArg stands for values that a command line does not have.
const fileArg = "-P FILE"

// NeedsFile reports whether the command line of an action lacks values, which the user has to put into a file.
func NeedsFile(a Action) bool { return strings.Contains(a.Command(), " "+fileArg) }

// valueArgs returns the arguments that set parameters. Those that are sensitive, or that the OperatorVersion does not define, are to be
// read from a file, and so is what a flag cannot say.
func valueArgs(version *v1beta1.OperatorVersion, values map[string]string) []string {
	var args []string
	inFile := false
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := slices.IndexFunc(version.Spec.Parameters, func(def v1beta1.Parameter) bool { return def.Name == name })
		if at < 0 || version.Spec.Parameters[at].Sensitive || values[name] == "" || strings.Contains(name, "=") || strings.TrimSpace(name) == "" {
			inFile = true
			continue
		}
		args = append(args, "-p", name+"="+values[name])
	}
	if inFile {
		args = append(args, strings.Fields(fileArg)...)
	}
	return args
}

// setPlacement gives an Instance a placement, unless that is nil.
func setPlacement(i *v1beta1.Instance, placement *v1beta1.Placement) {
	if placement != nil {
		i.Spec.Placement = placement.DeepCopy()
	}
}

// SetParameters gives parameters of an Instance their values.
func SetParameters(i *v1beta1.Instance, values map[string]string) {
	if i.Spec.Parameters == nil {
		i.Spec.Parameters = map[string]string{}
	}
	maps.Copy(i.Spec.Parameters, values)
}
