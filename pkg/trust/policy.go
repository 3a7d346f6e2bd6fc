package trust

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

// anyOperator is the pattern that all names of operators match.
const anyOperator = "*"

// Policy is a PackagePolicy that was read. One that cannot be used still says which packages it is for, so that it refuses them.
type Policy struct {
	Name string
	// Authorities are those whose signatures count.
	Authorities []Authority

	action    configv1alpha1.PolicyAction
	patterns  []string
	selector  labels.Selector
	threshold int
	minimum   map[string]versionRanges
	revoked   map[string]bool
	problem   error
	// unreadable is set if the patterns cannot be read. The policy counts then whatever other policies match.
	unreadable bool
	// pinned is set if the lock of a package vouches for its dependencies.
	pinned bool
}

// versionRanges are what a policy demands of the versions of an operator; nil demands nothing.
type versionRanges struct{ app, operator *versionRange }

type versionRange struct {
	text       string
	constraint *semver.Constraints
}

// ParsePolicy reads a policy.
func ParsePolicy(object *configv1alpha1.PackagePolicy) Policy {
	spec := object.Spec
	p := Policy{Name: object.Name, action: spec.Action, patterns: spec.Match.Operators, threshold: max(int(spec.Threshold), 1),
		selector: labels.Everything(), minimum: map[string]versionRanges{}, revoked: map[string]bool{}}
	if len(p.patterns) == 0 {
		p.patterns = []string{anyOperator}
	}
	p.pinned = spec.Dependencies == configv1alpha1.PinnedDependencies
	for _, digest := range spec.Revoked {
		p.revoked[digest] = true
	}
	for _, read := range []func(configv1alpha1.PackagePolicySpec) error{p.readMatch, p.readAuthorities, p.readMinimumVersions} {
		if err := read(spec); err != nil && p.problem == nil {
			p.problem = fmt.Errorf("PackagePolicy %s: %w. Until this is corrected, all that it matches is refused", p.Name, err)
		}
	}
	return p
}

// ParsePolicies reads policies.
func ParsePolicies(objects []configv1alpha1.PackagePolicy) []Policy {
	out := make([]Policy, len(objects))
	for i := range objects {
		out[i] = ParsePolicy(&objects[i])
	}
	return out
}

// Err says why the policy cannot be used, and how that is corrected; it returns nil if it can.
func (p Policy) Err() error { return p.problem }

// readMatch makes a policy whose patterns or selector cannot be read match all, so that it refuses too much and not too little.
func (p *Policy) readMatch(spec configv1alpha1.PackagePolicySpec) error {
	for i, pattern := range p.patterns {
		if prefix := strings.TrimSuffix(pattern, anyOperator); strings.Contains(prefix, anyOperator) || pattern == "" {
			p.patterns, p.unreadable = []string{anyOperator}, true
			return fmt.Errorf("spec.match.operators[%d] is %q: it must be a name, or the beginning of names and one *", i, pattern)
		}
	}
	if spec.Match.NamespaceSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Match.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("spec.match.namespaceSelector: %w", err)
	}
	p.selector = selector
	return nil
}

func (p *Policy) readAuthorities(spec configv1alpha1.PackagePolicySpec) error {
	switch p.action {
	case configv1alpha1.RequireSignatures, configv1alpha1.WarnOfSignatures:
		if len(spec.Authorities) == 0 {
			return fmt.Errorf("spec.authorities is empty: name whose signatures count")
		}
	case configv1alpha1.RefusePackages, configv1alpha1.AllowPackages:
	default:
		return fmt.Errorf("spec.action is %q: it must be Require, Warn, Refuse or Allow", p.action)
	}
	for i, authority := range spec.Authorities {
		a, err := readAuthority(authority)
		if err != nil {
			return fmt.Errorf("spec.authorities[%d]%w", i, err)
		}
		for _, other := range p.Authorities {
			if field := a.same(other); field != "" { // with a threshold, one signature would count twice
				return fmt.Errorf("spec.authorities[%d].%s is that of %s: each authority needs its own", i, field, other.Name)
			}
		}
		p.Authorities = append(p.Authorities, a)
	}
	if len(spec.Authorities) > 0 && p.threshold > len(spec.Authorities) {
		return fmt.Errorf("spec.threshold is %d, and there are %d authorities", p.threshold, len(spec.Authorities))
	}
	return nil
}

