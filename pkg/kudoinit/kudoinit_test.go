package kudoinit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestObjects: what each option installs, in order.
func TestObjects(t *testing.T) {
	crds := []string{"CustomResourceDefinition configs.config.kudo.dev", "CustomResourceDefinition packagepolicies.config.kudo.dev", "CustomResourceDefinition resourceexploringwebhookconfigurations.config.kudo.dev",
		"CustomResourceDefinition installations.kudo.dev", "CustomResourceDefinition instances.kudo.dev", "CustomResourceDefinition operators.kudo.dev", "CustomResourceDefinition operatorversions.kudo.dev"}
	rights := []string{"Namespace kudo-system", "ServiceAccount kudo-system/kudo-manager", "ServiceAccount kudo-system/kudo-installer",
		"ClusterRole kudo-manager", "ClusterRoleBinding kudo-manager", "Role kudo-system/kudo-manager", "RoleBinding kudo-system/kudo-manager", "Role kudo-system/kudo-history-key", "RoleBinding kudo-system/kudo-history-key", "ClusterRole kudo-install-plans", "ClusterRoleBinding kudo-install-plans",
		"ClusterRole kudo-run-as", "ClusterRole kudo-user", "ClusterRole kudo-author", "ClusterRole kudo-adopter", "ClusterRole kudo-installer", "ClusterRole kudo-metrics-reader", "ConfigMap kudo-system/kudo-config"}
	for _, policy := range []string{"kudo-install", "kudo-instance-crds", "kudo-package-policies", "kudo-force-release", "kudo-leave-users", "kudo-installations", "kudo-fence", "kudo-account",
		"kudo-sources-1", "kudo-sources-2", "kudo-version", "kudo-adopt", "kudo-status", "kudo-history", "kudo-privileged", "kudo-privileged-use", "kudo-home", "kudo-finalizer"} {
		rights = append(rights, "ValidatingAdmissionPolicy "+policy, "ValidatingAdmissionPolicyBinding "+policy)
	}
	webhooks := []string{"Secret kudo-system/kudo-webhook-server-secret",
		"MutatingWebhookConfiguration kudo-manager-instance-admission-webhook-config", "ValidatingWebhookConfiguration kudo-manager-instance-validation-webhook-config",
		"ValidatingWebhookConfiguration kudo-manager-explore-validation-webhook-config"}
	manager := []string{"ResourceQuota kudo-system/kudo-critical-pods", "Service kudo-system/kudo-controller-manager-service", "Service kudo-system/kudo-controller-manager-metrics",
		"PodDisruptionBudget kudo-system/kudo-controller-manager", "Deployment kudo-system/kudo-controller-manager"}
	all := func(lists ...[]string) (out []string) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	values := []string{"ConfigMap kudo-system/kudo-values"}
	for name, tc := range map[string]struct {
		reason  string
		options Options
		want    []string
	}{
		"All":      {"what others need comes first", Options{}, all(crds, rights, webhooks, manager, values)},
		"CRDs":     {"only the CRDs", Options{CRDsOnly: true, External: true, WebhookURL: "https://localhost:1"}, crds},
		"External": {"the manager runs elsewhere, and serves no webhooks", Options{External: true}, all(crds, rights, values)},
		"Webhooks": {"the manager runs elsewhere, and serves webhooks", Options{External: true, WebhookURL: "https://localhost:1"}, all(crds, rights, webhooks, values)},
	} {
		for _, namespace := range []string{DefaultNamespace, "other"} {
			tc.options.Namespace = namespace
			objs, err := Objects(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, obj := range objs {
				line := obj.GetName()
				if obj.GetNamespace() != "" {
					line = obj.GetNamespace() + "/" + line
				}
				got = append(got, obj.GetKind()+" "+line)
			}
			want := strings.Split(strings.ReplaceAll(strings.Join(tc.want, "\n"), "kudo-system", namespace), "\n")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %s: %s: %s", name, namespace, tc.reason, diff)
			}
		}
	}
	objs, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetKind() == "Namespace" && obj.GetName() != DefaultNamespace {
			t.Errorf("without a namespace, kudo is installed to %s, not %q", DefaultNamespace, obj.GetName())
		}
	}
}

