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

// rehashDigests replaces the digests of the baseline that were not made with the current key. This starts no run. If the key of a digest is
// known, the digest is replaced only if its value has not changed. If the key is not known, the value counts as unchanged if all plans that
// spec asks for had been started.
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
