package tenancy

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// attack is a value for the CPU of the guestbook's frontend, which stands without quotes in its template. It ends the
// object there, and adds one that makes an account the administrator of the cluster.
func attack(name string) string {
	return `50m
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + name + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]
---
`
}

const refusal = "parameter WEB_CPU changes the structure of template web/frontend.yaml (3 documents instead of 1): a value must stay one value; " +
	"quote it in the template ({{ .Params.WEB_CPU | quote }}), or declare the parameter as map or array and write it with toYaml"

// TestValuesStayValues is T20 and T21: a value with documents in it makes no object, whichever way it takes. The run
// refuses it where nothing else can know it: in a Secret.
func TestValuesStayValues(t *testing.T) {
	ns, guestbook := suite.NewNamespace(t), filepath.Join(env.Root(), "operators", "catalog", "guestbook", "operator")
	value := attack(ns)
	cli := func(code int, args ...string) string {
		t.Helper()
		out, got := suite.Kudo(append(args, "-n", ns)...)
		if got != code {
			t.Fatalf("kubectl kudo %s: exit code %d, want %d\n%s", args[0], got, code, out)
		}
		return out
	}
	refused := func(way, message string) {
		t.Helper()
		if !strings.Contains(message, refusal) {
			t.Errorf("T21: %s: %s", way, message)
		}
		if err := suite.Get(ctx, client.ObjectKey{Name: ns}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
			t.Errorf("T20: %s: the ClusterRoleBinding exists (%v)", way, err)
		}
	}

	refused("package render", cli(1, "package", "render", guestbook, "-p", "WEB_CPU="+value))
	refused("install", cli(1, "install", guestbook, "-p", "WEB_CPU="+value))
	versions := &v1beta1.OperatorVersionList{}
	env.Must(t, suite.List(ctx, versions, client.InNamespace(ns)))
	if len(versions.Items) > 0 {
		t.Errorf("T21: install created %s before it refused the value", versions.Items[0].Name)
	}

	cli(0, "install", guestbook, "--skip-instance")
	env.Must(t, suite.List(ctx, versions, client.InNamespace(ns)))
	ov := &versions.Items[0]
	err := suite.Create(ctx, gen.Instance("direct", ov, map[string]string{"WEB_CPU": value}))
	if !apierrors.IsForbidden(err) {
		t.Fatalf("T21: admission: %v", err)
	}
	refused("admission", err.Error())

	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "values"), StringData: map[string]string{"WEB_CPU": value}}))
	i := gen.Instance("hidden", ov, nil)
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "values"}}
	env.Must(t, suite.Create(ctx, i))
	ended, err := suite.Await(ctx, ns, "hidden", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	st := ended.Status.PlanStatus[v1beta1.DeployPlan]
	if st.Status != v1beta1.FatalError {
		t.Errorf("T21: the run ended as %s", st.Status)
	}
	refused("the run", st.Message)

	cli(0, "install", guestbook, "--instance", "plain")
	refused("update", cli(1, "update", "--instance", "plain", "-p", "WEB_CPU="+value))
}
