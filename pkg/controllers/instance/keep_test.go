package instance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestReleaseKept is P25: the Instance is no owner any more of an object that a user annotates, once, and the object is as the inventory
// says.
func TestReleaseKept(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "web-app-0", errors.New("no right to patch"))
	for _, tc := range []struct {
		reason  string
		refused error
		owners  int
		event   string
	}{
		{"the account may write it", nil, 0, "Normal ResourceKept ConfigMap ns/web-app-0 is annotated to be kept: the Instance does not own it any more"},
		{"the account may not write it", forbidden, 1, "Warning ResourceNotKept ConfigMap ns/web-app-0 is annotated to be kept, but will be deleted with the Instance"},
		{"it is not known whether it may", errSlow, 1, ""},
	} {
		f := newFixture(t)
		f.settle(t)
		f.recorded()
		object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}
		f.Read(object)
		if len(object.OwnerReferences) != 1 {
			t.Fatalf("%s: before, the owners are %v", tc.reason, object.OwnerReferences)
		}
		object.Annotations[v1beta1.KeepAnnotation] = ""
		f.Put(object)
		f.await(t, func() bool {
			live, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
			return live != nil && live.GetAnnotations()[v1beta1.KeepAnnotation] == "" && live.GetResourceVersion() == f.Get(object).GetResourceVersion()
		})
		live, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
		f.r.kept.note(f.key(), live)
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "patch" && r.Kind == "ConfigMap" {
				return nil, tc.refused
			}
			return nil, nil
		})
		for range 2 { // the second reconcile has nothing to say that the first one has not
			f.reconcile(t)
		}
		f.Read(object)
		if len(object.OwnerReferences) != tc.owners {
			t.Errorf("%s: the owners are %v", tc.reason, object.OwnerReferences)
		}
		got := f.recorded()
		if tc.event == "" && len(got) > 0 || tc.event != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.event)) {
			t.Errorf("%s: events %q", tc.reason, got)
		}
		if tc.owners == 0 {
			resource := f.instance().Status.Resources[0]
			if diff := cmp.Diff([]string{string(object.UID), "False "}, []string{string(resource.UID), driftText(f.instance()) + "False "}); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		}
	}
}

// TestKeptObjects: what is noted of an Instance is what is kept and has an Instance as its owner, as the last event shows it.
func TestKeptObjects(t *testing.T) {
	object := func(annotation string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		out.SetNamespace("ns")
		out.SetName("a")
		out.SetAnnotations(texts{v1beta1.KeepAnnotation: annotation})
		out.SetOwnerReferences(owners)
		return out
	}
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "web", UID: "uid"}
	id, now := idOf("v1", "ConfigMap", "ns", "a"), time.Unix(1, 0)
	k, key := &keptObjects{}, types.NamespacedName{Namespace: "ns", Name: "web"}
	for _, step := range []struct {
		reason string
		do     func()
		want   map[apply.ID]time.Time
	}{
		{"nothing is known", func() { k.refuse(key, id, now) }, nil},
		{"it is not kept", func() { k.note(key, object("false", owner)) }, nil},
		{"it has no owner", func() { k.note(key, object("")) }, nil},
		{"it is kept", func() { k.note(key, object("", owner)) }, map[apply.ID]time.Time{id: {}}},
		{"the API server refuses", func() { k.refuse(key, id, now) }, map[apply.ID]time.Time{id: now}},
		{"it has changed", func() { k.note(key, object("", owner)) }, map[apply.ID]time.Time{id: now}},
		{"it has no owner any more", func() { k.note(key, object("")) }, nil},
		{"it is kept again", func() { k.note(key, object("true", owner)) }, map[apply.ID]time.Time{id: {}}},
		{"the Instance is deleted", func() { k.forget(key) }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, k.of(key)); diff != "" {
			t.Errorf("%s: -want +got: %s", step.reason, diff)
		}
	}
	if len(k.objects) > 0 {
		t.Errorf("%v are left", k.objects)
	}
}

// TestReleaseKeptFirst is P25: an Instance does not end before it is no owner any more of what is kept.
func TestReleaseKeptFirst(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}
	f.Read(object)
	object.Annotations[v1beta1.KeepAnnotation] = ""
	f.Put(object)
	f.await(t, func() bool {
		live, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
		return live != nil && live.GetResourceVersion() == f.Get(object).GetResourceVersion()
	})
	live, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
	f.r.kept.note(f.key(), live)
	f.change(func(i *v1beta1.Instance) { i.Finalizers = []string{v1beta1.CleanupFinalizer} })
	refused := errors.New("the connection is refused")
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && r.Kind == "ConfigMap" {
			return nil, refused
		}
		return nil, nil
	})
	for _, want := range []int{1, 0} { // the finalizer stays with the first attempt, which fails
		a := f.action(t)
		if err := a.releaseInstance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(f.instance().Finalizers); got != want {
			t.Errorf("with the error %v, the Instance has %d finalizers", refused, got)
		}
		refused = nil
	}
	if f.Read(object); len(object.OwnerReferences) > 0 {
		t.Errorf("the owners are %v", object.OwnerReferences)
	}
	deleted := live.DeepCopy()
	deleted.SetName("deleted")
	f.r.kept.note(f.key(), deleted)
	if f.action(t).releaseKept(t.Context()) || len(f.r.kept.of(f.key())) > 0 {
		t.Error("what does not exist any more is remembered")
	}
}

// TestWatchInventory is P25: a manager that has just started watches the kinds of the inventory, also of an Instance that cannot run, since
// events show which objects are annotated to be kept.
func TestWatchInventory(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	objects, err := dynamic.NewForConfig(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.r.Mirror = apply.NewMirror(t.Context(), objects, f.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "absent" })
	f.reconcile(t)
	if ready := f.ready(); !strings.Contains(ready, "absent") {
		t.Errorf("the Instance is %s", ready)
	}
	if _, complete := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0")); !complete {
		t.Error("ConfigMaps are not watched")
	}
}
