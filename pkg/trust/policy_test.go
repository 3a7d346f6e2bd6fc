package trust

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

// policy returns a PackagePolicy that requires a signature of the signers, which are called a, b, and so on.
func policy(name string, operators []string, signers ...*Signer) *configv1alpha1.PackagePolicy {
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Action, p.Spec.Match.Operators = configv1alpha1.RequireSignatures, operators
	for i, s := range signers {
		p.Spec.Authorities = append(p.Spec.Authorities, configv1alpha1.PolicyAuthority{Name: string(rune('a' + i)),
			Key: &configv1alpha1.AuthorityKey{PublicKey: string(s.Public.PEM())}})
	}
	return p
}

func with(p *configv1alpha1.PackagePolicy, change func(*configv1alpha1.PackagePolicySpec)) *configv1alpha1.PackagePolicy {
	p = p.DeepCopy()
	change(&p.Spec)
	return p
}

// inCluster is the package that the tests judge: that of wanted, without a file.
func inCluster() Package {
	p := wanted()
	p.Digests = nil
	return p
}

// TestJudge checks S23, S24, S29 to S31: what policies refuse, and what they say.
func TestJudge(t *testing.T) {
	a, b, stranger := newP256(t), newP256(t), newP256(t)
	signed := func(s *Signer) string { return string(sign(t, inCluster(), s)) }
	other := inCluster()
	other.Content = digestOf("d")
	renamed := inCluster()
	renamed.Name = "etcd"
	production := policy("production", []string{"postgres"}, a)
	ended := metav1.NewTime(now.Add(-time.Hour))
	ends := metav1.NewTime(now.Add(time.Hour))
	env := func(value string) labels.Set { return labels.Set{"env": value} }
	for _, tc := range []struct {
		reason     string
		policies   []*configv1alpha1.PackagePolicy
		signatures []string
		namespace  labels.Set
		required   bool
		allowed    bool
		want       Reason
		texts      []string
	}{
		{"no policy is lenient", nil, nil, nil, false, true, NoPolicy, []string{"no PackagePolicy is for operator postgres"}},
		{"unless one is required", nil, []string{signed(a)}, nil, true, false, NoPolicy, []string{"package-policy", "ask an administrator"}},
		{"a policy for another operator is none", []*configv1alpha1.PackagePolicy{policy("p", []string{"postgre", "postgresql", "postgres2*"}, a)}, nil, nil,
			false, true, NoPolicy, nil},
		{"signed by the authority", []*configv1alpha1.PackagePolicy{production}, []string{signed(a)}, nil, true, true, Verified,
			[]string{"PackagePolicy production: signed by a"}},
		{"one good signature among others is enough", []*configv1alpha1.PackagePolicy{production}, []string{"{}", signed(stranger), signed(a)}, nil, false, true,
			Verified, nil},
		{"not signed", []*configv1alpha1.PackagePolicy{production}, nil, nil, false, false, NoSignature,
			[]string{"postgres 17.4.0_1.0.0 is not signed: PackagePolicy production requires a signature of a", "kubectl kudo package sign"}},
		{"signed by another key", []*configv1alpha1.PackagePolicy{production}, []string{signed(stranger)}, nil, false, false, WrongKey,
			[]string{"is signed by key " + stranger.Public.Hint(), "which PackagePolicy production does not list (a: " + a.Public.Hint() + ")"}},
		{"changed after it was signed", []*configv1alpha1.PackagePolicy{production}, []string{string(sign(t, other, a))}, nil, false, false, ContentDiffers,
			[]string{digestOf("a"), digestOf("d"), "it was changed after it was signed"}},
		{"the signature of another package", []*configv1alpha1.PackagePolicy{production}, []string{string(sign(t, renamed, a))}, nil, false, false, NameDiffers,
			[]string{"the signature is for etcd"}},
		{"no bundle at all", []*configv1alpha1.PackagePolicy{production}, []string{"\xff<script>"}, nil, false, false, WrongType, []string{"is no signature"}},
		{"an authority that has ended", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Authorities[0].NotAfter = &ended })},
			[]string{signed(a)}, nil, false, false, Expired, []string{"authority a ended on 2026-06-01: sign again"}},
		{"an authority that ends", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Authorities[0].NotAfter = &ends })},
			[]string{signed(a)}, nil, false, true, Verified, nil},
		{"two of two", []*configv1alpha1.PackagePolicy{with(policy("p", nil, a, b), func(s *configv1alpha1.PackagePolicySpec) { s.Threshold = 2 })},
			[]string{signed(a), signed(b)}, nil, false, true, Verified, []string{"signed by a, b"}},
		{"the same signature twice is one", []*configv1alpha1.PackagePolicy{with(policy("p", nil, a, b), func(s *configv1alpha1.PackagePolicySpec) { s.Threshold = 2 })},
			[]string{signed(a), signed(a)}, nil, false, false, NoSignature, []string{"is signed by a alone: PackagePolicy p requires signatures of 2 of a, b"}},
		{"the same key twice makes no second authority", []*configv1alpha1.PackagePolicy{with(policy("p", nil, a, a), func(s *configv1alpha1.PackagePolicySpec) { s.Threshold = 2 })},
			[]string{signed(a)}, nil, false, false, PolicyInvalid, []string{"authorities[1].key.publicKey is that of a"}},
		{"the longest name counts", []*configv1alpha1.PackagePolicy{policy("all", nil, b), policy("prefix", []string{"post*"}, stranger), production}, []string{signed(a)},
			nil, false, true, Verified, nil},
		{"a lax policy for all does not help", []*configv1alpha1.PackagePolicy{
			with(policy("all", nil, b), func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.AllowPackages }), production}, nil, nil, false, false,
			NoSignature, nil},
		{"of equal ones all must be met", []*configv1alpha1.PackagePolicy{production, policy("second", []string{"x", "postgres"}, b)}, []string{signed(a)}, nil, false,
			false, WrongKey, []string{"PackagePolicy second"}},
		{"both are met", []*configv1alpha1.PackagePolicy{production, policy("second", []string{"postgres"}, b)}, []string{signed(a), signed(b)}, nil, false, true,
			Verified, []string{"production: signed by a; PackagePolicy second: signed by a"}},
		{"a selector that does not match", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: env("production")}
		})}, nil, env("test"), false, true, NoPolicy, nil},
		{"a selector that matches", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: env("production")}
		})}, nil, env("production"), false, false, NoSignature, nil},
		{"a selector that cannot be read matches all", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.Match.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}}
		})}, []string{signed(a)}, nil, false, false, PolicyInvalid, []string{"spec.match.namespaceSelector", "Until this is corrected, all that it matches is refused"}},
		{"characters of patterns are taken as they are", []*configv1alpha1.PackagePolicy{policy("p", []string{"post.res", "p?stgres"}, a)}, nil, nil, false, true,
			NoPolicy, nil},
		{"a star in the middle is an error, and matches all", []*configv1alpha1.PackagePolicy{policy("p", []string{"x*y"}, a)}, []string{signed(a)}, nil, false, false,
			PolicyInvalid, []string{`spec.match.operators[0] is "x*y"`}},
		{"a key that cannot be read refuses all", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Authorities[0].Key.PublicKey = "x" })},
			[]string{signed(a)}, nil, false, false, PolicyInvalid, []string{"spec.authorities[0].key.publicKey: there is no key in PEM"}},
		{"no authority refuses all", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Authorities = nil })},
			[]string{signed(a)}, nil, false, false, PolicyInvalid, []string{"spec.authorities is empty"}},
		{"an action that is not known refuses all", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Action = "allow" })},
			[]string{signed(a)}, nil, false, false, PolicyInvalid, []string{`spec.action is "allow"`}},
		{"a threshold that cannot be reached", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Threshold = 2 })},
			[]string{signed(a)}, nil, false, false, PolicyInvalid, []string{"spec.threshold is 2, and there are 1 authorities"}},
		{"Warn lets it run, and says what Require would", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.Action = configv1alpha1.WarnOfSignatures
		})}, nil, nil, true, true, NoSignature, []string{"is not signed", "PackagePolicy production only warns"}},
		{"Refuse takes no signature", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.RefusePackages })},
			[]string{signed(a)}, nil, false, false, Refused, []string{"refuses all packages of operator postgres"}},
		{"Allow needs none", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.AllowPackages })},
			nil, nil, true, true, NotRequired, nil},
		{"what a less specific policy has revoked", []*configv1alpha1.PackagePolicy{production, with(policy("all", nil, b), func(s *configv1alpha1.PackagePolicySpec) {
			s.Revoked = []string{digestOf("a")}
		})}, []string{signed(a)}, nil, false, false, Revoked, []string{"PackagePolicy all revokes"}},
		{"a pattern that cannot be read counts beside a more specific policy", []*configv1alpha1.PackagePolicy{policy("p", []string{"postgres", "x**"}, a),
			with(policy("lax", []string{"post*"}, b), func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.AllowPackages })}, nil, nil, false, false,
			PolicyInvalid, nil},
		{"a revoked content", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.Action, s.Revoked = configv1alpha1.AllowPackages, []string{digestOf("a")}
		})}, []string{signed(a)}, nil, false, false, Revoked, []string{digestOf("a"), "use another version"}},
		{"a version that is too low", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.MinimumVersions = []configv1alpha1.MinimumVersion{{Operator: "postgres", OperatorVersion: ">=1.2.0"}}
		})}, []string{signed(a)}, nil, false, false, VersionTooLow, []string{"postgres has operatorVersion 1.0.0, which is not in >=1.2.0 of PackagePolicy production"}},
		{"a version that is high enough", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.MinimumVersions = []configv1alpha1.MinimumVersion{{Operator: "postgres", AppVersion: ">=17.4", OperatorVersion: ">=1.0.0"}}
		})}, []string{signed(a)}, nil, false, true, Verified, nil},
		{"a range that cannot be read", []*configv1alpha1.PackagePolicy{with(production, func(s *configv1alpha1.PackagePolicySpec) {
			s.MinimumVersions = []configv1alpha1.MinimumVersion{{Operator: "etcd", AppVersion: ">>1"}}
		})}, []string{signed(a)}, nil, false, false, PolicyInvalid, []string{`spec.minimumVersions[0].appVersion: ">>1" is no range`}},
	} {
		var policies []Policy
		for _, p := range tc.policies {
			policies = append(policies, ParsePolicy(p))
		}
		got := Judge(policies, Candidate{Package: inCluster(), Signatures: tc.signatures, Namespace: tc.namespace}, tc.required, now)
		if got.Allowed != tc.allowed || got.Reason != tc.want {
			t.Errorf("%s: allowed %t, %s (%s), want %t, %s", tc.reason, got.Allowed, got.Reason, got.Message, tc.allowed, tc.want)
		}
		for _, text := range tc.texts {
			if !strings.Contains(got.Message, text) {
				t.Errorf("%s: the message lacks %q: %s", tc.reason, text, got.Message)
			}
		}
	}
}

