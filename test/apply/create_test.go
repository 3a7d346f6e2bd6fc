package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

var _ = Describe("An object that is not known is created, and never merged into one that is there:", func() {
	type testCase struct {
		reason string
		there  *unstructured.Unstructured
		obj    *unstructured.Unstructured
		want   apply.Action
	}
	cases := func(ns string, s *side) map[string]testCase {
		return map[string]testCase{
			"Absent":   {"an object that is not there is created", nil, configMap(ns, "absent", map[string]any{"a": "1"}), apply.Created},
			"Present":  {"other keys would merge without a conflict", configMap(ns, "present", map[string]any{"b": "2"}), configMap(ns, "present", map[string]any{"a": "1"}), apply.Failed},
			"Equal":    {"an equal object is foreign all the same", configMap(ns, "equal", map[string]any{"a": "1"}), configMap(ns, "equal", map[string]any{"a": "1"}), apply.Failed},
			"OursLost": {"ours, though the inventory and the mirror do not know it", s.own(configMap(ns, "ours", map[string]any{"b": "2"}))[0], configMap(ns, "ours", map[string]any{"a": "1"}), apply.Configured},
		}
	}
	for name, tc := range env.Sorted(cases("", &side{name: "one"})) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			tc := cases(ns, s)[name]
			if tc.there != nil {
				tc.there = create(t, tc.there)
			}
			c := s.does(t, tc.reason, tc.want, tc.obj)
			now := live(t, tc.obj)
			if tc.want != apply.Failed {
				if got := now.GetLabels()["heritage"]; got != "kudo" || now.GetUID() != c.Record.UID {
					t.Errorf("%s: heritage %q, record %+v", tc.reason, got, c.Record)
				}
				return
			}
			var collision *apply.CollisionError
			if !errors.As(c.Err, &collision) || !apply.IsFatal(c.Err) || !strings.Contains(c.Err.Error(), "another client") {
				t.Errorf("%s: error %v", tc.reason, c.Err)
			}
			if diff := cmp.Diff(tc.there.Object, now.Object); diff != "" {
				t.Errorf("%s: the foreign object was changed: %s", tc.reason, diff)
			}
		})
	}
})

var _ = Describe("Nothing of a task is written if one of its objects must not be, and foreign objects are not touched", Label("preflight"), func() {
	type testCase struct {
		reason   string
		objs     []*unstructured.Unstructured
		refused  string
		fatal    bool
		requests []string
	}
	cases := func(ns string) map[string]testCase {
		fresh := func(name string) *unstructured.Unstructured { return configMap(ns, name, nil) }
		return map[string]testCase{
			"Free":    {"several of a kind cost one LIST of metadata", []*unstructured.Unstructured{fresh("a"), fresh("b"), fresh("c")}, "", false, []string{"GET /configmaps"}},
			"Single":  {"one object needs no look: its create-only apply is the guard", []*unstructured.Unstructured{fresh("foreign")}, "", false, nil},
			"Several": {"a foreign one among several is found by the LIST, and read again", []*unstructured.Unstructured{fresh("a"), fresh("foreign")}, "foreign", true, []string{"GET /configmaps", "GET /configmaps/foreign"}},
			"Alone":   {"a kind with one object costs one GET", []*unstructured.Unstructured{fresh("a"), object("v1", "Secret", ns, "alone", nil)}, "alone", true, []string{"GET /configmaps/a", "GET /secrets/alone", "GET /secrets/alone"}},
			"Unknown": {"an unknown kind is refused before anything is written", []*unstructured.Unstructured{fresh("a"), object("example.com/v1", "Thing", ns, "x", nil)}, "Thing", true, nil},
		}
	}
	for name, tc := range env.Sorted(cases("")) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			foreign := create(t, configMap(ns, "foreign", map[string]any{"a": "1"}))
			alone := create(t, object("v1", "Secret", ns, "alone", nil))
			tc := cases(ns)[name]
			_, _ = s.mapper.RESTMapping(foreign.GroupVersionKind().GroupKind())
			s.wire.since("")
			refused := s.preflight(tc.objs...)
			got := ""
			for _, c := range refused {
				got += fmt.Sprint(c.ID, ": ", c.Err)
			}
			if (tc.refused == "") != (got == "") || !strings.Contains(got, tc.refused) || tc.fatal != apply.IsFatal(refused.Err()) {
				t.Errorf("%s: refused %q", tc.reason, got)
			}
			var requests []string
			for _, r := range s.wire.since("namespaces/" + ns) {
				requests = append(requests, strings.Replace(r, "/api/v1/namespaces/"+ns, "", 1))
			}
			slices.Sort(requests)
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Errorf("%s: requests: %s", tc.reason, diff)
			}
			for _, obj := range []*unstructured.Unstructured{foreign, alone} {
				if diff := cmp.Diff(obj.Object, live(t, obj).Object); diff != "" {
					t.Errorf("the foreign object was changed: %s", diff)
				}
			}
		})
	}
})

