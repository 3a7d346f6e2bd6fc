package packagepolicy

import (
	"testing"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// TestState checks S24: a policy is invalid if kudo cannot read one of its parts.
func TestState(t *testing.T) {
	key := publicKey(t)
	for _, tc := range []struct {
		reason string
		modify func(*configv1alpha1.PackagePolicySpec)
		want   state
	}{
		{"all of it can be read", func(*configv1alpha1.PackagePolicySpec) {}, usable},
		{"a key cannot be read", func(s *configv1alpha1.PackagePolicySpec) { s.Authorities[0].Key.PublicKey = "no key" }, unusable},
		{"a pattern has its wildcard at the beginning", func(s *configv1alpha1.PackagePolicySpec) { s.Match.Operators = []string{"*-db"} }, unusable},
		{"no signature counts", func(s *configv1alpha1.PackagePolicySpec) { s.Authorities = nil }, unusable},
		{"the action is not known", func(s *configv1alpha1.PackagePolicySpec) { s.Action = "Hope" }, unusable},
	} {
		p := &configv1alpha1.PackagePolicy{}
		p.Spec.Action = configv1alpha1.RequireSignatures
		p.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "release", Key: &configv1alpha1.AuthorityKey{PublicKey: key}}}
		tc.modify(&p.Spec)
		if o := observe(p); o.state() != tc.want {
			t.Errorf("%s: state %q, want %q (%v)", tc.reason, o.state(), tc.want, o.policy.Err())
		}
	}
}

// TestUnknownState: a state without an action is an error.
func TestUnknownState(t *testing.T) {
	a := &action{Object: loop.NewObject(nil, nil, nil, &configv1alpha1.PackagePolicy{})}
	if err := a.act("odd"); err == nil {
		t.Error("an unknown state is no error")
	}
}
