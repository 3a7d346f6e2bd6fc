package trigger

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// UIDs is how many request uids the baseline remembers.
const UIDs = 32

// baselineAfterStart is the baseline once a request has been started: only what the request answers is taken over, so that what
// others answer stays different from spec, and cannot be lost.
func baselineAfterStart(in Input, r Request, all []Request) *v1beta1.Baseline {
	base := in.Instance.Status.Baseline.DeepCopy()
	if base == nil {
		base = &v1beta1.Baseline{ImmutableDefaults: immutableDefaults(in)}
	}
	take := r.Parameters
	if r.all {
		take = remaining(in, base, all)
	}
	adoptParameters(in, base, take)
	if r.version {
		base.OperatorVersion = in.Instance.OperatorVersionKey().String()
	}
	remember(in, base)
	return base
}

// adoptParameters takes the values of parameters from spec. One that takes the place of a fixed default, once the parameter may
// be changed, is what holds from then on.
func adoptParameters(in Input, base *v1beta1.Baseline, names []string) {
	if base.Parameters == nil {
		base.Parameters = map[string]string{}
	}
	for _, name := range names {
		if value, set := in.Given[name]; set {
			base.Parameters[name] = in.Digests.Of(name, value)
			if base.ImmutableDefaults[name] != value {
				delete(base.ImmutableDefaults, name)
			}
		} else {
			delete(base.Parameters, name)
		}
	}
}

// immutableDefaults holds the defaults of immutable parameters that spec leaves out: they must not change with the package. The
// admission webhook writes them into spec; this is for clusters without it (rule 6).
func immutableDefaults(in Input) map[string]string {
	out := map[string]string{}
	for _, def := range in.Version.Parameters {
		if _, set := in.Given[def.Name]; def.IsImmutable() && def.HasDefault() && !set {
			out[def.Name] = *def.Default
		}
	}
	return out
}

// remaining lists the parameters that no queued request holds. None holds one that the version makes immutable.
func remaining(in Input, base *v1beta1.Baseline, all []Request) []string {
	held := map[string]bool{}
	for _, r := range all {
		for _, name := range r.Parameters {
			held[name] = !r.all
		}
	}
	names := map[string]bool{}
	for name := range in.Given {
		names[name] = true
	}
	for name := range base.Parameters {
		names[name] = true
	}
	for _, def := range in.Version.Parameters {
		held[def.Name] = held[def.Name] && !def.IsImmutable()
	}
	var out []string
	for name := range names {
		if !held[name] {
			out = append(out, name)
		}
	}
	return out
}

// remember notes planExecution as answered: it has been started or queued. Clearing it is not a request, but lets the
// same name be one again.
func remember(in Input, base *v1beta1.Baseline) {
	exec := in.Instance.Spec.PlanExecution
	base.PlanName = exec.PlanName
	if exec.UID != "" && !slices.Contains(base.RequestUIDs, exec.UID) {
		base.RequestUIDs = append(base.RequestUIDs, exec.UID)
	}
	base.RequestUIDs = slices.Clone(base.RequestUIDs[max(0, len(base.RequestUIDs)-UIDs):])
}

// baselineWithoutStart is the baseline when nothing starts: planExecution has been queued or cleared, and undefined parameters came or
// went. It is nil if nothing changes.
func baselineWithoutStart(in Input) *v1beta1.Baseline {
	old := in.Instance.Status.Baseline
	base := old.DeepCopy()
	remember(in, base)
	if base.OperatorVersion == in.Instance.OperatorVersionKey().String() {
		adoptParameters(in, base, slices.DeleteFunc(changed(in), func(name string) bool {
			return find(in.Version.Parameters, name) != nil
		}))
	}
	if equality.Semantic.DeepEqual(base, old) {
		return nil
	}
	return base
}

// baselineFromSpec takes spec as it is: nothing starts (rule 1).
func baselineFromSpec(in Input) *v1beta1.Baseline {
	base := &v1beta1.Baseline{OperatorVersion: in.Instance.OperatorVersionKey().String(), Parameters: map[string]string{}}
	for name, value := range in.Given {
		base.Parameters[name] = in.Digests.Of(name, value)
	}
	base.ImmutableDefaults = immutableDefaults(in)
	for _, st := range in.Instance.Status.PlanStatus {
		if st.UID != "" && st.UID != in.Instance.Spec.PlanExecution.UID {
			base.RequestUIDs = append(base.RequestUIDs, st.UID)
		}
	}
	slices.Sort(base.RequestUIDs)
	remember(in, base)
	return base
}
