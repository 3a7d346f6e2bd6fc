package packagepolicy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
)

// TestReport checks S24: a policy that becomes unusable shows no keys any more, and what is wrong with it is one bounded line.
func TestReport(t *testing.T) {
	ends := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production", Generation: 7}}
	p.Spec.Action = configv1alpha1.RequireSignatures
	for _, name := range []string{"release", "backup"} {
		p.Spec.Authorities = append(p.Spec.Authorities, configv1alpha1.PolicyAuthority{Name: name, Key: &configv1alpha1.AuthorityKey{PublicKey: publicKey(t)}})
	}
	p.Spec.Authorities[1].NotAfter = &ends
	obj := loop.NewObject[*configv1alpha1.PackagePolicy](nil, nil, nil, p)
	status := &obj.Next.Status
	report := func(want state) metav1.Condition {
		t.Helper()
		if _, err := reconcile(t.Context(), obj); err != nil || obj.State != string(want) {
			t.Fatalf("state %q (%v), want %q", obj.State, err, want)
		}
		if len(status.Conditions) != 1 || status.Conditions[0].ObservedGeneration != 7 || status.ObservedGeneration != 7 {
			t.Fatalf("%+v", status)
		}
		return status.Conditions[0]
	}
	if ready := report(usable); ready.Status != metav1.ConditionTrue || ready.Reason != ReasonLoaded || ready.Message != "" {
		t.Errorf("%+v", ready)
	}
	var shown []configv1alpha1.AuthorityStatus
	for _, a := range status.Authorities {
		if a.KeyHint == "" {
			t.Errorf("the key of %s is not hinted at", a.Name)
		}
		shown = append(shown, configv1alpha1.AuthorityStatus{Name: a.Name, Expires: a.Expires})
	}
	if diff := cmp.Diff([]configv1alpha1.AuthorityStatus{{Name: "release"}, {Name: "backup", Expires: &ends}}, shown); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	obj.Next.Spec.Match.Operators = []string{"*\n" + strings.Repeat("ä", maxMessage)}
	ready := report(unusable)
	if ready.Status != metav1.ConditionFalse || ready.Reason != ReasonInvalid || len(ready.Message) > maxMessage || strings.Contains(ready.Message, "\n") {
		t.Errorf("%+v", ready)
	}
	if status.Authorities != nil {
		t.Errorf("an unusable policy judges by no key, and shows %+v", status.Authorities)
	}
}

// TestConflict checks that a policy which was changed meanwhile is read live and reported by its new content.
func TestConflict(t *testing.T) {
	server := apitest.Start(t)
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production", Generation: 1}}
	server.Put(p)
	refuse := apierrors.NewConflict(schema.GroupResource{Resource: "packagepolicies"}, p.Name, errors.New("changed"))
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" {
			return nil, refuse
		}
		return nil, nil
	})
	c := server.Client()
	r := (&Reconciler{Client: c, Reader: c}).loop()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter <= 0 {
		t.Errorf("after a conflict: %+v, %v", result, err)
	}
	server.Before(nil)
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 {
		t.Errorf("after the next attempt: %+v, %v", result, err)
	}
	if server.Read(p); p.Status.ObservedGeneration != 1 {
		t.Errorf("%+v", p.Status)
	}
}
