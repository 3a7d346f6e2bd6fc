package instance

import (
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans/trigger"
)

// digests are those of the baseline.
func (a *action) digests() keyring.Baseline {
	return keyring.Baseline{Ring: a.ring, Owner: string(a.Next.UID)}
}

var _ trigger.Digests = keyring.Baseline{}

// rehashDigests makes the digests of the baseline anew that are not of the current key. It starts nothing: a digest that can be
// read says whether its value has changed, and stays if it has; of one that cannot be read, the value has not changed if
// all that spec asks for had been started.
func (a *action) rehashDigests() {
	base := a.Next.Status.Baseline
	if base == nil {
		return
	}
	digests, given := a.digests(), a.specValues()
	for name, digest := range base.Parameters {
		value, set := given[name]
		if !set || keyring.IDOf(digest) == a.ring.Current() {
			continue
		}
		if digests.Same(name, digest, value) || !digests.Knows(digest) && a.isSpecAnswered() {
			base.Parameters[name] = digests.Of(name, value)
		}
	}
}
