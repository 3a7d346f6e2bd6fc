package admin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
)

// TestInitDiff checks that --diff shows what would be created and changed, and changes nothing.
func TestInitDiff(t *testing.T) {
	user := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kudo-metrics-reader", Labels: map[string]string{"team": "x"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}},
	}
	const image = "example.org/kudo:1"
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		args    []string
		want    []string
		lacks   []string
	}{
		"New":      {"an empty cluster has nothing to compare with", nil, []string{"--kudo-image", image}, []string{"Namespace kudo-system would be created\n", "Secret kudo-system/kudo-history-key would be created, with a new key\n", "image of the manager: " + image + "\n", "to change: 0, to delete: 0\n"}, []string{"@@"}},
		"Changed":  {"what is there is compared", []client.Object{user}, []string{"--kudo-image", image}, []string{"--- ClusterRole kudo-metrics-reader, on the cluster\n+++ ClusterRole kudo-metrics-reader, after init\n", "-  - /healthz\n+  - /metrics\n", "to change: 1, to delete: 0\n"}, []string{"ClusterRole kudo-metrics-reader would be created"}},
		"CRDs":     {"the CRDs alone have no key and no image", nil, []string{"--crd-only"}, []string{"CustomResourceDefinition instances.kudo.dev would be created\n", "objects to create: 7, to change: 0, to delete: 0\n"}, []string{"image of the manager", "kudo-history-key"}},
		"External": {"an external manager has no image", nil, []string{"--external-manager"}, []string{"kudo-history-key would be created"}, []string{"image of the manager", "Deployment"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := onServer(t, tc.objects...)
			out, _ := commandtest.Expect(t, NewInit, 0, "", append([]string{"init", "--diff"}, tc.args...)...)
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("%s: no %q in\n%s", tc.reason, text, out)
				}
			}
			for _, text := range tc.lacks {
				if strings.Contains(out, text) {
					t.Errorf("%s: %q in\n%s", tc.reason, text, out)
				}
			}
			for _, write := range writes(server) {
				if !strings.Contains(strings.ToLower(write), "dry") {
					t.Errorf("%s: an object was changed: %s", tc.reason, write)
				}
			}
		})
	}
}

// TestDiffText checks the form of a change.
func TestDiffText(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		diff   kudoinit.Difference
		want   string
	}{
		"Namespaced": {"the namespace is part of the name", kudoinit.Difference{Kind: "Service", Namespace: "a", Name: "b", Before: map[string]any{"x": 1}, After: map[string]any{"x": 2}},
			"--- Service a/b, on the cluster\n+++ Service a/b, after init\n@@ -1 +1 @@\n-x: 1\n+x: 2\n"},
		"Cluster": {"a field that is added", kudoinit.Difference{Kind: "ClusterRole", Name: "b", Before: map[string]any{"x": 1}, After: map[string]any{"x": 1, "z": 2}},
			"--- ClusterRole b, on the cluster\n+++ ClusterRole b, after init\n@@ -1 +1,2 @@\n x: 1\n+z: 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := diffText(tc.diff)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s (%v): -want +got: %s", tc.reason, err, diff)
			}
		})
	}
}
