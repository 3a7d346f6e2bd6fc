package packagepolicy

import (
	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/trust"
)

// observation is what a reconcile knows of a PackagePolicy: all of it stands in the object.
type observation struct {
	policy trust.Policy
}

// observe parses a PackagePolicy in the same way as for a verdict on a package.
func observe(p *configv1alpha1.PackagePolicy) observation {
	return observation{policy: trust.ParsePolicy(p)}
}

// state names the situation of a PackagePolicy.
type state string

const (
	// usable: all of it can be read.
	usable state = "usable"
	// unusable: a part of it cannot be read, and the policy refuses what it matches.
	unusable state = "unusable"
)

// state returns the state of what was observed.
func (o observation) state() state {
	if o.policy.Err() != nil {
		return unusable
	}
	return usable
}
