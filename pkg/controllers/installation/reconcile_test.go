package installation

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

const rbac = "rbac.authorization.k8s.io/v1"

// TestReconcileOrphan checks that an Installation is deleted with its OperatorVersion, bound to its uid, and not before.
func TestReconcileOrphan(t *testing.T) {
	f := newFixture(t)
	f.Put(f.installation)
	if _, events := f.reconcileOnce(); len(f.writes())+len(events) > 0 {
		t.Error("an Installation whose OperatorVersion exists was written")
	}
	f.Remove(f.version)
	var options metav1.DeleteOptions
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" {
			r.Decode(t, &options)
		}
		return nil, nil
	})
	f.reconcileOnce()
	if diff := cmp.Diff([]string{"delete Installation ns-web-1.0"}, f.writes()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if options.Preconditions == nil || *options.Preconditions.UID != "holder" || *options.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("deleted with %+v, want the uid, in the background", options)
	}
}

// TestReconcileInUse checks that the Installation says by whom it is in use, with one event, and writes it once.
func TestReconcileInUse(t *testing.T) {
	f := newFixture(t)
	f.terminate()
	user := f.Put(gen.Instance("user", f.version, nil))
	f.release(f.hold(rbac, "ClusterRole", "a"))
	const message = "OperatorVersion ns/web-1.0 is in use by Instance ns/user: uninstall or upgrade it first, or let the OperatorVersion go without it by kubectl kudo uninstall-version --leave-users"
	for n, want := range [][]string{{"Warning " + v1beta1.EventReleaseBlocked + " " + message}, nil} {
		result, events := f.reconcileOnce()
		if diff := cmp.Diff(want, events); diff != "" || result.RequeueAfter != pollInterval {
			t.Errorf("reconcile %d: again after %s, events -want +got: %s", n, result.RequeueAfter, diff)
		}
		if got := f.writes(); len(got) != len(want) {
			t.Errorf("reconcile %d writes %v", n, got)
		}
	}
	f.Server.Read(f.installation)
	if c := f.installation.Status.Conditions[0]; c.Type != v1beta1.ReleasedCondition || c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonInUse || c.Message != message {
		t.Errorf("condition %+v", c)
	}
	f.Remove(user)
	f.reconcileOnce()
	if f.Server.Get(f.installation) != nil {
		t.Error("it is not released after its last user")
	}
}

// TestReconcileRelease checks that what is held goes in reverse order, and that what waits keeps what was installed before it.
func TestReconcileRelease(t *testing.T) {
	f := newFixture(t)
	f.Remove(f.version)
	waits := func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{"example.org/slow"}) }
	a, b, c := f.hold(rbac, "ClusterRole", "a"), f.hold(rbac, "ClusterRole", "b", waits), f.hold(rbac, "ClusterRole", "c")
	f.release(a, b, c)
	result, events := f.reconcileOnce()
	if diff := cmp.Diff([]string{"delete ClusterRole c", "delete ClusterRole b", "patch Installation ns-web-1.0/status"}, f.writes()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if result.RequeueAfter != pollInterval || len(events) != 1 {
		t.Errorf("again after %s, events %v", result.RequeueAfter, events)
	}
	f.Server.Read(f.installation)
	if diff := cmp.Diff([]v1beta1.HeldResource{a, b}, f.installation.Status.Resources); diff != "" {
		t.Errorf("inventory: -want +got: %s", diff)
	}
	f.Remove(&unstructured.Unstructured{Object: map[string]any{"apiVersion": rbac, "kind": "ClusterRole", "metadata": map[string]any{"name": "b"}}})
	f.reconcileOnce()
	if diff := cmp.Diff([]string{"delete ClusterRole a", "patch Installation ns-web-1.0"}, f.writes()); diff != "" {
		t.Errorf("the next reconcile: -want +got: %s", diff)
	}
	if f.Server.Get(f.installation) != nil {
		t.Error("the finalizer was not removed")
	}
}

// TestReconcileRefused checks that an object that cannot be deleted keeps the finalizer.
func TestReconcileRefused(t *testing.T) {
	f := newFixture(t)
	f.Remove(f.version)
	f.release(f.hold(rbac, "ClusterRole", "a"))
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" {
			return nil, errors.New("down")
		}
		return nil, nil
	})
	if result, _ := f.reconcileOnce(); result.RequeueAfter <= 0 || f.Server.Get(f.installation) == nil {
		t.Errorf("again after %s, Installation %v", result.RequeueAfter, f.Server.Get(f.installation))
	}
}

// TestUsedBy checks which Installations an Instance enqueues: its own, and those that are released.
func TestUsedBy(t *testing.T) {
	installation := func(name string, modify ...func(*v1beta1.Installation)) client.Object {
		i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1beta1.InstallationFinalizer}}}
		for _, m := range modify {
			m(i)
		}
		return i
	}
	released := func(i *v1beta1.Installation) { i.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	instance := gen.Instance("user", gen.Version("ns", "web-1.0"), nil)
	instance.UID = "user"
	own := v1beta1.InstallationName("ns", "user", "user")
	for _, tc := range []struct {
		reason        string
		installations []client.Object
		want          []string
	}{
		{"there is none", nil, []string{own}},
		{"none is released", []client.Object{installation("a"), installation("b")}, []string{own}},
		{"one of two is released", []client.Object{installation("a"), installation("b", released)}, []string{own, "b"}},
		{"both are released", []client.Object{installation("a", released), installation("b", released)}, []string{own, "a", "b"}},
	} {
		r := &Reconciler{Client: apitest.NewIndexedClient(&v1beta1.Installation{}, indexes, tc.installations...)}
		var got []string
		for _, enqueued := range r.usedBy(t.Context(), instance) {
			got = append(got, enqueued.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
	f := newFixture(t)
	f.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if diff := cmp.Diff(request(own), f.usedBy(t.Context(), instance)); diff != "" {
		t.Errorf("Installations cannot be listed: -want +got: %s", diff)
	}
}

// TestRequests checks which Installations an OperatorVersion and an object enqueue.
func TestRequests(t *testing.T) {
	f := newFixture(t)
	if diff := cmp.Diff(request(f.version.InstallationName()), f.holdersOf(t.Context(), f.version)); diff != "" {
		t.Errorf("an OperatorVersion concerns its own: -want +got: %s", diff)
	}
	obj := &unstructured.Unstructured{}
	obj.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: "a"}, {APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "b"},
		{APIVersion: "example.org/v1", Kind: "Installation", Name: "c"}, {APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: "d"},
	})
	if diff := cmp.Diff([]reconcile.Request{request("a")[0], request("d")[0]}, installationsOwning(t.Context(), obj)); diff != "" {
		t.Errorf("an object concerns the Installations that own it: -want +got: %s", diff)
	}
}