// TestJudgeUntil checks S30: a verdict ends when the first authority ends that it rests on.
func TestJudgeUntil(t *testing.T) {
	a, b := newP256(t), newP256(t)
	late, early := metav1.NewTime(now.Add(2*time.Hour)), metav1.NewTime(now.Add(time.Hour))
	p := policy("p", nil, a, b)
	p.Spec.Authorities[0].NotAfter, p.Spec.Authorities[1].NotAfter = &late, &early
	for _, tc := range []struct {
		reason string
		by     []*Signer
		want   time.Time
	}{
		{"the one that has signed", []*Signer{a}, late.Time},
		{"the first of both", []*Signer{a, b}, early.Time},
	} {
		c := Candidate{Package: inCluster()}
		for _, s := range tc.by {
			c.Signatures = append(c.Signatures, string(sign(t, inCluster(), s)))
		}
		if got := Judge([]Policy{ParsePolicy(p)}, c, false, now); !got.Until.Equal(tc.want) {
			t.Errorf("%s: until %s, want %s", tc.reason, got.Until, tc.want)
		}
	}
}

// TestJudgeTarball checks S34: under Require, no CRD tarball may be installed that the signatures do not cover.
func TestJudgeTarball(t *testing.T) {
	a := newP256(t)
	c := Candidate{Package: inCluster(), Signatures: []string{string(sign(t, inCluster(), a))}, UnpinnedTarball: "spec.crdTarball.httpSource.sha256 is missing"}
	if got := Judge([]Policy{ParsePolicy(policy("p", nil, a))}, c, false, now); got.Allowed || got.Reason != CRDTarballNotPinned {
		t.Errorf("%+v", got)
	}
}

