package preview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/paramsource"
)

// values are what the spec of an Instance gives.
type values struct {
	given map[string]string
	// defs are the parameters, those sensitive that have values of Secrets.
	defs []v1beta1.Parameter
	// missing says which source does not exist; empty if all do.
	missing string
}

func (c *computation) readValues(ctx context.Context, reader client.Reader, instance *v1beta1.Instance,
	version *v1beta1.OperatorVersion) (values, error) {
	sourced, err := paramsource.Read(ctx, reader, instance, version.Spec.Parameters)
	var missing *paramsource.MissingError
	out := values{given: map[string]string{}}
	if errors.As(err, &missing) {
		out.missing, err = missing.Message, nil
	}
	if err != nil {
		return out, fmt.Errorf("read what spec.parametersFrom names: %w", err)
	}
	out.defs = params.Sensitive(version.Spec.Parameters, sourced.Sensitive)
	maps.Copy(out.given, sourced.Given)
	maps.Copy(out.given, instance.Spec.Parameters)
	return out, nil
}

// installValues are the values that OperatorVersions which come with the edit give to their install plans, and have given before.
func (c *computation) installValues() []values {
	var out []values
	for _, version := range slices.Concat(c.edit.Versions, c.former) {
		out = append(out, values{given: version.Spec.InstallParameters, defs: version.Spec.Parameters})
	}
	return out
}

// runValues are the parameters of a run: what spec gives, those that are deferred as they were, and defaults that were fixed.
func (c *computation) runValues(deferred []string) map[string]string {
	out := map[string]string{}
	if base := c.instance.Status.Baseline; base != nil {
		maps.Copy(out, base.ImmutableDefaults)
	}
	maps.Copy(out, c.given)
	for _, name := range deferred {
		if value, set := c.before[name]; set {
			out[name] = value
		} else {
			delete(out, name)
		}
	}
	return out
}

// changedParameters are the parameters that the edit changes, sorted.
func (c *computation) changedParameters() []string {
	var out []string
	for name, value := range c.given {
		if old, set := c.before[name]; !set || old != value {
			out = append(out, name)
		}
	}
	for name := range c.before {
		if _, still := c.given[name]; !still {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// digests compare parameters without the key of the cluster: those of the baseline are of the values that spec gave before the edit.
type digests map[string]string

// previewed marks the digest of a value that a run of the preview has answered.
const previewed = "="

// Of implements trigger.Digests.
func (d digests) Of(_, value string) string { return previewed + value }

// Same implements trigger.Digests.
func (d digests) Same(name, digest, value string) bool {
	if after, is := strings.CutPrefix(digest, previewed); is {
		return after == value
	}
	old, set := d[name]
	return set && old == value
}

func (c *computation) oldSpec() *v1beta1.OperatorVersionSpec {
	if c.edit.Old == nil {
		return nil
	}
	return &c.edit.Old.Spec
}
