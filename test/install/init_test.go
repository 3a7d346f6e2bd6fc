package install

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/sourcetree"
)

var _ = It("The command init installs kudo on a cluster that has never seen it", Label("init", "slow"), func() {
	t := GinkgoTB()
	e, c := startBare(t)
	run := func(code int, args ...string) string {
		t.Helper()
		out, got := e.Kudo(args...)
		if got != code {
			t.Fatalf("kubectl kudo %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
		}
		return out
	}
	wants := func(out string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("the output lacks %q:\n%s", text, out)
			}
		}
	}

	t.Log("without kudo, commands say how to install it")
	wants(run(1, "get", "instances"), "kudo is not installed on this cluster", "kubectl kudo init")
	wants(run(1, "install", filepath.Join(sourcetree.Root(), "operators/catalog/hello/operator")), "kudo is not installed on this cluster")

	t.Log("a dry run prints what would be installed, and installs nothing")
	out := run(0, "init", "--dry-run", "-o", "yaml", "--kudo-image", "example.org/kudo:1")
	wants(out, "Warning: the Secret kudo-history-key is not printed", "kubectl create secret generic kudo-history-key") // T24
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return strings.HasPrefix(line, "Warning: ") })
	out = strings.Join(lines, "\n")
	kinds := map[string]int{}
	for _, doc := range strings.Split(out, "\n---\n") {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			t.Fatal(err)
		}
		kind, _ := obj["kind"].(string)
		kinds[kind]++
	}
	if kinds["Secret"] > 1 { // the webhooks' is empty
		t.Errorf("T24: the history key is printed: %v", kinds)
	}
	if kinds["CustomResourceDefinition"] != 7 || kinds["Deployment"] != 1 || kinds["ValidatingWebhookConfiguration"] != 2 {
		t.Errorf("the dry run prints %v", kinds)
	}
	wants(run(1, "get", "instances"), "kudo is not installed on this cluster")

	t.Log("wrong flags are wrong usage")
	wants(run(2, "init", "-o", "yaml"), "--output requires --dry-run")
	wants(run(2, "init", "--dry-run", "-o", "xml"), "only yaml and json")
	wants(run(2, "init", "--webhook-url", "https://localhost:1"), "--external-manager")

	t.Log("the CRDs alone, then all; again changes nothing")
	wants(run(0, "init", "--crd-only", "--wait"), "customresourcedefinition instances.kudo.dev created")
	run(0, "get", "instances")
	wants(run(2, "init", "--wait"), "this build of kubectl kudo knows no image of the manager: give --kudo-image")
	wants(run(0, "init", "--dry-run"), "which no registry has")
	wants(run(0, "init", "--wait", "--kudo-image", "example.org/kudo:1"), "customresourcedefinition instances.kudo.dev configured", "deployment kudo-controller-manager created")
	run(0, "init", "--wait", "--kudo-image", "example.org/kudo:1")
	deployment := &appsv1.Deployment{}
	if err := c.Get(context.Background(), types.NamespacedName{Namespace: "kudo-system", Name: "kudo-controller-manager"}, deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Status.AvailableReplicas != 2 { // R27
		t.Errorf("the manager is not available: %+v", deployment.Status)
	}

	t.Log("engine rule 25: the manager is not cluster-admin")
	role := &rbacv1.ClusterRole{}
	if err := c.Get(context.Background(), types.NamespacedName{Name: "kudo-manager"}, role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 || contains(rule.Verbs, "*") || contains(rule.Verbs, "impersonate") && !contains(rule.Resources, "serviceaccounts") {
			t.Errorf("the manager has too many rights: %+v", rule)
		}
	}
})

func contains(list []string, text string) bool {
	for _, item := range list {
		if item == text {
			return true
		}
	}
	return false
}
