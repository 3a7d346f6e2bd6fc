package instance

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/sources"
)

// values are what a run is started with.
type values struct {
	given map[string]string
	// sensitive are the names of those that must not be seen, sorted.
	sensitive []string
}

// gather reads what spec.parametersFrom names.
func (p *pass) gather(ctx context.Context) (bool, error) {
	if p.live == nil || len(p.instance.Spec.ParametersFrom) == 0 {
		return false, nil
	}
	sourced, err := p.Sources.Values(ctx, p.instance, types.NamespacedName(p.account), p.live.Spec.Parameters)
	var missing *sources.MissingError
	if errors.As(err, &missing) {
		p.unsourced = missing.Message
		return false, nil
	}
	p.sourced = sourced
	return err != nil, err
}

// withoutValues goes on with what runs, else waits for what spec.parametersFrom names.
func (p *pass) withoutValues(ctx context.Context) (bool, error) {
	if running, st := p.running(); running != "" {
		if err := p.resume(ctx, running, st); err != nil {
			return true, err
		}
		p.once(v1beta1.EventParametersMissing, p.unsourced)
		return false, nil
	}
	p.transient = true // nothing tells that an account may read it now
	p.instance.Status.ObservedGeneration = p.instance.Generation
	return p.halted(ctx, v1beta1.ReasonWaitingForParameters, v1beta1.EventParametersMissing, p.unsourced)
}

// wanted is what spec gives, by parametersFrom and parameters.
func (p *pass) wanted() map[string]string {
	out := map[string]string{}
	maps.Copy(out, p.sourced.Given)
	maps.Copy(out, p.instance.Spec.Parameters)
	return out
}

// values are what spec gives, and the defaults that were fixed when the Instance was created.
func (p *pass) values() values {
	out := values{given: map[string]string{}, sensitive: slices.Clone(p.sourced.Sensitive)}
	if b := p.instance.Status.Baseline; b != nil {
		maps.Copy(out.given, b.Fixed)
	}
	maps.Copy(out.given, p.wanted())
	if p.live != nil {
		for _, def := range p.live.Spec.Parameters {
			if _, set := out.given[def.Name]; set && def.Sensitive {
				out.sensitive = append(out.sensitive, def.Name)
			}
		}
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

// valuesWithout are the values, with the parameters that are held left as the last run had them.
func (p *pass) valuesWithout(ctx context.Context, held []string) (values, error) {
	out := p.values()
	if len(held) == 0 {
		return out, nil
	}
	last, err := p.History.Read(ctx, p.instance, p.instance.Status.Baseline.Revision)
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

// lastValues are the values for cleanup: if they cannot be told any more, those of the last run.
func (p *pass) lastValues(ctx context.Context) (values, error) {
	out := p.values()
	base := p.instance.Status.Baseline
	if len(p.instance.Spec.ParametersFrom) == 0 || p.live != nil && p.unsourced == "" || base == nil || base.Revision == 0 {
		return out, nil
	}
	last, err := p.History.Read(ctx, p.instance, base.Revision)
	if history.Unusable(err) {
		return out, nil
	}
	if err != nil {
		return values{}, err
	}
	return values{given: last.Parameters, sensitive: last.Sensitive}, nil
}
