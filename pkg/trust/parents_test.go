package trust

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/test/apitest"
)

// locking returns an OperatorVersion of a namespace whose tasks name contents, with the signatures of signers.
func locking(t *testing.T, namespace, name string, contents []string, signers ...*Signer) v1beta1.OperatorVersion {
	t.Helper()
	ov := v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ov.Spec.Operator.Name, ov.Spec.Version = name, "1.0.0"
	for i, c := range contents {
		ov.Spec.Tasks = append(ov.Spec.Tasks, v1beta1.Task{Name: fmt.Sprint(i), Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "p", Content: c}})
	}
	p, err := PackageOf(&ov)
	if err != nil {
		t.Fatal(err)
	}
	ov.Spec.Provenance = &v1beta1.Provenance{}
	for _, s := range signers {
		ov.Spec.Provenance.Signatures = append(ov.Spec.Provenance.Signatures, string(sign(t, p, s)))
	}
	return ov
}

func contentOf(t *testing.T, ov v1beta1.OperatorVersion) string {
	t.Helper()
	digest, err := content.Digest(&ov)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestPinned checks S33: with dependencies Pinned, the signature of a package counts for a content that its lock has, and for no other one.
func TestPinned(t *testing.T) {
	a, stranger := newP256(t), newP256(t)
	child := locking(t, "ns", "child", nil)
	digest := contentOf(t, child)
	middle := locking(t, "ns", "middle", []string{digest})
	pinned := with(policy("p", nil, a), func(s *configv1alpha1.PackagePolicySpec) { s.Dependencies = configv1alpha1.PinnedDependencies })
	signed := locking(t, "ns", "parent", []string{digestOf("e"), digest}, a)
	for _, tc := range []struct {
		reason string
		policy *configv1alpha1.PackagePolicy
		all    []v1beta1.OperatorVersion
		want   Reason
	}{
		{"the lock of a package that is signed", pinned, []v1beta1.OperatorVersion{signed}, Verified},
		{"the policy does not take it", policy("p", nil, a), []v1beta1.OperatorVersion{signed}, NoSignature},
		{"no package has it in its lock", pinned, []v1beta1.OperatorVersion{locking(t, "ns", "parent", []string{digestOf("e")}, a)}, NoSignature},
		{"the package is not signed", pinned, []v1beta1.OperatorVersion{locking(t, "ns", "parent", []string{digest})}, NoSignature},
		{"another key has signed the package", pinned, []v1beta1.OperatorVersion{locking(t, "ns", "parent", []string{digest}, stranger)}, NoSignature},
		{"the package is in another namespace", pinned, []v1beta1.OperatorVersion{locking(t, "other", "parent", []string{digest}, a)}, NoSignature},
		{"the lock was changed after the package was signed", pinned, []v1beta1.OperatorVersion{func() v1beta1.OperatorVersion {
			ov := locking(t, "ns", "parent", []string{digestOf("e")}, a)
			ov.Spec.Tasks[0].Spec.Content = digest
			return ov
		}()}, NoSignature},
		{"by way of another package", pinned, []v1beta1.OperatorVersion{middle, locking(t, "ns", "top", []string{contentOf(t, middle)}, a)}, Verified},
		{"the package is revoked", with(pinned, func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = []string{contentOf(t, signed)} }),
			[]v1beta1.OperatorVersion{signed}, NoSignature},
		{"two authorities are needed, and one has signed", with(policy("p", nil, a, stranger), func(s *configv1alpha1.PackagePolicySpec) {
			s.Dependencies, s.Threshold = configv1alpha1.PinnedDependencies, 2
		}), []v1beta1.OperatorVersion{signed}, NoSignature},
		{"two authorities are needed, by two packages", with(policy("p", nil, a, stranger), func(s *configv1alpha1.PackagePolicySpec) {
			s.Dependencies, s.Threshold = configv1alpha1.PinnedDependencies, 2
		}), []v1beta1.OperatorVersion{signed, locking(t, "ns", "second", []string{digest}, stranger)}, Verified},
	} {
		c, err := NewCandidate(&child, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.AddParents("ns", append(tc.all, child))
		if v := Judge([]Policy{ParsePolicy(tc.policy)}, c, false, now); v.Reason != tc.want || v.Allowed != (tc.want == Verified) {
			t.Errorf("%s: %+v", tc.reason, v)
		}
	}
	own := func(name string, operators []string, change func(*configv1alpha1.PackagePolicySpec)) *configv1alpha1.PackagePolicy {
		return with(policy(name, operators, a), change)
	}
	ofChild := own("child", []string{"child"}, func(s *configv1alpha1.PackagePolicySpec) { s.Dependencies = configv1alpha1.PinnedDependencies })
	for reason, ofParent := range map[string]*configv1alpha1.PackagePolicy{
		"a policy for the parent revokes it": own("parent", []string{"parent"}, func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = []string{contentOf(t, signed)} }),
		"a policy for the parent wants a newer one": own("parent", []string{"parent"}, func(s *configv1alpha1.PackagePolicySpec) {
			s.MinimumVersions = []configv1alpha1.MinimumVersion{{Operator: "parent", OperatorVersion: ">=2"}}
		}),
		"a policy refuses the parent": own("parent", []string{"parent"}, func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.RefusePackages }),
		"":                            own("parent", []string{"parent"}, func(*configv1alpha1.PackagePolicySpec) {}),
	} {
		c, err := NewCandidate(&child, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.AddParents("ns", []v1beta1.OperatorVersion{signed})
		if v := Judge([]Policy{ParsePolicy(ofChild), ParsePolicy(ofParent)}, c, false, now); v.Allowed != (reason == "") {
			t.Errorf("%s: %+v", reason, v)
		}
	}
	var many []v1beta1.OperatorVersion
	for i := range 1000 {
		many = append(many, locking(t, "ns", fmt.Sprintf("m%d", i), []string{digest, digestOf("f")}))
	}
	c, err := NewCandidate(&child, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.AddParents("ns", many); len(c.Parents) != maxParents {
		t.Errorf("%d of 1000 packages count", len(c.Parents))
	}
}

// TestGuardPinned checks S33: the Guard reads the OperatorVersions that may vouch for others only if a policy takes that, and a verdict changes
// when one of them does.
func TestGuardPinned(t *testing.T) {
	a := newP256(t)
	child := locking(t, "ns", "child", nil)
	parent := locking(t, "ns", "parent", []string{contentOf(t, child)})
	parent.UID, parent.Generation = "parent", 1
	server := apitest.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, &parent)
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	object := policy("p", nil, a)
	object.Generation = 1
	server.Put(object)
	c := server.Client()
	g := &Guard{Cache: c, Live: c, Clock: clocktesting.NewFakeClock(now), Required: func(context.Context) bool { return false }}
	judge := func(step string, want Reason, lists bool) {
		t.Helper()
		server.Requests()
		v, err := g.Judge(t.Context(), Request{Version: &child, Identity: "child", Namespace: "ns"})
		if err != nil || v.Reason != want {
			t.Errorf("%s: %+v, %v, want %s", step, v, err, want)
		}
		if requests := strings.Join(server.Requests(), "\n"); strings.Contains(strings.ToLower(requests), "operatorversion") != lists {
			t.Errorf("%s: OperatorVersions are read: %t\n%s", step, !lists, requests)
		}
	}
	judge("the policy wants signatures of its own", NoSignature, false)
	object.Spec.Dependencies, object.Generation = configv1alpha1.PinnedDependencies, 2
	server.Put(object)
	judge("the parent is not signed", NoSignature, true)
	signed := locking(t, "ns", "parent", []string{contentOf(t, child)}, a)
	signed.UID, signed.Generation = "parent", 2
	server.Put(&signed)
	judge("the parent is signed", Verified, true)
	judge("nothing has changed", Verified, true)
	server.Remove(&signed)
	judge("the parent is deleted", NoSignature, true)
}
