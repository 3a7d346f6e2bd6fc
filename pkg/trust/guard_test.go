package trust

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// broken is a reader that cannot read.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no route")
}

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no route")
}

// TestGuard checks S24 and S26: what cannot be read lets nothing run, and a verdict is remembered until something changes.
func TestGuard(t *testing.T) {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "postgres-1.0.0"}}
	ov.Spec.Operator.Name, ov.Spec.Version = "postgres", "1.0.0"
	s := newP256(t)
	p, err := PackageOf(ov)
	if err != nil {
		t.Fatal(err)
	}
	server := apitest.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	c := server.Client()
	clock := clocktesting.NewFakeClock(now)
	required := false
	g := &Guard{Cache: c, Live: c, Clock: clock, Required: func(context.Context) bool { return required }}
	request := Request{Version: ov, Identity: "1", Namespace: "ns"}
	want := func(step string, reason Reason, allowed bool) {
		t.Helper()
		if got, err := g.Judge(t.Context(), request); err != nil || got.Reason != reason || got.Allowed != allowed {
			t.Errorf("%s: %+v, %v, want %s, %t", step, got, err, reason, allowed)
		}
	}
	want("without policies there is no verdict", "", true)
	required = true
	want("a policy is required", NoPolicy, false)
	required = false
	object := policy("p", nil, s)
	object.Generation = 1
	ends := metav1.NewTime(now.Add(time.Hour))
	object.Spec.Authorities[0].NotAfter = &ends
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	want("a policy appears", NoSignature, false)
	request.Signatures = []string{string(sign(t, p, s))}
	want("a signature appears elsewhere", Verified, true)
	clock.Step(2 * time.Hour)
	want("the authority ends while the verdict is remembered", Expired, false)
	request.Namespace = "gone"
	if _, err := g.Judge(t.Context(), request); err == nil || !strings.Contains(err.Error(), "Namespace gone") {
		t.Errorf("a namespace that cannot be read: %v", err)
	}
	g.Cache = broken{c}
	if _, err := g.Judge(t.Context(), request); err == nil {
		t.Error("policies that cannot be read allow something")
	}
}

// TestGuardContent checks S33: a content that an Instance wants is compared without any policy, and remembered until it changes.
func TestGuardContent(t *testing.T) {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "postgres-1.0.0"}}
	ov.Spec.Operator.Name, ov.Spec.Version = "postgres", "1.0.0"
	p, err := PackageOf(ov)
	if err != nil {
		t.Fatal(err)
	}
	server := apitest.Start(t)
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	c := server.Client()
	g := &Guard{Cache: c, Live: c, Clock: clocktesting.NewFakeClock(now), Required: func(context.Context) bool { return false }}
	for _, tc := range []struct {
		reason, content, identity string
		change                    func()
		allowed                   bool
	}{
		{"no content is wanted", "", "1", nil, true},
		{"the content that it has", p.Content, "1", nil, true},
		{"another content", digestOf("a"), "1", nil, false},
		{"no digest at all", "latest", "1", nil, false},
		{"what nothing has changed of is not computed again", p.Content, "1", func() { ov.Spec.Version = "1.0.1" }, true},
		{"a content that has changed", p.Content, "2", nil, false},
	} {
		if tc.change != nil {
			tc.change()
		}
		v, err := g.Judge(t.Context(), Request{Version: ov, Identity: tc.identity, Namespace: "ns", Content: tc.content})
		if err != nil || v.Allowed != tc.allowed || !tc.allowed && (v.Reason != ContentDiffers || !strings.Contains(v.Message, "OperatorVersion ns/postgres-1.0.0 has content sha256:")) {
			t.Errorf("%s: %+v, %v", tc.reason, v, err)
		}
	}
}
