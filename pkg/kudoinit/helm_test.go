package kudoinit

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestHelmRelease checks R14: init names the release that has installed kudo, and changes nothing of it.
func TestHelmRelease(t *testing.T) {
	ours := map[string]string{releaseName: "kudo", releaseNamespace: "ops"}
	for name, tc := range map[string]struct {
		reason              string
		labels, annotations map[string]string
		refused             string
	}{
		"Init":     {"init has no label of a tool", map[string]string{"app": "kudo-manager"}, nil, ""},
		"Other":    {"another tool may manage what init prints", map[string]string{ManagedByLabel: "argocd"}, ours, ""},
		"Helm":     {"a release has a name", map[string]string{ManagedByLabel: helm}, ours, "Helm release kudo in namespace ops has installed kudo: change it with helm upgrade kudo -n ops, or run helm uninstall kudo -n ops first, which keeps"},
		"Template": {"what helm template prints has none", map[string]string{ManagedByLabel: helm}, nil, "kudo's Helm chart has installed kudo: change it with helm template, with what applies its output, or delete ClusterRoleBinding kudo-manager and Deployment kudo-controller-manager with what applies the chart first"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", roleName), Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "kudo-manager"}}}
			binding.Labels, binding.Annotations = tc.labels, tc.annotations
			server := apitest.Start(t, binding)
			live, err := ReadState(t.Context(), server.Client())
			if err != nil {
				t.Fatal(err)
			}
			err = live.CheckRelease()
			if (err != nil) != (tc.refused != "") || err != nil && !strings.HasPrefix(err.Error(), tc.refused) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.refused)
			}
			removed := (&Remover{Client: server.Client(), DryRun: true, Report: func(RemovalResult) { t.Error("something is removed") }})
			if tc.refused != "" && (removed.Remove(t.Context()) == nil) {
				t.Errorf("%s: init removes it", tc.reason)
			}
		})
	}
}

// TestHelmFindings checks that the remedies of a release name Helm, and that the text of its values may have any form.
func TestHelmFindings(t *testing.T) {
	findings := []Finding{{Check: "a", State: Failed, Remedy: "delete it, and " + again}, {Check: "b", State: OK}}
	(&HelmRelease{"kudo", "ops"}).adaptFindings(findings)
	if findings[0].Remedy != "delete it, and helm upgrade kudo -n ops" || findings[1].Remedy != "" {
		t.Errorf("the remedies are %+v", findings)
	}
	live, wanted := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	live.Object = map[string]any{"data": map[string]any{valuesKey: "resources: {limits: {memory: 1024Mi}}"}}
	wanted.Object = map[string]any{"data": map[string]any{valuesKey: "resources:\n  limits:\n    memory: 1Gi\n", rulesKey: "{}"}}
	keepText(wanted, live)
	if data := wanted.Object["data"].(map[string]any); data[valuesKey] != "resources: {limits: {memory: 1024Mi}}" || data[rulesKey] != "{}" {
		t.Errorf("the values are %v", data)
	}
}
