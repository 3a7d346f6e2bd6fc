package apply

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

var _ = Describe("An unchanged object is judged against the live object, by uid, hash and version, and costs no request", func() {
	deployment := func(ns string, replicas int64) *unstructured.Unstructured {
		labels := map[string]any{"app": "x"}
		return object("apps/v1", "Deployment", ns, "x", map[string]any{"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "c", "image": "i"}},
			}},
		}})
	}
	set := func(value any, path ...string) func(testing.TB, *unstructured.Unstructured) {
		return func(t testing.TB, obj *unstructured.Unstructured) {
			edit(t, obj, func(o *unstructured.Unstructured) { env.Must(t, unstructured.SetNestedField(o.Object, value, path...)) })
		}
	}
	annotated := func(obj *unstructured.Unstructured, key string) *unstructured.Unstructured {
		obj.SetAnnotations(map[string]string{key: "other"})
		return obj
	}
	for _, tc := range env.Sorted(map[string]struct {
		reason string
		obj    func(ns string) *unstructured.Unstructured
		edit   func(t testing.TB, obj *unstructured.Unstructured)
		later  func(ns string) *unstructured.Unstructured
		want   apply.Action
	}{
		"Same":       {"nothing has changed", func(ns string) *unstructured.Unstructured { return configMap(ns, "x", map[string]any{"a": "1"}) }, nil, nil, apply.Unchanged},
		"Generation": {"a kind with a generation", func(ns string) *unstructured.Unstructured { return deployment(ns, 0) }, nil, nil, apply.Unchanged},
		"Template":   {"the template has changed", func(ns string) *unstructured.Unstructured { return deployment(ns, 0) }, nil, func(ns string) *unstructured.Unstructured { return deployment(ns, 1) }, apply.Configured},
		"Data":       {"a foreign edit of data is put right", func(ns string) *unstructured.Unstructured { return configMap(ns, "x", map[string]any{"a": "1"}) }, set("2", "data", "a"), nil, apply.Configured},
		"Spec":       {"a foreign edit of spec is put right", func(ns string) *unstructured.Unstructured { return deployment(ns, 0) }, set(int64(3), "spec", "replicas"), nil, apply.Configured},
		"Note":       {"a label by others does not concern a kind with a generation", func(ns string) *unstructured.Unstructured { return deployment(ns, 0) }, set("x", "metadata", "labels", "other"), nil, apply.Unchanged},
		"Label":      {"our labels must stand", func(ns string) *unstructured.Unstructured { return deployment(ns, 0) }, set("else", "metadata", "labels", "kudo.dev/instance"), nil, apply.Failed},
		"Plan": {"the plan's annotations cause no write", func(ns string) *unstructured.Unstructured {
			return annotated(configMap(ns, "x", nil), "kudo.dev/plan")
		}, nil, func(ns string) *unstructured.Unstructured { return configMap(ns, "x", nil) }, apply.Unchanged},
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			obj := tc.obj(ns)
			s.watch(obj)
			s.does(t, "first", apply.Created, obj)
			if tc.edit != nil {
				tc.edit(t, obj)
			}
			s.shows(obj)
			if tc.later != nil {
				obj = tc.later(ns)
			}
			if tc.want == apply.Failed { // without the label that decides whose it is, only the inventory would know
				s.does(t, tc.reason, tc.want, obj)
				return
			}
			s.wire.since("")
			c := s.does(t, tc.reason, tc.want, obj)
			if n := len(s.wire.since("")); (n == 0) != (tc.want == apply.Unchanged) {
				t.Errorf("%s: %d requests", tc.reason, n)
			}
			if c.Record != s.known[c.ID] || c.Live == nil {
				t.Errorf("%s: record %+v, live %v", tc.reason, c.Record, c.Live)
			}
		})
	}
})

