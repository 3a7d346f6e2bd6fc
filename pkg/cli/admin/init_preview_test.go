package admin

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/gen"
)

// TestInitPreview checks that an upgrade and a removal of kudo have previews as other commands have, and change nothing (P13, P14, P15).
func TestInitPreview(t *testing.T) {
	user := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kudo-metrics-reader", Labels: map[string]string{"app": "kudo-manager"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}},
	}
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	installed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "instances.kudo.dev"}}}
	upgrade := []string{"--upgrade", "--dry-run", "--kudo-image", "example.org/kudo:1"}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		args    []string
		code    int
		want    []string
	}{
		"Upgrade": {"objects with fields, as text", []client.Object{installed, user}, upgrade, 0,
			[]string{"upgrade to", "of kudo in namespace kudo-system", "  + Namespace kudo-system\n", "  ~ ClusterRole kudo-metrics-reader\n", ".rules: ", "  + Secret kudo-system/kudo-history-key\n", " 2 change, 0 delete"}},
		"UpgradeReads": {"the same by reads alone", []client.Object{installed, user}, []string{"--upgrade", "--dry-run=client", "--kudo-image", "example.org/kudo:1"}, 0,
			[]string{"upgrade to", "  + Namespace kudo-system\n", "  ~ ClusterRole kudo-metrics-reader\n", ".rules: ", "  + Secret kudo-system/kudo-history-key\n", "  ? not known: what the API server", " 2 change, 0 delete"}},
		"UpgradeTrue": {"a flag that is given as one without a value", []client.Object{installed, user}, []string{"--upgrade", "--dry-run=true", "--kudo-image", "example.org/kudo:1"}, 0, []string{" 2 change, 0 delete, 0 unchanged, 0 refused, 0 unknown"}},
		"Unknown":     {"another value", nil, []string{"--upgrade", "--dry-run=some"}, command.ExitUsage, nil},
		"UpgradeJSON": {"for programs", []client.Object{installed, user}, append([]string{"-o", "json"}, upgrade...), 0,
			[]string{`"apiVersion": "preview.kudo.dev/v1alpha3"`, `"effect": "change"`, `"digest": "sha256:`}},
		"UpgradeComment": {"for a pull request", []client.Object{installed, user}, append([]string{"-o", "markdown"}, upgrade...), 0,
			[]string{"<!-- kudo preview: kudo in namespace kudo-system -->", "| change | ClusterRole kudo-metrics-reader |"}},
		"Removal":     {"what goes and stays", []client.Object{user, instance}, []string{"--remove", "--dry-run", "--instances=keep"}, 0, []string{"removal of kudo", "  - ClusterRole kudo-metrics-reader\n", "  = Instance lab/site stays: it and all that it holds wait"}},
		"NoData":      {"a definition without objects holds no data", []client.Object{installed}, []string{"--remove", "--remove-crds", "--dry-run"}, 0, []string{"  - CustomResourceDefinition instances.kudo.dev\n", "and with it 0 Instances", " 0 unknown; data: none lost\n"}},
		"RemovalJSON": {"for programs", []client.Object{user}, []string{"--remove", "--dry-run", "-o", "json"}, 0, []string{`"effect": "delete"`, `"name": "kudo-metrics-reader"`}},
		"InUse":       {"a removal that would be refused", []client.Object{instance}, []string{"--remove", "--dry-run"}, command.ExitFailed, []string{"✗ refused: kudo is in use: there are Instances lab/site"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := onServer(t, tc.objects...)
			out, _ := commandtest.Expect(t, NewInit, tc.code, "", append([]string{"init"}, tc.args...)...)
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("%s: no %q in\n%s", tc.reason, text, out)
				}
			}
			for _, write := range writes(server) {
				if strings.Contains(strings.Join(tc.args, " "), "--dry-run=client") && !strings.Contains(write, "SelfSubjectReview") {
					t.Errorf("%s: %s was sent", tc.reason, write)
				}
				if !strings.Contains(strings.ToLower(write), "dry") && !strings.Contains(write, "SelfSubjectReview") {
					t.Errorf("%s: an object was changed: %s", tc.reason, write)
				}
			}
		})
	}
}