// readAuthority reads an authority. The error begins with the field.
func readAuthority(authority configv1alpha1.PolicyAuthority) (a Authority, err error) {
	a.Name = authority.Name
	if authority.NotAfter != nil {
		a.NotAfter = authority.NotAfter.Time
	}
	switch {
	case (authority.Key == nil) == (authority.Keyless == nil):
		return a, errors.New(": set either key or keyless")
	case authority.Key != nil:
		if a.Key, err = ParsePublicKey([]byte(authority.Key.PublicKey)); err != nil {
			return a, fmt.Errorf(".key.publicKey: %w", err)
		}
	default:
		k := authority.Keyless
		if a.Identity, err = NewIdentity(k.Issuer, k.Subject, []byte(k.TrustedRoot)); err != nil {
			return a, fmt.Errorf(".keyless: %w", err)
		}
	}
	return a, nil
}

// same returns the field in which two authorities are the same signer; empty if they are not.
func (a Authority) same(other Authority) string {
	switch {
	case a.Key != nil && other.Key != nil && a.Key.Equal(other.Key):
		return "key.publicKey"
	case a.Identity != nil && other.Identity != nil && a.Identity.Issuer == other.Identity.Issuer &&
		a.Identity.Subject == other.Identity.Subject:
		return "keyless"
	}
	return ""
}

func (p *Policy) readMinimumVersions(spec configv1alpha1.PackagePolicySpec) error {
	for i, bound := range spec.MinimumVersions {
		app, err := parseRange(bound.AppVersion)
		if err != nil {
			return fmt.Errorf("spec.minimumVersions[%d].appVersion: %w", i, err)
		}
		operator, err := parseRange(bound.OperatorVersion)
		if err != nil {
			return fmt.Errorf("spec.minimumVersions[%d].operatorVersion: %w", i, err)
		}
		p.minimum[bound.Operator] = versionRanges{app, operator}
	}
	return nil
}

func parseRange(text string) (*versionRange, error) {
	if text == "" {
		return nil, nil
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no range of versions such as >=1.2.0: %w", text, err)
	}
	return &versionRange{text, constraint}, nil
}

// holds reports whether a version is in the range. One that is not semantic is in none.
func (r *versionRange) holds(version string) bool {
	if r == nil {
		return true
	}
	v, err := semver.NewVersion(version)
	return err == nil && r.constraint.Check(v)
}

// specificity returns how specific the patterns are that match the name of an operator: -1 if none does, 0 for all names, the length of
// the part before * for others, and more than any of these for a name.
func (p Policy) specificity(operator string) int {
	best := -1
	for _, pattern := range p.patterns {
		prefix, isPrefix := strings.CutSuffix(pattern, anyOperator)
		switch {
		case isPrefix && strings.HasPrefix(operator, prefix):
			best = max(best, len(prefix))
		case !isPrefix && pattern == operator:
			best = max(best, len(operator)+1)
		}
	}
	return best
}

// matching returns the policies that match a candidate.
func matching(policies []Policy, c Candidate) (out []Policy) {
	for _, p := range policies {
		if p.specificity(c.Package.Name) >= 0 && (c.Anywhere || p.selector.Matches(c.Namespace)) {
			out = append(out, p)
		}
	}
	return out
}

// applying returns the policies that count of those that match: the ones with the most specific name, and those whose patterns cannot be
// read. A selector of namespaces makes a policy no more specific. If the namespace is not known, a more specific policy takes the place of
// others only if it is for all namespaces.
func applying(matches []Policy, c Candidate) (out []Policy) {
	best := 0
	for _, p := range matches {
		if !p.unreadable && (!c.Anywhere || p.selector.Empty()) {
			best = max(best, p.specificity(c.Package.Name))
		}
	}
	for _, p := range matches {
		if p.unreadable || p.specificity(c.Package.Name) >= best {
			out = append(out, p)
		}
	}
	return out
}

// ends returns the earlier of two times, of which zero is never.
func ends(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
