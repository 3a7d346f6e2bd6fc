package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// The reasons that verdicts have besides those of one signature.
const (
	NoPolicy            Reason = "NoPolicy"
	NotRequired         Reason = "SignatureNotRequired"
	Refused             Reason = "Refused"
	Revoked             Reason = "Revoked"
	VersionTooLow       Reason = "VersionTooLow"
	PolicyInvalid       Reason = "PolicyInvalid"
	CRDTarballNotPinned Reason = "CRDTarballNotPinned"
)

// Reasons returns all reasons that a verdict can have.
func Reasons() []Reason {
	return []Reason{Verified, NoSignature, WrongKey, WrongType, ContentDiffers, NameDiffers, Expired,
		NoPolicy, NotRequired, Refused, Revoked, VersionTooLow, PolicyInvalid, CRDTarballNotPinned}
}

// Candidate is a package that is to be run.
type Candidate struct {
	Package Package
	// Signatures are bundles in JSON, which anybody may have put there.
	Signatures []string
	// Namespace holds the labels of the namespace in which the package runs.
	Namespace labels.Set
	// Anywhere is set if it is not known in which namespace the package is going to run. Each policy counts then that does in some namespace.
	Anywhere bool
	// Manifest is the digest of the manifest that the package is said to have come in; empty if that is not known.
	Manifest string
	// Tarball is one that the Instance names; nil if it names none.
	Tarball *Tarball
	// Parents are packages whose tasks name the content of this one, as their locks say.
	Parents []Candidate
	// UnpinnedTarball says which CRD tarball the signatures do not cover, and the remedy; empty if there is none.
	UnpinnedTarball string
}

// NewCandidate returns an OperatorVersion as a candidate for a namespace of these labels.
func NewCandidate(version *v1beta1.OperatorVersion, namespace labels.Set) (Candidate, error) {
	p, err := PackageOf(version)
	c := Candidate{Package: p, Namespace: namespace}
	if version.Spec.Provenance != nil {
		c.Signatures, c.Manifest = version.Spec.Provenance.Signatures, version.Spec.Provenance.Manifest
	}
	c.UnpinnedTarball = UnpinnedTarball(version.Spec.CRDTarball)
	return c, err
}

// UnpinnedTarball says that a package names a CRD tarball whose content its signatures do not cover; empty if it does not.
func UnpinnedTarball(tarball *v1beta1.CRDTarball) string {
	field := tarball.MissingDigest()
	if field == "" {
		return ""
	}
	return "crdTarball." + field + " is missing, so that the signature says nothing of the CustomResourceDefinitions: the publisher sets it " +
		"and signs again"
}

// Verdict says whether a package may run, and why.
type Verdict struct {
	Allowed bool
	Reason  Reason
	// Message names the package, the policy and the remedy; or the policies and the authorities if the reason is Verified.
	Message string
	// Until is when the verdict changes by the time alone; zero is never.
	Until time.Time
}

// Judge decides whether a package may run at a time. All policies that apply must be met, and no policy that matches may have revoked the
// content, or the manifest that the package came in. Without a policy the package may run, unless policies are required.
func Judge(policies []Policy, c Candidate, required bool, now time.Time) Verdict {
	matches := matching(policies, c)
	if len(matches) == 0 {
		v := Verdict{Allowed: !required, Reason: NoPolicy, Message: "no PackagePolicy is for operator " + quote(c.Package.Name)}
		if required {
			v.Message += ", and kudo-config requires one (package-policy): ask an administrator for it"
		}
		return v
	}
	for _, p := range matches {
		if what := p.revokes(c); what != "" {
			return Verdict{Reason: Revoked, Message: fmt.Sprintf("%s %s, which PackagePolicy %s revokes: use another version",
				quote(c.Package.String()), what, p.Name)}
		}
	}
	c.Package.Revoked, c.Parents = revoked(matches), c.admittedParents(policies)
	sum := Verdict{Allowed: true, Reason: NotRequired}
	var messages []string
	for _, p := range applying(matches, c) {
		v := p.judge(c, now)
		if !v.Allowed {
			return v
		}
		// What a policy warns of is shown rather than what another one has verified.
		if sum.Reason == NotRequired || sum.Reason == Verified && v.Reason != NotRequired {
			sum.Reason = v.Reason
		}
		sum.Until = ends(sum.Until, v.Until)
		messages = append(messages, v.Message)
	}
	sum.Message = strings.Join(messages, "; ")
	return sum
}

// revokes says which part of a candidate a policy revokes; empty if it revokes none.
func (p Policy) revokes(c Candidate) string {
	switch {
	case p.revoked[c.Package.Content]:
		return "has content " + c.Package.Content
	case p.revoked[c.Manifest]:
		return "is from manifest " + quote(c.Manifest)
	case c.Tarball != nil && p.revoked[c.Tarball.Digest]:
		return "has tarball " + quote(c.Tarball.Digest)
	}
	return ""
}