var _ = It("A foreign object that has just gone is no reason to fail permanently, though the mirror still shows it", func() {
	t := GinkgoTB()
	ns, a, b := cluster.NewNamespace(t), newSide(t, "a"), newSide(t, "b")
	one, two := configMap(ns, "one", nil), configMap(ns, "two", nil)
	b.watch(one)
	a.does(t, "made by a", apply.Created, one)
	b.shows(one)
	if c := b.apply(one)[0]; c.Action != apply.Failed {
		t.Fatalf("an object of another Instance: action %d", c.Action)
	}
	b.wire.hold(t)
	remove(t, one)
	if refused := b.preflight(one, two); refused != nil {
		t.Errorf("the preflight refuses an object that was deleted: %v", refused.Err())
	}
	b.does(t, "the mirror is old, and the object gone", apply.Created, one)
})

var _ = It("Of two engines that apply one name at the same time exactly one wins, and the other names the collision", func() {
	t := GinkgoTB()
	const names = 100
	ns, sides := cluster.NewNamespace(t), []*side{newSide(t, "a"), newSide(t, "b")}
	results := make([][]apply.Change, len(sides))
	var all sync.WaitGroup
	for i, s := range sides {
		all.Go(func() {
			for n := range names {
				obj := s.own(configMap(ns, fmt.Sprintf("n-%d", n), map[string]any{"by": s.name}))
				results[i] = append(results[i], s.engine.Apply(context.Background(), obj, s.options())[0])
			}
		})
	}
	all.Wait()
	for n := range names {
		won := 0
		for i, s := range sides {
			c := results[i][n]
			now := live(t, configMap(ns, c.ID.Name, nil))
			by, _, _ := unstructured.NestedString(now.Object, "data", "by")
			var collision *apply.CollisionError
			switch {
			case c.Action == apply.Created && by == s.name && now.GetLabels()["kudo.dev/instance"] == s.name:
				won++
			case c.Action == apply.Failed && errors.As(c.Err, &collision) && by != s.name:
			default:
				t.Errorf("%s by %s: action %d, error %v, while it is by %s", c.ID, s.name, c.Action, c.Err, by)
			}
		}
		if won != 1 {
			t.Errorf("n-%d: %d winners", n, won)
		}
	}
})