func find(t *testing.T, o Options, kind string) *unstructured.Unstructured {
	t.Helper()
	objs, err := Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetKind() == kind {
			return obj
		}
	}
	t.Fatalf("no %s", kind)
	return nil
}

// TestAdapt: the namespace and the image stand wherever they are used.
func TestAdapt(t *testing.T) {
	o := Options{Namespace: "other", Image: "example.com/kudo:1", PullPolicy: "Never"}
	subjects, _, _ := unstructured.NestedSlice(find(t, o, "ClusterRoleBinding").Object, "subjects")
	if got := subjects[0].(map[string]any)["namespace"]; got != "other" {
		t.Errorf("the rights go to the account of namespace %v", got)
	}
	containers, _, _ := unstructured.NestedSlice(find(t, o, "Deployment").Object, "spec", "template", "spec", "containers")
	c := containers[0].(map[string]any)
	if c["image"] != o.Image || c["imagePullPolicy"] != o.PullPolicy || c["args"].([]any)[0] != "--namespace=other" {
		t.Errorf("the manager: %v, %v, %v", c["image"], c["imagePullPolicy"], c["args"])
	}
	containers, _, _ = unstructured.NestedSlice(find(t, Options{}, "Deployment").Object, "spec", "template", "spec", "containers")
	if c := containers[0].(map[string]any); c["image"] == "" || c["imagePullPolicy"] == "" {
		t.Errorf("without options, the manifest's: %v, %v", c["image"], c["imagePullPolicy"])
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		hooks, _, _ := unstructured.NestedSlice(find(t, o, kind).Object, "webhooks")
		for _, h := range hooks {
			if got, _, _ := unstructured.NestedString(h.(map[string]any), "clientConfig", "service", "namespace"); got != "other" {
				t.Errorf("%s: the service is in %q", kind, got)
			}
		}
	}
}

// TestWebhookURL: where the webhooks of an external manager are.
func TestWebhookURL(t *testing.T) {
	const path = "/validate-kudo-dev-v1beta1-instance"
	for name, tc := range map[string]struct{ reason, url, want string }{
		"Name":     {"as it is", "https://example.com:9443", "https://example.com:9443" + path},
		"Loopback": {"the certificate is made for localhost", "https://127.0.0.1:9443", "https://localhost:9443" + path},
		"IPv6":     {"here too", "https://[::1]:9443", "https://localhost:9443" + path},
		"NoPort":   {"without a port", "https://127.0.0.1", "https://localhost" + path},
		"Slash":    {"a slash at the end", "https://localhost:9443/", "https://localhost:9443" + path},
		"Address":  {"another address stays", "https://10.0.0.1:9443", "https://10.0.0.1:9443" + path},
		"Plain":    {"webhooks need https", "http://localhost:9443", ""},
		"NoHost":   {"no URL", "localhost:9443", ""},
		"Broken":   {"no URL either", "https://local host", ""},
	} {
		objs, err := Objects(Options{Namespace: "ns", External: true, WebhookURL: tc.url})
		if tc.want == "" {
			if err == nil || !strings.Contains(err.Error(), "must be like https://localhost:9443") {
				t.Errorf("%s: %s: error %v", name, tc.reason, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
			continue
		}
		for _, obj := range objs {
			if obj.GetName() != validating {
				continue
			}
			hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
			config := hooks[0].(map[string]any)["clientConfig"].(map[string]any)
			if config["url"] != tc.want || config["service"] != nil {
				t.Errorf("%s: %s: %v, want %s", name, tc.reason, config, tc.want)
			}
		}
	}
}
