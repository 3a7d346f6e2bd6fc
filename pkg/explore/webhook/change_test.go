package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// TestChange checks C66: a change of configurations affects the kinds for which an operation has other webhooks, or the same ones that
// answer otherwise.
func TestChange(t *testing.T) {
	const group = "foo.example.com"
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}
	}
	rule := func(resources ...string) v1alpha1.RuleWithOperations {
		return v1alpha1.RuleWithOperations{Operations: []v1alpha1.OperationType{"ExploreHealthy"},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources}}
	}
	hook := func(name string, rules ...v1alpha1.RuleWithOperations) v1alpha1.ResourceExploringWebhook {
		return hookOf(nowhere, named(name), func(h *v1alpha1.ResourceExploringWebhook) { h.Rules = rules })
	}
	with := func(h v1alpha1.ResourceExploringWebhook, modify func(*v1alpha1.ResourceExploringWebhook)) v1alpha1.ResourceExploringWebhook {
		modify(&h)
		return h
	}
	scoped := rule("*")
	scoped.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	every := rule("foos")
	every.Operations = []v1alpha1.OperationType{v1alpha1.AnyOperation}
	type hooks = []v1alpha1.ResourceExploringWebhook
	foos := hook("a", rule("foos"))
	for _, tc := range []struct {
		reason        string
		before, after hooks
		want          []string
	}{
		{"nothing", hooks{foos}, hooks{foos}, nil},
		{"a new webhook", nil, hooks{foos}, []string{"Foo", "Unserved"}},
		{"a webhook is removed", hooks{foos}, nil, []string{"Foo", "Unserved"}},
		{"a rule more: what the other rule names has the same answers", hooks{foos}, hooks{hook("a", rule("foos"), rule("bars"))}, []string{"Bar", "Unserved"}},
		{"a resource more in one rule", hooks{foos}, hooks{hook("a", rule("foos", "bars"))}, []string{"Bar", "Unserved"}},
		{"an operation more", hooks{foos}, hooks{hook("a", every)}, []string{"Foo", "Unserved"}},
		{"rules in another order", hooks{hook("a", rule("foos"), rule("bars"))}, hooks{hook("a", rule("bars"), rule("foos"))}, []string{"Unserved"}},
		{"another policy", hooks{foos}, hooks{with(foos, ignore)}, []string{"Foo", "Unserved"}},
		{"another address", hooks{foos}, hooks{with(foos, func(h *v1alpha1.ResourceExploringWebhook) { h.ClientConfig.URL = ptr.To("https://127.0.0.1:2/") })}, []string{"Foo", "Unserved"}},
		{"kinds without a namespace", nil, hooks{hook("a", scoped)}, []string{"Bar", "Unserved"}},
		{"all resources: also one that is not served", nil, hooks{hook("a", rule("*"))}, []string{"Foo", "Bar", "Stranger", "Unserved"}},
		{"another webhook is asked first", hooks{hook("b", rule("foos"))}, hooks{hook("a", rule("foos")), hook("b", rule("foos"))}, []string{"Foo", "Unserved"}},
	} {
		l := New(Options{Resources: cluster})
		l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", tc.before...)})
		change := l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", tc.after...)})
		var got []string
		for _, name := range []string{"Foo", "Bar", "Stranger", "Unserved"} {
			if change.Affects(t.Context(), kind(name)) {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: affected kinds, -want +got: %s", tc.reason, diff)
		}
		for _, other := range []schema.GroupVersionKind{{Group: "other.example.com", Version: "v1", Kind: "Foo"}, {Group: group, Version: "v2", Kind: "Foo"}} {
			if change.Affects(t.Context(), other) {
				t.Errorf("%s: %s is affected, which no rule names", tc.reason, other)
			}
		}
	}
}