// TestJudgeAnywhere checks that a package whose namespace is not known must meet each policy that counts in some namespace, and no other one.
func TestJudgeAnywhere(t *testing.T) {
	a := newP256(t)
	dev := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	policyOf := func(name string, action configv1alpha1.PolicyAction, operators []string, in *metav1.LabelSelector) Policy {
		p := policy(name, nil, a)
		p.Spec.Action, p.Spec.Match.Operators, p.Spec.Match.NamespaceSelector = action, operators, in
		if action != configv1alpha1.RequireSignatures {
			p.Spec.Authorities = nil
		}
		return ParsePolicy(p)
	}
	all := policyOf("all", configv1alpha1.RequireSignatures, nil, nil)
	for _, tc := range []struct {
		reason   string
		policies []Policy
		want     Reason
	}{
		{"one for all", []Policy{all}, NoSignature},
		{"a more specific one that allows it where it is for development", []Policy{all, policyOf("dev", configv1alpha1.AllowPackages, []string{"postgres"}, dev)}, NoSignature},
		{"a more specific one that allows it everywhere", []Policy{all, policyOf("postgres", configv1alpha1.AllowPackages, []string{"postgres"}, nil)}, NotRequired},
		{"a more specific one that refuses it in some namespace", []Policy{policyOf("postgres", configv1alpha1.AllowPackages, []string{"postgres*"}, nil), policyOf("dev", configv1alpha1.RefusePackages, []string{"postgres"}, dev)}, Refused},
		{"a selector that cannot be read", []Policy{policyOf("broken", configv1alpha1.AllowPackages, nil, broken)}, PolicyInvalid},
		{"another operator", []Policy{policyOf("other", configv1alpha1.RefusePackages, []string{"other"}, nil)}, NoPolicy},
	} {
		if got := Judge(tc.policies, Candidate{Package: inCluster(), Anywhere: true}, false, now); got.Reason != tc.want {
			t.Errorf("%s: %+v, want %s", tc.reason, got, tc.want)
		}
	}
}

// FuzzPolicy checks that a policy of any content says what is wrong with it, and that one with an error allows nothing that it matches.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{`{"action":"Require"}`, `{"action":"Allow","match":{"operators":["*"]}}`, `{"action":"Warn","authorities":[{"name":"a","key":{"publicKey":"x"}}]}`,
		`{"action":"Allow","match":{"operators":["**"]}}`, `{"action":"Allow","minimumVersions":[{"operator":"a","appVersion":"\u0000"}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		object := &configv1alpha1.PackagePolicy{}
		if json.Unmarshal([]byte(spec), &object.Spec) != nil {
			return
		}
		p := ParsePolicy(object)
		got := Judge([]Policy{p}, Candidate{Package: inCluster(), Signatures: []string{"{}"}}, false, now)
		if p.Err() != nil && len(matching([]Policy{p}, Candidate{Package: inCluster()})) > 0 && got.Allowed {
			t.Errorf("%s: a policy that cannot be used allows: %+v", spec, got)
		}
	})
}
