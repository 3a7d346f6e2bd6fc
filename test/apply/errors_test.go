package apply

import (
	"context"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

func workload(ns, name string, container map[string]any, spec map[string]any) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	c := map[string]any{"name": "c", "image": "i"}
	for key, value := range container {
		c[key] = value
	}
	content := map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{c}}},
	}
	for key, value := range spec {
		content[key] = value
	}
	return object("apps/v1", "Deployment", ns, name, map[string]any{"spec": content})
}

var _ = Describe("Fields that the schema lacks and entries of a list with the same key are dropped and named", Label("error-classes"), func() {
	type testCase struct {
		reason  string
		obj     *unstructured.Unstructured
		dropped []apply.Dropped
		ports   []string
	}
	cases := func(ns string) map[string]testCase {
		port := func(name string, number int64, more ...any) map[string]any {
			p := map[string]any{"name": name, "containerPort": number}
			for i := 0; i+1 < len(more); i += 2 {
				p[more[i].(string)] = more[i+1]
			}
			return p
		}
		at := ".spec.template.spec.containers[0]"
		return map[string]testCase{
			"Clean":     {"nothing is dropped", workload(ns, "clean", map[string]any{"ports": []any{port("a", 1)}}, nil), nil, []string{"a"}},
			"Field":     {"a field of no schema", workload(ns, "field", map[string]any{"immage": "x"}, map[string]any{"replica": int64(1)}), []apply.Dropped{{Path: ".spec.replica"}, {Path: at + ".immage"}}, nil},
			"Duplicate": {"the last of two ports stays", workload(ns, "duplicate", map[string]any{"ports": []any{port("a", 1, "protocol", "TCP"), port("b", 1, "protocol", "TCP")}}, nil), []apply.Dropped{{Path: at + ".ports[0]", Duplicate: true}}, []string{"b"}},
			"Default":   {"a key counts with its default: protocol is TCP", workload(ns, "default", map[string]any{"ports": []any{port("a", 1), port("b", 1, "protocol", "TCP"), port("c", 1, "protocol", "UDP")}}, nil), []apply.Dropped{{Path: at + ".ports[0]", Duplicate: true}}, []string{"b", "c"}},
			"Env":       {"the last of two variables stays", workload(ns, "env", map[string]any{"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "A", "value": "2"}}}, nil), []apply.Dropped{{Path: at + ".env[0]", Duplicate: true}}, nil},
		}
	}
	for name, tc := range env.Sorted(cases("")) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			tc := cases(ns)[name]
			c := s.does(t, tc.reason, apply.Created, tc.obj)
			if diff := cmp.Diff(tc.dropped, c.Dropped); diff != "" {
				t.Errorf("%s: dropped: %s", tc.reason, diff)
			}
			containers, _, _ := unstructured.NestedSlice(live(t, tc.obj).Object, "spec", "template", "spec", "containers")
			ports, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "ports")
			var names []string
			for _, p := range ports {
				names = append(names, p.(map[string]any)["name"].(string))
			}
			if diff := cmp.Diff(tc.ports, names); diff != "" {
				t.Errorf("%s: ports: %s", tc.reason, diff)
			}
			if again := s.apply(tc.obj)[0]; again.Action != apply.Unchanged {
				t.Errorf("%s: a second apply: action %d, error %v", tc.reason, again.Action, again.Err)
			}
		})
	}
})

var _ = Describe("What an answer of the apiserver means for a run", func() {
	type testCase struct {
		reason string
		obj    *unstructured.Unstructured
		fatal  bool
		text   string
	}
	cases := func(ns string) map[string]testCase {
		large := strings.Repeat("x", 1<<20+1)
		return map[string]testCase{
			"Invalid":    {"422: every attempt would meet it", workload(ns, "x", nil, map[string]any{"replicas": int64(-1)}), true, "spec.replicas"},
			"Type":       {"a value of a wrong type", workload(ns, "x", nil, map[string]any{"replicas": "two"}), true, "Deployment " + ns + "/x"},
			"Name":       {"422: a name that cannot be", configMap(ns, "Upper_Case", nil), true, "Upper_Case"},
			"Large":      {"422: more than a ConfigMap may hold", configMap(ns, "large", map[string]any{"a": large}), true, "large"},
			"Larger":     {"500 without a reason: more than etcd takes", object("rbac.authorization.k8s.io/v1", "Role", ns, "large", map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{large[:900<<10] + large[:900<<10]}, "verbs": []any{"get"}}}}), true, "request is too large"},
			"TooLarge":   {"413: more than a request may have", configMap(ns, "large", map[string]any{"a": large, "b": large, "c": large, "d": large}), true, "large"},
			"Namespace":  {"404 of a namespace: it may come", configMap("nowhere", "x", nil), false, "nowhere"},
			"Kind":       {"a kind that a complete discovery does not know", object("example.com/v1", "Thing", ns, "x", nil), true, "install the CustomResourceDefinition that defines it"},
			"OldVersion": {"an old version of a kind: the remedy names the one that is served", object("apps/v1beta1", "Deployment", ns, "x", nil), true, "serves Deployment as apps/v1"},
		}
	}
	for name, tc := range env.Sorted(cases("")) {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns, s := cluster.NewNamespace(t), newSide(t, "one")
			tc := cases(ns)[name]
			c := s.does(t, tc.reason, apply.Failed, tc.obj)
			if text := c.Err.Error(); apply.IsFatal(c.Err) != tc.fatal || !strings.Contains(text, tc.text) {
				t.Errorf("%s: fatal %v, error %.300s", tc.reason, apply.IsFatal(c.Err), text)
			}
		})
	}
})

var _ = It("An answer 403 since the namespace is terminating ends the run", func() {
	t := GinkgoTB()
	ns, s := cluster.NewNamespace(t), newSide(t, "one")
	held := create(t, configMap(ns, "held", nil))
	edit(t, held, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
	t.Cleanup(func() { edit(t, held, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }) })
	home := object("v1", "Namespace", "", ns, nil)
	env.Must(t, cluster.Delete(context.Background(), home))
	env.Eventually(t, "terminating", env.Condition(func() bool { return live(t, home).GetDeletionTimestamp() != nil }))
	c := s.does(t, "the namespace is terminating", apply.Failed, configMap(ns, "x", nil))
	var ended *apply.NamespaceTerminatingError
	if !asError(c.Err, &ended) {
		t.Errorf("error %T %v, want NamespaceTerminatingError", c.Err, c.Err)
	}
})
