package command

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// TestMatchesAny checks for which questions a webhook that is not called gets a warning.
func TestMatchesAny(t *testing.T) {
	rule := func(group string, operations ...explore.Operation) v1alpha1.RuleWithOperations {
		r := v1alpha1.RuleWithOperations{Operations: operations}
		r.APIGroups = []string{group}
		return r
	}
	for name, tc := range map[string]struct {
		reason string
		rules  []v1alpha1.RuleWithOperations
		want   bool
	}{
		"Both":           {"operation and group", []v1alpha1.RuleWithOperations{rule("apps", explore.Healthy)}, true},
		"AnyOperation":   {"a rule of all operations", []v1alpha1.RuleWithOperations{rule("apps", v1alpha1.AnyOperation)}, true},
		"AnyGroup":       {"a rule of all groups", []v1alpha1.RuleWithOperations{rule("*", explore.Healthy)}, true},
		"Second":         {"one of several rules", []v1alpha1.RuleWithOperations{rule("x", explore.Healthy), rule("apps", explore.Replica, explore.Healthy)}, true},
		"OtherGroup":     {"another group", []v1alpha1.RuleWithOperations{rule("batch", explore.Healthy)}, false},
		"OtherOperation": {"another operation", []v1alpha1.RuleWithOperations{rule("apps", explore.Replica)}, false},
		"Apart":          {"operation and group of two rules", []v1alpha1.RuleWithOperations{rule("apps", explore.Replica), rule("batch", explore.Healthy)}, false},
		"None":           {"no rule", nil, false},
	} {
		h := ClusterOnlyWebhook{"rules", v1alpha1.ResourceExploringWebhook{Rules: tc.rules}}
		if got := h.MatchesAny(explore.Healthy, "apps"); got != tc.want {
			t.Errorf("%s: %s: %t", name, tc.reason, got)
		}
	}
}

// TestClusterOnlyWebhookText checks that the warning names the configuration, the webhook and the Service.
func TestClusterOnlyWebhookText(t *testing.T) {
	h := ClusterOnlyWebhook{"rules", v1alpha1.ResourceExploringWebhook{Name: "a.example.org"}}
	h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "tools", Name: "asked"}
	for _, want := range []string{"webhook rules/a.example.org is not asked", "service tools/asked", "kudo itself may get another answer"} {
		if got := h.String(); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

// TestExploreLayersOrder checks which layer of a chain without a cluster answers.
func TestExploreLayersOrder(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "generation": int64(2)},
		"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"observedGeneration": int64(1)},
	}}
	own := v1alpha1.Config{Spec: v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "apps/v1", Kind: "Deployment", HealthLua: "return true"}}}}
	own.Name = "own"
	for _, tc := range []struct {
		reason  string
		configs []v1alpha1.Config
		layer   explore.Layer
		healthy bool
	}{
		{"kudo's own rules answer for the kinds of Kubernetes", nil, explore.Native, false},
		{"a Config answers before them", []v1alpha1.Config{own}, explore.User, true},
	} {
		chain, err := ExploreLayers(tc.configs, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, known, err := chain.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: deployment})
		if err != nil || !known || a.Layer != tc.layer || a.Healthy != tc.healthy {
			t.Errorf("%s: layer %s, healthy %t, known %t, error %v", tc.reason, a.Layer, a.Healthy, known, err)
		}
	}
}