var _ = It("The apply of many unchanged objects sends no request", Serial, Label("unchanged-costs-nothing"), func() {
	t := GinkgoTB()
	ns, s := cluster.NewNamespace(t), newSide(t, "one")
	var objs []*unstructured.Unstructured
	for i := range 50 {
		objs = append(objs, configMap(ns, fmt.Sprintf("n-%d", i), map[string]any{"a": "1"}))
	}
	s.watch(objs...)
	if err := s.apply(objs...).Err(); err != nil {
		t.Fatal(err)
	}
	before, err := cluster.Requests(context.Background())
	env.Must(t, err)
	s.wire.since("")
	if refused := s.preflight(objs...); refused != nil {
		t.Error(refused.Err())
	}
	for _, c := range s.apply(objs...) {
		if c.Action != apply.Unchanged {
			t.Errorf("%s: action %d", c.ID, c.Action)
		}
	}
	after, err := cluster.Requests(context.Background())
	env.Must(t, err)
	// The LISTs and DELETEs of namespaces that other tests leave are in the count.
	if since := after.Since(before); since["APPLY configmaps"]+since[env.DryRun+" configmaps"]+since["PATCH configmaps"]+since["GET configmaps"] != 0 {
		t.Errorf("requests at the apiserver: %v", since)
	}
	if sent := s.wire.since(""); sent != nil {
		t.Errorf("requests by the engine: %v", sent)
	}
})

var _ = Describe("The mirror's copy may be older than what happened", func() {
	one, two := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	data := func(t testing.TB, obj *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(live(t, obj).Object, "data", "a")
		return value
	}
	It("a write of our own is known", func() {
		t := GinkgoTB()
		ns, s := cluster.NewNamespace(t), newSide(t, "one")
		obj, other := configMap(ns, "x", one), configMap(ns, "x", two)
		s.watch(obj)
		s.does(t, "first", apply.Created, obj)
		s.shows(obj)
		s.wire.hold(t)
		s.does(t, "changed, which the watch does not show", apply.Configured, other)
		s.does(t, "the old copy does not count: our write is known", apply.Unchanged, other)
		s.does(t, "back to the first, which the old copy would call unchanged", apply.Configured, obj)
		if got := data(t, obj); got != "1" {
			t.Errorf("it has %q", got)
		}
	})
	It("an edit by others is put right once it is observed", func() {
		t := GinkgoTB()
		ns, s := cluster.NewNamespace(t), newSide(t, "one")
		obj := configMap(ns, "x", one)
		s.watch(obj)
		s.does(t, "first", apply.Created, obj)
		s.shows(obj)
		release := s.wire.hold(t)
		edit(t, obj, func(o *unstructured.Unstructured) {
			env.Must(t, unstructured.SetNestedField(o.Object, "9", "data", "a"))
		})
		s.does(t, "nothing can be known of the edit yet", apply.Unchanged, obj)
		release()
		s.shows(obj)
		s.does(t, "now it is", apply.Configured, obj)
		if got := data(t, obj); got != "1" {
			t.Errorf("it has %q", got)
		}
	})
	It("an object that was deleted unobserved is made anew", func() {
		t := GinkgoTB()
		ns, s := cluster.NewNamespace(t), newSide(t, "one")
		obj := configMap(ns, "x", one)
		s.watch(obj)
		c := s.does(t, "first", apply.Created, obj)
		s.shows(obj)
		remove(t, obj)
		s.shows(obj)
		s.mirror.RecordWrite(c.Live.DeepCopy()) // the answer to our write comes later than the end of the object on the watch
		if seen, _ := s.mirror.Get(apply.IDOf(obj)); seen != nil {
			t.Error("the mirror shows what the watch has seen go")
		}
		s.does(t, "it is made anew", apply.Created, obj)
	})
	It("a kind without a watch is read", func() {
		t := GinkgoTB()
		s := newSide(t, "one")
		review := object("authentication.k8s.io/v1", "TokenReview", "", "x", nil)
		s.watch(review)
		if seen, complete := s.mirror.Get(apply.IDOf(review)); seen != nil || complete {
			t.Errorf("a kind that cannot be watched: %v, %v", seen, complete)
		}
	})
})
