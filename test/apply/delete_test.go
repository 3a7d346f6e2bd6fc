package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

func annotate(t testing.TB, obj *unstructured.Unstructured, key, value string) {
	t.Helper()
	edit(t, obj, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	})
}

func asError[T error](err error, target *T) bool { return errors.As(err, target) }

var _ = Describe("What is ours is deleted and awaited; foreign objects are kept, and unknown kinds nothing to do", func() {
	type testCase struct {
		reason string
		obj    *unstructured.Unstructured
		before func(t testing.TB)
		want   apply.Removal
		stays  bool
	}
	cases := func(ns string, s *side) map[string]testCase {
		cm := func(name string) *unstructured.Unstructured { return configMap(ns, name, nil) }
		return map[string]testCase{
			"Ours":    {"it is deleted, and gone", cm("ours"), func(t testing.TB) { s.does(t, "first", apply.Created, cm("ours")) }, apply.Removal{Done: true}, false},
			"Absent":  {"there is nothing to do", cm("absent"), nil, apply.Removal{Done: true}, false},
			"Foreign": {"it is left alone, and its owner named", cm("foreign"), func(t testing.TB) { create(t, cm("foreign")) }, apply.Removal{Done: true, ForeignOwner: "another client"}, true},
			"Kept": {"P25: it is annotated to be kept", cm("kept"), func(t testing.TB) {
				s.does(t, "first", apply.Created, cm("kept"))
				annotate(t, cm("kept"), v1beta1.KeepAnnotation, "")
			}, apply.Removal{Done: true, KeepAnnotated: true}, true},
			"KeptByHelm": {"P25: Helm's annotation means the same", cm("kept-by-helm"), func(t testing.TB) {
				s.does(t, "first", apply.Created, cm("kept-by-helm"))
				annotate(t, cm("kept-by-helm"), v1beta1.HelmResourcePolicyAnnotation, "keep")
			}, apply.Removal{Done: true, KeepAnnotated: true}, true},
			"NotKept": {"P25: false keeps nothing", cm("not-kept"), func(t testing.TB) {
				s.does(t, "first", apply.Created, cm("not-kept"))
				annotate(t, cm("not-kept"), v1beta1.KeepAnnotation, "false")
			}, apply.Removal{Done: true}, false},
			"Unknown": {"an unknown kind is nothing to do", object("example.com/v1", "Thing", ns, "x", nil), nil, apply.Removal{Done: true}, false},
			"Replaced": {"the inventory knows another uid than that of the foreign object", cm("replaced"), func(t testing.TB) {
				s.does(t, "first", apply.Created, cm("replaced"))
				remove(t, cm("replaced"))
				create(t, cm("replaced"))
			}, apply.Removal{Done: true, ForeignOwner: "another client"}, true},
			"Held": {"it waits for a finalizer, which is named", cm("held"), func(t testing.TB) {
				s.does(t, "first", apply.Created, cm("held"))
				edit(t, cm("held"), func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
				t.Cleanup(func() { edit(t, cm("held"), func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }) })
			}, apply.Removal{Waiting: "ConfigMap " + ns + "/held is being deleted (finalizers [example.com/hold])"}, true},
		}
	}
	for name, tc := range env.Sorted(cases("", &side{name: "one"})) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			tc := cases(ns, s)[name]
			if tc.before != nil {
				tc.before(t)
			}
			tc.want.ID = apply.IDOf(tc.obj)
			got := s.delete(tc.obj)[0]
			if got.Waiting != "" && tc.want.Done { // the garbage collector ends a foreground deletion
				env.Eventually(t, "gone", env.Condition(func() bool { got = s.delete(tc.obj)[0]; return got.Waiting == "" }))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if tc.want.ID.Kind == "ConfigMap" && (live(t, tc.obj) != nil) != tc.stays {
				t.Errorf("%s: it is there: %v", tc.reason, !tc.stays)
			}
		})
	}
})