// The mirror is held back, so that it shows the object as the side made it.
var _ = Describe("What happens to an object between the look at it and its apply", func() {
	for _, tc := range env.Sorted(map[string]struct {
		reason string
		others func(t testing.TB, s *side, obj *unstructured.Unstructured)
		want   apply.Action
		text   string
	}{
		"Deleted": {"409: it was deleted, and is created anew", func(t testing.TB, _ *side, obj *unstructured.Unstructured) { remove(t, obj) }, apply.Created, ""},
		"Foreign": {"422: it was replaced by a foreign one, which stays", func(t testing.TB, _ *side, obj *unstructured.Unstructured) {
			remove(t, obj)
			create(t, configMap(obj.GetNamespace(), obj.GetName(), map[string]any{"other": "x"}))
		}, apply.Failed, "belongs to another client"},
		"Ours": {"422: it was replaced by another of ours, which is written", func(t testing.TB, s *side, obj *unstructured.Unstructured) {
			remove(t, obj)
			create(t, s.own(configMap(obj.GetNamespace(), obj.GetName(), map[string]any{"other": "x"}))[0])
		}, apply.Configured, ""},
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			obj := configMap(ns, "x", map[string]any{"a": "1"})
			s.watch(obj)
			s.does(t, "first", apply.Created, obj)
			s.shows(obj)
			s.wire.hold(t)
			tc.others(t, s, obj)
			before := live(t, obj)
			c := s.does(t, tc.reason, tc.want, configMap(ns, "x", map[string]any{"a": "2"}))
			if tc.want == apply.Failed {
				if !strings.Contains(c.Err.Error(), tc.text) || live(t, obj).GetResourceVersion() != before.GetResourceVersion() {
					t.Errorf("%s: %v", tc.reason, c.Err)
				}
				return
			}
			if a, _, _ := unstructured.NestedString(live(t, obj).Object, "data", "a"); a != "2" {
				t.Errorf("%s: it has %q", tc.reason, a)
			}
		})
	}
})

var _ = It("An object that is being deleted is not written, but awaited, and created anew once it is deleted", func() {
	t := GinkgoTB()
	ns, s := cluster.NewNamespace(t), newSide(t, "one")
	obj := configMap(ns, "x", map[string]any{"a": "1"})
	s.watch(obj)
	first := s.does(t, "first", apply.Created, obj)
	edit(t, obj, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
	env.Must(t, cluster.Delete(context.Background(), obj.DeepCopy()))
	s.shows(obj)
	c := s.does(t, "being deleted", apply.Awaited, obj)
	if want := "ConfigMap " + ns + "/x is being deleted (finalizers [example.com/hold])"; c.Err.Error() != want {
		t.Errorf("it says %q, want %q", c.Err, want)
	}
	later := configMap(ns, "later", nil)
	if got := s.apply(obj, later); got.Err() != nil {
		t.Errorf("waiting is no failure: %v", got.Err())
	}
	edit(t, obj, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	env.Eventually(t, "gone", env.Condition(func() bool { return live(t, obj) == nil }))
	s.shows(obj)
	if again := s.does(t, "gone", apply.Created, obj); again.Record.UID == first.Record.UID {
		t.Error("it has the old uid")
	}
})

var _ = Describe("What leaves a template leaves the object, and what others have added stays", Label("fields-leave"), func() {
	type testCase struct {
		reason       string
		first, later *unstructured.Unstructured
		foreign      string
		want         map[string]any
	}
	cases := func(ns string) map[string]testCase {
		secret := func(content map[string]any) *unstructured.Unstructured {
			return object("v1", "Secret", ns, "s", content)
		}
		return map[string]testCase{
			"ConfigMap": {"b leaves", configMap(ns, "c", map[string]any{"a": "1", "b": "2"}), configMap(ns, "c", map[string]any{"a": "1"}), `{"data":{"z":"26"}}`, map[string]any{"a": "1", "z": "26"}},
			"stringData": {"b leaves data, though it came as stringData",
				secret(map[string]any{"stringData": map[string]any{"a": "1", "b": "2"}}), secret(map[string]any{"stringData": map[string]any{"a": "1"}}),
				`{"stringData":{"z":"26"}}`, map[string]any{"a": "MQ==", "z": "MjY="}},
		}
	}
	for name, tc := range env.Sorted(cases("")) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			tc := cases(ns)[name]
			s.does(t, "first", apply.Created, tc.first)
			env.Must(t, cluster.Patch(context.Background(), tc.first.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tc.foreign))))
			s.does(t, tc.reason, apply.Configured, tc.later)
			now := live(t, tc.first)
			if diff := cmp.Diff(tc.want, now.Object["data"]); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			for _, entry := range now.GetManagedFields() {
				if entry.Manager == "kudo/test/one" && entry.Operation != metav1.ManagedFieldsOperationApply {
					t.Errorf("%s: the engine has an entry of kind %s", tc.reason, entry.Operation)
				}
			}
		})
	}
})
