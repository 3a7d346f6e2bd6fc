package instance

import (
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans/trigger"
)

// digests are those of the baseline.
func (s *scope) digests() keyring.Baseline {
	return keyring.Baseline{Ring: s.ring, Owner: string(s.Next.UID)}
}

var _ trigger.Digests = keyring.Baseline{}

// rehashDigests makes the digests of the baseline anew that are not of the current key. It starts nothing: a digest that can be
// read says whether its value has changed, and stays if it has; of one that cannot be read, the value has not changed if
// all that spec asks for had been started.
func (s *scope) rehashDigests() {
	base := s.Next.Status.Baseline
	if base == nil {
		return
	}
	digests, given := s.digests(), s.specValues()
	for name, digest := range base.Parameters {
		value, set := given[name]
		if !set || keyring.IDOf(digest) == s.ring.Current() {
			continue
		}
		if digests.Same(name, digest, value) || !digests.Knows(digest) && s.isSpecAnswered() {
			base.Parameters[name] = digests.Of(name, value)
		}
	}
}
