package live

import (
	"errors"
	"net"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/test/apitest"
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
		h := UnreachedWebhook{"rules", v1alpha1.ResourceExploringWebhook{Rules: tc.rules}, nil}
		if got := h.MatchesAny(explore.Healthy, "apps"); got != tc.want {
			t.Errorf("%s: %s: %t", name, tc.reason, got)
		}
	}
}

// TestUnreachedWebhookText checks that the warning names the configuration, the webhook and the Service.
func TestUnreachedWebhookText(t *testing.T) {
	h := UnreachedWebhook{"rules", v1alpha1.ResourceExploringWebhook{Name: "a.example.org"}, errors.New("it is headless")}
	h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "tools", Name: "asked"}
	for _, want := range []string{"webhook rules/a.example.org is not asked", "service tools/asked cannot be reached from here (it is headless)", "kudo itself may get another answer"} {
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
		chain, err := NewChain(tc.configs, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, known, err := chain.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: deployment})
		if err != nil || !known || a.Layer != tc.layer || a.Healthy != tc.healthy {
			t.Errorf("%s: layer %s, healthy %t, known %t, error %v", tc.reason, a.Layer, a.Healthy, known, err)
		}
	}
}

// TestProbeServices checks C67: of the webhooks behind Services, those are left out that cannot be reached from here.
func TestProbeServices(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	port := func(l net.Listener) int32 { return int32(l.Addr().(*net.TCPAddr).Port) }
	service := func(name, ip string, ports ...int32) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip}}
		for _, p := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p})
		}
		return s
	}
	server := apitest.Start(t, service("here", "127.0.0.1", port(listener)), service("there", "127.0.0.1", port(closed)), service("headless", "None"))
	configuration := v1alpha1.ResourceExploringWebhookConfiguration{}
	for name, at := range map[string]int32{"here": port(listener), "there": port(closed), "headless": 443, "absent": 443} {
		h := v1alpha1.ResourceExploringWebhook{Name: name}
		h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "x", Name: name, Port: &at}
		configuration.Webhooks = append(configuration.Webhooks, h, h)
	}
	configuration.Webhooks = append(configuration.Webhooks, v1alpha1.ResourceExploringWebhook{Name: "url"})
	got := probeServices(t.Context(), servicesOf(server.Client()), []v1alpha1.ResourceExploringWebhookConfiguration{configuration})
	want := map[string]string{"there": "connection refused", "headless": "headless", "absent": "does not exist"}
	if len(got) != len(want) {
		t.Errorf("left out are %v", got)
	}
	for at, problem := range got {
		if text := want[at.name]; text == "" || !strings.Contains(problem.Error(), text) {
			t.Errorf("Service %s: %v, want %q", at.name, problem, text)
		}
	}
}