var _ = It("An object that is replaced between the look and the DELETE is not deleted", func() {
	t := GinkgoTB()
	ns, s := cluster.NewNamespace(t), newSide(t, "one")
	obj := configMap(ns, "x", nil)
	s.does(t, "first", apply.Created, obj)
	s.wire.mu.Lock()
	s.wire.deleting = func() {
		remove(t, obj)
		create(t, obj)
	}
	s.wire.mu.Unlock()
	if got := s.delete(obj)[0]; got.Err != nil || got.Done {
		t.Errorf("another look is needed: %+v", got)
	}
	if live(t, obj) == nil {
		t.Fatal("the foreign object was deleted")
	}
	if got := s.delete(obj)[0]; got.ForeignOwner != "another client" {
		t.Errorf("the next look: %+v", got)
	}
})

var _ = It("A kind that comes is awaited, one that has gone is nothing to do for a removal, and fatal for an apply", func() {
	t := GinkgoTB()
	ns, s, ctx := cluster.NewNamespace(t), newSide(t, "one"), context.Background()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.test.kudo.dev", map[string]any{"spec": map[string]any{
		"group": "test.kudo.dev", "scope": "Namespaced", "names": map[string]any{"kind": "Thing", "plural": "things"}, "versions": []any{version("v1", "a")},
	}})
	thing := object("test.kudo.dev/v1", "Thing", ns, "x", map[string]any{"spec": map[string]any{"a": "1"}})
	t.Cleanup(func() { _ = cluster.Delete(ctx, crd.DeepCopy()) })

	t.Log("a task with a CRD and an object of its kind")
	if refused := s.preflight(crd, thing); refused != nil {
		t.Fatalf("the kind comes with the task: %v", refused.Err())
	}
	env.Eventually(t, "applied", env.Condition(func() bool {
		changes := s.apply(crd, thing)
		if apply.IsFatal(changes.Err()) {
			t.Fatalf("a kind whose definition is being created is no reason for a fatal error: %v", changes.Err())
		}
		return changes[1].Record.UID != ""
	}))

	t.Log("the CRD gets another version: the kind is known in that version, and its schema published, only a moment later")
	old := version("v1", "a")
	old["storage"] = false
	env.Must(t, unstructured.SetNestedSlice(crd.Object, []any{old, version("v2", "a", "b")}, "spec", "versions"))
	newer := object("test.kudo.dev/v2", "Thing", ns, "y", map[string]any{"spec": map[string]any{"b": "1", "c": "1", "d": "1"}})
	s.does(t, "the CRD's versions", apply.Configured, crd)
	var c apply.Change
	env.Eventually(t, "applied in the new version", env.Condition(func() bool {
		if c = s.apply(newer)[0]; apply.IsFatal(c.Err) {
			t.Fatalf("a version that is being added is no reason for a fatal error: %v", c.Err)
		}
		return c.Action == apply.Created
	}))
	if diff := cmp.Diff([]apply.Dropped{{Path: ".spec.c"}, {Path: ".spec.d"}}, c.Dropped); diff != "" {
		t.Errorf("dropped: %s", diff)
	}

	t.Log("the schema of a version changes: what it declares now is not dropped")
	env.Must(t, unstructured.SetNestedSlice(crd.Object, []any{old, version("v2", "a", "b", "c")}, "spec", "versions"))
	s.does(t, "the CRD's schema", apply.Configured, crd)
	env.Eventually(t, "c is declared", env.Condition(func() bool {
		newer.SetName(newer.GetName() + "y")
		return cmp.Equal([]apply.Dropped{{Path: ".spec.d"}}, s.does(t, "d is not declared", apply.Created, newer).Dropped)
	}))

	t.Log("the kind goes, though the mapper knows it")
	remove(t, crd)
	env.Eventually(t, "the kind no longer exists", env.Condition(func() bool { return s.delete(thing)[0].Done }))
	env.Eventually(t, "fatal", env.Condition(func() bool {
		c := s.apply(thing)[0]
		return apply.IsFatal(c.Err) && strings.Contains(c.Err.Error(), "install the CustomResourceDefinition")
	}))
})

// version of a CRD whose spec has text fields.
func version(name string, fields ...string) map[string]any {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"type": "string"}
	}
	return map[string]any{"name": name, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
	}}}
}
