package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

var _ = Describe("Names that a watch shows to be free are not looked for", Label("requests-of-an-instance"), func() {
	// four objects of as many kinds, as an Instance of a usual operator has them.
	four := func(ns, name string) []*unstructured.Unstructured {
		labels := map[string]any{"app": name}
		return []*unstructured.Unstructured{
			object("v1", "ServiceAccount", ns, name, nil),
			configMap(ns, name, map[string]any{"a": "1"}),
			object("v1", "Service", ns, name, map[string]any{"spec": map[string]any{"selector": labels, "ports": []any{map[string]any{"port": int64(80)}}}}),
			object("apps/v1", "Deployment", ns, name, map[string]any{"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
					"containers": []any{map[string]any{"name": "c", "image": "i"}},
				}},
			}}),
		}
	}
	// warm lets the engine create objects until it knows the names of the kinds.
	warm := func(s *side, ns string) {
		for n := range 3 {
			env.Must(s.t, s.apply(four(ns, fmt.Sprintf("first-%d", n))...).Err())
		}
		env.Eventually(s.t, "an answer of the engine without a request", func() string {
			s.wire.since("")
			if refused := s.preflight(four(ns, "warm")...); refused != nil {
				return refused.Err().Error()
			}
			return strings.Join(s.wire.since("namespaces/"+ns), ", ")
		})
	}
	It("an Instance of four objects costs a write for each of them, and no other request", func() {
		t := GinkgoTB()
		ns, s := cluster.NewNamespace(t), newSide(t, "one")
		s.useNames()
		s.watch(four(ns, "web")...)
		warm(s, ns)
		for i := range 3 {
			objs := four(ns, fmt.Sprintf("web-%d", i))
			s.wire.since("")
			if refused := s.preflight(objs...); refused != nil {
				t.Error(refused.Err())
			}
			env.Must(t, s.apply(objs...).Err())
			if sent := s.wire.since("namespaces/" + ns); len(sent) != len(objs) {
				t.Errorf("%d requests for %d objects: %q", len(sent), len(objs), sent)
			}
		}
	})
	It("an object that another client has created since, and that the watch has not shown, is refused, and stays as it is", Label("preflight"), func() {
		t := GinkgoTB()
		ns, s := cluster.NewNamespace(t), newSide(t, "one")
		s.useNames()
		objs := four(ns, "web")
		s.watch(objs...)
		warm(s, ns)
		release := s.wire.hold(t)
		foreign := create(t, configMap(ns, "web", map[string]any{"b": "2"}))
		if refused := s.preflight(objs...); refused != nil {
			t.Fatalf("the watch is held back, and shows the object: %v", refused.Err())
		}
		var collision *apply.CollisionError
		if err := s.apply(objs...).Err(); !errors.As(err, &collision) || !apply.IsFatal(err) {
			t.Errorf("error %v", err)
		}
		if diff := cmp.Diff(foreign.Object, live(t, foreign).Object); diff != "" {
			t.Errorf("the foreign object was changed: %s", diff)
		}
		for _, obj := range objs[2:] {
			if live(t, obj) != nil {
				t.Errorf("%s is written, though the class before has failed", apply.IDOf(obj))
			}
		}
		release()
		env.Eventually(t, "a refusal before the first write", func() string {
			if refused := s.preflight(four(ns, "web")...); refused.Err() == nil {
				return "nothing is refused"
			}
			return ""
		})
	})
})

// useNames lets the side's engine ask names.
func (s *side) useNames() {
	ctx, stop := context.WithCancel(context.Background())
	s.t.Cleanup(stop)
	s.engine.UseNames(apply.NewNames(ctx, s.metas, logr.Discard()))
}
