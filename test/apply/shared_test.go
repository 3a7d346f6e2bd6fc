package apply

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

func role(name string, rules []any) *unstructured.Unstructured {
	return object("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, map[string]any{"rules": rules})
}

func rule(verbs ...any) map[string]any {
	return map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": verbs}
}

var _ = Describe("A cluster-scoped object that another Instance made is applied with kudo's own metadata forced, and any other conflict named", func() {
	noted := func(obj *unstructured.Unstructured, value string) *unstructured.Unstructured {
		obj.SetAnnotations(map[string]string{"example.com/note": value, "kudo.dev/plan": "plan-" + value})
		return obj
	}
	for name, tc := range env.Sorted(map[string]struct {
		reason       string
		first, later func(name string) *unstructured.Unstructured
		text         string
	}{
		"Equal": {"equal but for kudo's own labels",
			func(n string) *unstructured.Unstructured { return role(n, []any{rule("get")}) },
			func(n string) *unstructured.Unstructured { return role(n, []any{rule("get")}) }, ""},
		"Empty": {"the server stores an empty list as null, which is no difference",
			func(n string) *unstructured.Unstructured { return role(n, []any{}) },
			func(n string) *unstructured.Unstructured { return role(n, []any{}) }, ""},
		"Other": {"other rules are a conflict, which is named, and nothing is written",
			func(n string) *unstructured.Unstructured { return role(n, []any{rule("get")}) },
			func(n string) *unstructured.Unstructured { return role(n, []any{rule("get", "list")}) }, ".rules"},
		"Emptied": {"no rules where the other has some",
			func(n string) *unstructured.Unstructured { return role(n, []any{rule("get")}) },
			func(n string) *unstructured.Unstructured { return role(n, []any{}) }, ".rules"},
		"Annotation": {"an annotation that is not kudo's is a conflict too",
			func(n string) *unstructured.Unstructured { return noted(role(n, nil), "a") },
			func(n string) *unstructured.Unstructured { return noted(role(n, nil), "b") }, "example.com/note"},
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			a, b := newSide(t, "a"), newSide(t, "b")
			role := "shared-" + strings.ToLower(name)
			first := tc.first(role)
			t.Cleanup(func() { remove(t, first) })
			a.does(t, "the first makes it", apply.Created, first)
			before := live(t, first)
			if tc.text == "" {
				b.does(t, tc.reason, apply.Configured, tc.later(role))
				a.seesLive(t, first)
				a.does(t, "and back", apply.Configured, first)
				return
			}
			c := b.does(t, tc.reason, apply.Failed, tc.later(role))
			if !apply.IsFatal(c.Err) || !strings.Contains(c.Err.Error(), tc.text) || !strings.Contains(c.Err.Error(), "other field managers manage fields") {
				t.Errorf("%s: %v", tc.reason, c.Err)
			}
			if live(t, first).GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("%s: it was written", tc.reason)
			}
		})
	}
})

// seesLive waits until the side's mirror shows an object as it is.
func (s *side) seesLive(t testing.TB, obj *unstructured.Unstructured) {
	t.Helper()
	want := live(t, obj).GetResourceVersion()
	env.Eventually(t, "version "+want+" of "+apply.IDOf(obj).String()+" in the mirror", env.Condition(func() bool {
		seen, _ := s.mirror.Get(apply.IDOf(obj))
		return seen != nil && seen.GetResourceVersion() == want
	}))
}
