package params

import "kudo.dev/kudo/apis/kudo/v1beta1"

// ImmutableDefaults returns the defaults of immutable parameters that the given values leave out. A new Instance names them, since the
// next version of its package may have others.
func ImmutableDefaults(defs []v1beta1.Parameter, given map[string]string) map[string]string {
	out := map[string]string{}
	for _, def := range defs {
		if _, set := given[def.Name]; def.IsImmutable() && def.HasDefault() && !set {
			out[def.Name] = *def.Default
		}
	}
	return out
}
