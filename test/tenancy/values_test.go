package tenancy

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
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
	ns, guestbook := suite.NewNamespace(t), filepath.Join(sourcetree.Root(), "operators", "catalog", "guestbook", "operator")
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

// TestFirstAttack is the first attack that this project was shown, as it was typed: a user with rights to Instances only installs the
// guestbook of another namespace, with documents in a value, and is an administrator of the cluster eight seconds later.
func TestFirstAttack(t *testing.T) {
	shop, ns := suite.NewNamespace(t), suite.NewNamespace(t)
	personas(t, ns)
	suite.MustKudo(t, 0, "install", filepath.Join(sourcetree.Root(), "operators", "catalog", "guestbook", "operator"), "--skip-instance", "-n", shop)
	versions := &v1beta1.OperatorVersionList{}
	env.Must(t, suite.List(ctx, versions, client.InNamespace(shop)))
	name := versions.Items[0].Name
	install := func() string {
		i := &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "book")}
		i.Spec.OperatorVersion = corev1.ObjectReference{Namespace: shop, Name: name}
		i.Spec.Parameters = map[string]string{"WEB_CPU": attack(ns)}
		err := as(t, ann).Create(ctx, i)
		if err == nil {
			t.Fatal("the Instance is created")
		}
		return err.Error()
	}
	env.Contains(t, install(), "OperatorVersion "+shop+"/"+name+` is of another namespace: ann needs the verb "use" on operatorversions.kudo.dev there`)

	env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(shop, "versions"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: []string{"use"}},
	}}))
	bind(t, shop, ann, "Role", "versions")
	env.Eventually(t, "the refusal of the value", func() string {
		if words := install(); !strings.Contains(words, refusal) {
			return words
		}
		return ""
	})
	if err := suite.Get(ctx, client.ObjectKey{Name: ns}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRoleBinding exists (%v)", err)
	}
	if err := as(t, ann).List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("ann lists the Secrets of the cluster (%v)", err)
	}
}

// TestSecondAttack is the second attack that this project was shown, as it was typed: the status of an Instance whose plan waits is
// patched to a run that has no record, an annotation is set, and the run continues with the rights of the manager.
func TestSecondAttack(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	s := &stage{ns: ns}
	s.worker(t)
	ov := prized(ns)
	env.Must(t, suite.Create(ctx, ov))
	env.Must(t, suite.Create(ctx, named(gen.Instance("x", ov, nil), "worker")))
	i := s.await(t, "x", refusedTo("worker"))
	before := i.Status.PlanStatus["deploy"]
	forged := client.RawPatch(types.MergePatchType, []byte(`{"status":{"planStatus":{"deploy":{"uid":"forged","revision":0}}}}`))
	for _, who := range []string{ann, nadia} {
		err := as(t, who).Status().Patch(ctx, i.DeepCopy(), forged)
		if want := "only kudo writes instances/status: " + who + ` lacks the verb "own-status" on instances.kudo.dev for the whole cluster`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s patches the status: %v, want %s", who, err, want)
		}
		note := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.org/`+who+`":"x"}}}`))
		env.Must(t, as(t, who).Patch(ctx, i.DeepCopy(), note))
	}
	i = s.await(t, "x", func(i *v1beta1.Instance) bool {
		return i.Annotations["example.org/"+nadia] != "" && refusedTo("worker")(i)
	})
	if now := i.Status.PlanStatus["deploy"]; now.UID != before.UID || now.Revision != before.Revision {
		t.Errorf("the run is %s of revision %d, and was %s of %d", now.UID, now.Revision, before.UID, before.Revision)
	}
	s.unwritten(t)
}
