package admin

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestRefusedInit checks that a dry run ends with 3 if the command would be refused, in its words, and that other errors end as ever (P14).
func TestRefusedInit(t *testing.T) {
	installed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "instances.kudo.dev"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "kudo-metrics-reader")}
	undecided := []client.Object{installed, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}}
	helm := &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", "kudo-manager"), Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "kudo-manager"}}}
	helm.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	denies := func(verb, kind string) apitest.Hook {
		return func(r apitest.Request) (any, error) {
			if r.Verb == verb && r.Kind == kind {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, r.Name, errors.New("a policy says no"))
			}
			return nil, nil
		}
	}
	upgrade := []string{"--upgrade", "--kudo-image", "example.org/kudo:1"}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		hook    apitest.Hook
		args    []string
		code    int
		want    string
	}{
		"Missing":      {"there is nothing to upgrade", nil, nil, upgrade, command.ExitFailed, "kudo is not installed on this cluster, so there is nothing to upgrade: run kubectl kudo init"},
		"Undecided":    {"an administrator must decide", undecided, nil, upgrade, command.ExitFailed, "1 Instances in 1 namespaces write with the rights of kudo: --strict stops"},
		"Helm":         {"Helm has installed kudo", []client.Object{installed, helm}, nil, upgrade, command.ExitFailed, "kudo's Helm chart has installed kudo: change it with"},
		"RemovalHelm":  {"so it does not remove it", []client.Object{installed, helm}, nil, []string{"--remove"}, command.ExitFailed, "kudo's Helm chart has installed kudo: change it with"},
		"Account":      {"the ServiceAccount is missing", []client.Object{installed}, nil, append([]string{"--service-account", "robot"}, upgrade...), command.ExitFailed, "ServiceAccount kudo-system/robot does not exist: make it with"},
		"CertManager":  {"cert-manager is missing", []client.Object{installed}, nil, append([]string{"--cert-manager"}, upgrade...), command.ExitFailed, "cert-manager is not installed on this cluster"},
		"Monitoring":   {"the Prometheus Operator is missing", []client.Object{installed}, nil, append([]string{"--monitoring"}, upgrade...), command.ExitFailed, "the cluster does not serve ServiceMonitor"},
		"Denied":       {"a policy denies a write", []client.Object{installed, role}, denies("apply", "ClusterRole"), upgrade, command.ExitFailed, "ClusterRole kudo-metrics-reader: clusterrole \"kudo-metrics-reader\" is forbidden: a policy says no"},
		"Unreadable":   {"what is installed cannot be read", []client.Object{installed}, denies("get", "Deployment"), upgrade, command.ExitError, ""},
		"Image":        {"a flag is missing", []client.Object{installed}, nil, []string{"--upgrade"}, command.ExitUsage, ""},
		"WithoutFlags": {"flags that do not fit together", nil, nil, []string{"--upgrade", "--diff", "--kudo-image", "example.org/kudo:1"}, command.ExitUsage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := onServer(t, tc.objects...)
			server.Before(tc.hook)
			args := append([]string{"init", "--dry-run"}, tc.args...)
			out, errs := commandtest.Expect(t, NewInit, tc.code, "", args...)
			if tc.want == "" {
				if out != "" || errs == "" {
					t.Errorf("%s: it has a preview: %s%s", tc.reason, out, errs)
				}
				return
			}
			if !strings.Contains(out, "✗ refused: "+tc.want) || !strings.Contains(errs, " would be refused: see what is marked with ✗ above\n") {
				t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
			if name == "Helm" && !strings.Contains(out, "kudo in namespace ops") {
				t.Errorf("%s: the preview names another namespace than that of kudo:\n%s", tc.reason, out)
			}
			out, _ = commandtest.Expect(t, NewInit, tc.code, "", append(args, "-o", "json")...)
			if !strings.Contains(out, `"refused": [`) {
				t.Errorf("%s: a program does not see it: %s", tc.reason, out)
			}
			if tc.hook == nil { // this one writes before it is refused
				_, errs = commandtest.Expect(t, NewInit, command.ExitError, "", append([]string{"init"}, tc.args...)...)
				if !strings.Contains(errs, "Error: "+tc.want) {
					t.Errorf("%s: the command is refused in other words: %s", tc.reason, errs)
				}
			}
		})
	}
}

// TestDryRunWithoutCluster checks that an unreachable cluster is no refusal, and that what an installation consists of is printed without one.
func TestDryRunWithoutCluster(t *testing.T) {
	noCluster(t)
	commandtest.Expect(t, NewInit, command.ExitError, "", "init", "--upgrade", "--dry-run", "--kudo-image", "example.org/kudo:1")
	commandtest.Expect(t, NewInit, command.ExitError, "", "init", "--remove", "--dry-run")
	commandtest.Expect(t, NewInit, 0, "", "init", "--dry-run", "--kudo-image", "example.org/kudo:1")
}