func (p Policy) judge(c Candidate, now time.Time) Verdict {
	bad := p.check(c)
	if bad != nil {
		return Verdict{Reason: bad.Reason, Message: bad.Message}
	}
	switch p.action {
	case configv1alpha1.AllowPackages:
		return Verdict{Allowed: true, Reason: NotRequired, Message: fmt.Sprintf("PackagePolicy %s requires no signature", p.Name)}
	case configv1alpha1.RefusePackages:
		return Verdict{Reason: Refused, Message: fmt.Sprintf("PackagePolicy %s refuses all packages of operator %s", p.Name,
			quote(c.Package.Name))}
	}
	names, until, refusal := p.verify(c, now)
	switch {
	case refusal == nil:
		return Verdict{Allowed: true, Reason: Verified, Message: fmt.Sprintf("PackagePolicy %s: signed by %s", p.Name,
			strings.Join(names, ", ")), Until: until}
	case p.action == configv1alpha1.WarnOfSignatures:
		return Verdict{Allowed: true, Reason: refusal.Reason, Message: refusal.Message + " (PackagePolicy " + p.Name + " only warns)"}
	}
	return Verdict{Reason: refusal.Reason, Message: refusal.Message}
}

// check refuses what no signature helps against.
func (p Policy) check(c Candidate) *RefusedError {
	if p.problem != nil {
		return refuse(PolicyInvalid, "%s", p.problem)
	}
	bounds := p.minimum[c.Package.Name]
	for _, b := range []struct {
		kind, version string
		bound         *versionRange
	}{{"appVersion", c.Package.AppVersion, bounds.app}, {"operatorVersion", c.Package.OperatorVersion, bounds.operator}} {
		if !b.bound.holds(b.version) {
			return refuse(VersionTooLow, "%s has %s %s, which is not in %s of PackagePolicy %s: use a version that is", quote(c.Package.Name),
				b.kind, quote(b.version), b.bound.text, p.Name)
		}
	}
	return nil
}

// verify returns the names of the authorities that vouch for a package, and when the first of them ends that is needed.
func (p Policy) verify(c Candidate, now time.Time) (names []string, until time.Time, refusal *RefusedError) {
	if c.UnpinnedTarball != "" {
		return nil, until, refuse(CRDTarballNotPinned, "PackagePolicy %s: %s", p.Name, c.UnpinnedTarball)
	}
	if len(c.Signatures) == 0 && (!p.pinned || len(c.Parents) == 0) {
		return nil, until, refuse(NoSignature, "%s is not signed: PackagePolicy %s requires %s; the publisher signs it by kubectl kudo "+
			"package sign", quote(c.Package.String()), p.Name, p.wanted())
	}
	var worst *RefusedError
	for _, authority := range p.Authorities {
		err := p.verifyAny(c, authority, now)
		if err == nil {
			names = append(names, authority.Name)
			if authority.Key != nil { // what an identity has signed before it ended goes on to count
				until = ends(until, authority.NotAfter)
			}
			continue
		}
		if worst == nil || telling(err.Reason) > telling(worst.Reason) {
			worst = err
		}
	}
	switch {
	case len(names) >= p.threshold:
		end, err := p.verifyTarball(c.Tarball, now)
		return names, ends(until, end), err
	case len(names) > 0:
		return nil, until, refuse(NoSignature, "%s is signed by %s alone: PackagePolicy %s requires %s", quote(c.Package.String()),
			strings.Join(names, ", "), p.Name, p.wanted())
	case worst.Reason == WrongKey && worst.Hint != "":
		return nil, until, refuse(WrongKey, "%s is signed by key %s, which PackagePolicy %s does not list (%s)", quote(c.Package.String()),
			quote(worst.Hint), p.Name, p.hints())
	}
	return nil, until, refuse(worst.Reason, "PackagePolicy %s: %s: %s", p.Name, quote(c.Package.String()), worst.Message)
}

// verifyAny returns nil if one of the signatures is that of an authority, or if the policy takes the lock of a package for that and one of
// the signatures of such a package is; else what is wrong with the signature that comes closest.
func (p Policy) verifyAny(c Candidate, authority Authority, now time.Time) *RefusedError {
	refusal := p.verifyOwn(c, authority, now)
	if refusal == nil || !p.pinned {
		return refusal
	}
	for _, parent := range c.Parents {
		if p.verifyAny(parent, authority, now) == nil {
			return nil
		}
	}
	return refusal
}

// verifyOwn is verifyAny for the signatures of the package itself.
func (p Policy) verifyOwn(c Candidate, authority Authority, now time.Time) *RefusedError {
	worst := refuse(NoSignature, "it has no signature")
	for _, bundle := range c.Signatures[:min(len(c.Signatures), MaxBundles)] {
		err := Verify([]byte(bundle), c.Package, authority, now)
		if err == nil {
			return nil
		}
		refusal := new(RefusedError)
		if !errors.As(err, &refusal) {
			refusal = refuse(WrongType, "%s", err)
		}
		if telling(refusal.Reason) > telling(worst.Reason) {
			worst = refusal
		}
	}
	return worst
}

// telling orders the reasons of refusals: what a known authority has signed says more than what others have.
func telling(reason Reason) int {
	return slices.Index([]Reason{NoSignature, WrongType, WrongKey, NameDiffers, ContentDiffers, Expired, Revoked}, reason)
}

// wanted puts the signatures that a policy requires into words.
func (p Policy) wanted() string {
	names := make([]string, len(p.Authorities))
	for i, a := range p.Authorities {
		names[i] = a.Name
	}
	if p.threshold > 1 {
		return fmt.Sprintf("signatures of %d of %s", p.threshold, strings.Join(names, ", "))
	}
	return "a signature of " + strings.Join(names, " or ")
}

// hints lists the authorities with the names of their keys or identities.
func (p Policy) hints() string {
	out := make([]string, len(p.Authorities))
	for i, a := range p.Authorities {
		out[i] = a.Name + ": " + strings.TrimPrefix(a.signer(), "key ")
	}
	return strings.Join(out, ", ")
}
