package instance

import (
	"context"
	"maps"
	"slices"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/history"
)

// values are what a run is started with.
type values struct {
	given map[string]string
	// sensitive are the names of those that must not be seen, sorted.
	sensitive []string
}

// specValues is what spec gives, by parametersFrom and parameters.
func (a *action) specValues() map[string]string {
	out := map[string]string{}
	maps.Copy(out, a.sourceValues.Given)
	maps.Copy(out, a.Next.Spec.Parameters)
	return out
}

// runValues are what spec gives, and the defaults that were fixed when the Instance was created.
func (a *action) runValues() values {
	out := values{given: map[string]string{}, sensitive: slices.Clone(a.sourceValues.Sensitive)}
	if b := a.Next.Status.Baseline; b != nil {
		maps.Copy(out.given, b.ImmutableDefaults)
	}
	maps.Copy(out.given, a.specValues())
	if a.content != nil {
		out.sensitive = append(out.sensitive, params.GivenSensitive(a.content.Spec.Parameters, out.given)...)
	}
	out.hide()
	return out
}

// hide puts the names of sensitive parameters in order.
func (v *values) hide(more ...string) {
	v.sensitive = append(v.sensitive, more...)
	slices.Sort(v.sensitive)
	v.sensitive = slices.Compact(v.sensitive)
}

// valuesExceptDeferred are the values, with the parameters that are held left as the last run had them.
func (a *action) valuesExceptDeferred(ctx context.Context, held []string) (values, error) {
	out := a.runValues()
	if len(held) == 0 {
		return out, nil
	}
	last, err := a.History.Read(ctx, a.Next, a.Next.Status.Baseline.Revision)
	if history.Unusable(err) {
		return out, nil
	}
	if err != nil {
		return values{}, err
	}
	for _, name := range held {
		if value, set := last.Parameters[name]; set {
			out.given[name] = value
		} else {
			delete(out.given, name)
		}
	}
	out.hide(last.Sensitive...)
	return out, nil
}

// cleanupValues are the values for cleanup: if they cannot be determined any more, those of the last run.
func (a *action) cleanupValues(ctx context.Context) (values, error) {
	out := a.runValues()
	base := a.Next.Status.Baseline
	if len(a.Next.Spec.ParametersFrom) == 0 || a.content != nil && a.sourceError == "" || base == nil || base.Revision == 0 {
		return out, nil
	}
	last, err := a.History.Read(ctx, a.Next, base.Revision)
	if history.Unusable(err) {
		return out, nil
	}
	if err != nil {
		return values{}, err
	}
	return values{given: last.Parameters, sensitive: last.Sensitive}, nil
}
