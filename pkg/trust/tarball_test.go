package trust

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

// TestTarball checks S34: a tarball that an Instance names needs signatures of its own by the authorities of the policy, and no other
// signature is taken for one.
func TestTarball(t *testing.T) {
	a, b, stranger := newP256(t), newP256(t), newP256(t)
	signTarball := func(digest string, s *Signer) string {
		made, err := SignTarball(t.Context(), digest, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(made)
	}
	p := inCluster()
	two := with(policy("p", nil, a, b), func(s *configv1alpha1.PackagePolicySpec) { s.Threshold = 2 })
	for _, tc := range []struct {
		reason  string
		policy  *configv1alpha1.PackagePolicy
		tarball *Tarball
		want    Reason
	}{
		{"the Instance names none", policy("p", nil, a), nil, Verified},
		{"signed by the authority", policy("p", nil, a), &Tarball{Digest: digestOf("1"), Signatures: []string{"{}", signTarball(digestOf("1"), a)}}, Verified},
		{"not signed", policy("p", nil, a), &Tarball{Digest: digestOf("1")}, CRDTarballNotPinned},
		{"signed by another key", policy("p", nil, a), &Tarball{Digest: digestOf("1"), Signatures: []string{signTarball(digestOf("1"), stranger)}}, CRDTarballNotPinned},
		{"another tarball", policy("p", nil, a), &Tarball{Digest: digestOf("2"), Signatures: []string{signTarball(digestOf("1"), a)}}, CRDTarballNotPinned},
		{"the signature of the package", policy("p", nil, a), &Tarball{Digest: p.Content, Signatures: []string{string(sign(t, p, a))}}, CRDTarballNotPinned},
		{"one authority of two", two, &Tarball{Digest: digestOf("1"), Signatures: []string{signTarball(digestOf("1"), a), signTarball(digestOf("1"), a)}}, CRDTarballNotPinned},
		{"two authorities of two", two, &Tarball{Digest: digestOf("1"), Signatures: []string{signTarball(digestOf("1"), a), signTarball(digestOf("1"), b)}}, Verified},
		{"a policy that asks for no signatures", with(policy("p", nil), func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.AllowPackages }), &Tarball{Digest: digestOf("1")}, NotRequired},
	} {
		c := Candidate{Package: p, Signatures: []string{string(sign(t, p, a)), string(sign(t, p, b))}, Tarball: tc.tarball}
		if v := Judge([]Policy{ParsePolicy(tc.policy)}, c, false, now); v.Reason != tc.want {
			t.Errorf("%s: %+v", tc.reason, v)
		}
	}
	ends := metav1.NewTime(now.Add(time.Hour))
	ending := with(policy("p", nil, a, b), func(s *configv1alpha1.PackagePolicySpec) { s.Authorities[1].NotAfter = &ends })
	c := Candidate{Package: p, Signatures: []string{string(sign(t, p, a))}, Tarball: &Tarball{Digest: digestOf("1"), Signatures: []string{signTarball(digestOf("1"), b)}}}
	if v := Judge([]Policy{ParsePolicy(ending)}, c, false, now); v.Reason != Verified || !v.Until.Equal(ends.Time) {
		t.Errorf("the authority that has signed the tarball ends: %+v", v)
	}
	if v := Judge([]Policy{ParsePolicy(ending)}, c, false, ends.Time); v.Reason != CRDTarballNotPinned {
		t.Errorf("it has ended: %+v", v)
	}
	revoking := with(ending, func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = []string{digestOf("1")} })
	if v := Judge([]Policy{ParsePolicy(revoking)}, c, false, now); v.Reason != Revoked {
		t.Errorf("a tarball that is revoked: %+v", v)
	}
	if err := Verify([]byte(signTarball(p.Content, a)), p, authority(a), now); !isRefused(err, WrongType) {
		t.Errorf("the signature of a tarball is taken for that of a package: %v", err)
	}
}

// TestRevokedManifest checks S30: what came in a manifest that is revoked does not run, and a signature of it does not count.
func TestRevokedManifest(t *testing.T) {
	a := newP256(t)
	fromRegistry := wanted() // its signature names the manifest
	signed := string(sign(t, fromRegistry, a))
	local := string(sign(t, inCluster(), a))
	revoking := with(policy("p", nil, a), func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = []string{digestOf("b")} })
	for _, tc := range []struct {
		reason    string
		policy    *configv1alpha1.PackagePolicy
		candidate Candidate
		want      Reason
	}{
		{"nothing is revoked", policy("p", nil, a), Candidate{Signatures: []string{signed}, Manifest: digestOf("b")}, Verified},
		{"the manifest that it is said to come from", revoking, Candidate{Signatures: []string{local}, Manifest: digestOf("b")}, Revoked},
		{"the manifest that was signed, and nothing is said of where it comes from", revoking, Candidate{Signatures: []string{signed}}, Revoked},
		{"another signature of the same content", revoking, Candidate{Signatures: []string{signed, local}}, Verified},
		{"another manifest", revoking, Candidate{Signatures: []string{local}, Manifest: digestOf("c")}, Verified},
	} {
		tc.candidate.Package = inCluster()
		if v := Judge([]Policy{ParsePolicy(tc.policy)}, tc.candidate, false, now); v.Reason != tc.want {
			t.Errorf("%s: %+v", tc.reason, v)
		}
	}
	specific := policy("specific", []string{"postgres"}, a)
	c := Candidate{Package: inCluster(), Signatures: []string{signed}}
	if v := Judge([]Policy{ParsePolicy(revoking), ParsePolicy(specific)}, c, false, now); v.Allowed || v.Reason != Revoked {
		t.Errorf("a policy that matches, and is less specific, revokes: %+v", v)
	}
}
