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
func (s *scope) specValues() map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.sourceValues.Given)
	maps.Copy(out, s.Next.Spec.Parameters)
	return out
}

// runValues are what spec gives, and the defaults that were fixed when the Instance was created.
func (s *scope) runValues() values {
	out := values{given: map[string]string{}, sensitive: slices.Clone(s.sourceValues.Sensitive)}
	if b := s.Next.Status.Baseline; b != nil {
		maps.Copy(out.given, b.ImmutableDefaults)
	}
	maps.Copy(out.given, s.specValues())
	if s.content != nil {
		out.sensitive = append(out.sensitive, params.GivenSensitive(s.content.Spec.Parameters, out.given)...)
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
func (s *scope) valuesExceptDeferred(ctx context.Context, held []string) (values, error) {
	out := s.runValues()
	if len(held) == 0 {
		return out, nil
	}
	last, err := s.History.Read(ctx, s.Next, s.Next.Status.Baseline.Revision)
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
func (s *scope) cleanupValues(ctx context.Context) (values, error) {
	out := s.runValues()
	base := s.Next.Status.Baseline
	if len(s.Next.Spec.ParametersFrom) == 0 || s.content != nil && s.sourceError == "" || base == nil || base.Revision == 0 {
		return out, nil
	}
	last, err := s.History.Read(ctx, s.Next, base.Revision)
	if history.Unusable(err) {
		return out, nil
	}
	if err != nil {
		return values{}, err
	}
	return values{given: last.Parameters, sensitive: last.Sensitive}, nil
}
