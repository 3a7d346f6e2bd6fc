package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// installation is a control plane whose kudo a test may break.
type installation struct {
	*env.Env
	*env.Cluster
	t testing.TB
	// external are the flags for a manager outside of the cluster, as kudo-local runs it.
	external []string
}

func newInstallation(t testing.TB) *installation {
	t.Helper()
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		t.Skip("breaks its cluster, and KUDO_TEST_KUBECONFIG names one for all")
	}
	e, err := env.Start()
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)
	i := &installation{Env: e, Cluster: c, t: t}
	hooks := i.webhook()
	url := strings.TrimSuffix(*hooks.Webhooks[0].ClientConfig.URL, "/validate-kudo-dev-v1beta1-instance")
	i.external = []string{"--external-manager", "--webhook-url", url}
	return i
}

func (i *installation) webhook() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return env.Read(i.t, i.Cluster, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", "kudo-manager-instance-validation-webhook-config")
}

// init runs kubectl kudo init, and wants an exit code and texts.
func (i *installation) init(code int, args []string, texts ...string) string {
	i.t.Helper()
	out := i.MustKudo(i.t, code, append([]string{"init"}, args...)...)
	env.Contains(i.t, out, texts...)
	return out
}

// release builds the command line of a version, and returns a function that runs its init as i.init does.
func (i *installation) release(version string) func(code int, args []string, texts ...string) {
	i.t.Helper()
	program := filepath.Join(i.t.TempDir(), "kubectl-kudo")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "-ldflags", "-s -w -X kudo.dev/kudo/pkg/cli/command.Version="+version, "kudo.dev/kudo/cmd/kubectl-kudo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		i.t.Fatalf("build %s: %v: %s", version, err, out)
	}
	return func(code int, args []string, texts ...string) {
		i.t.Helper()
		cmd := exec.Command(program, append([]string{"init"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+i.Kubeconfig)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			i.t.Fatalf("init %v of %s: exit code %d, want %d: %s", args, version, got, code, out)
		}
		env.Contains(i.t, string(out), texts...)
	}
}

func (i *installation) local(args ...string) {
	i.t.Helper()
	if out, err := i.Local(args...); err != nil {
		i.t.Fatalf("%v: %s", err, out)
	}
}

// stopped ends the manager, which may have ended by itself when it lost its rights.
func (i *installation) stopped() { _, _ = i.Local("kill", "manager") }

// gone wants objects not to be there.
func (i *installation) gone(objs ...client.Object) {
	i.t.Helper()
	for _, obj := range objs {
		if err := i.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil || err == nil {
			i.t.Errorf("%T %s is still there: %v", obj, obj.GetName(), err)
		}
	}
}

func (i *installation) delete(obj client.Object) {
	i.t.Helper()
	env.Must(i.t, i.Delete(context.Background(), obj))
}

var _ = Describe("An installation of kudo", Ordered, SpecPriority(1), Label("installation", "slow", "disruptive"), func() {
	var i *installation
	BeforeAll(func() { i = newInstallation(GinkgoTB()) })
	for _, step := range []struct { // each builds upon those before
		text string
		run  func(testing.TB, *installation)
	}{
		{"names each damage with its remedy, and is mended by it", testVerify},
		{"leaves a manager outside of the cluster there when init runs again", testAgain},
		{"keeps what an administrator has decided, and decides nothing for him", testSettings},
		{"refuses what must not be done, and changes nothing", testRefusals},
		{"continues a plan that runs while kudo is upgraded, and ends it once", testUpgrade},
		{"is not made over KUDO's manager by chance, and an upgrade replaces that", testPredecessor},
		{"leaves all that is held, for no collector to take, when it is removed with its CRDs", testKeep},
		{"leaves all that is held for the next init when it is removed without its CRDs", testKeepWithoutCRDs},
		{"is removed with a release of all, and nothing is left", testRelease},
		{"asks cert-manager for the certificate, and its manager does not touch that", testCertManager},
	} {
		It(step.text, func() {
			i.t = GinkgoTB()
			step.run(i.t, i)
		})
	}
})

// Each damage is found, named with its remedy, and mended by it.
func testVerify(t testing.TB, i *installation) {
	ctx := context.Background()
	out := i.init(0, []string{"--verify"}, "policy kudo-install in force", "webhooks answer", "manager works")
	if strings.Contains(out, "FAILED") || strings.Contains(out, "WARNING") {
		t.Errorf("a fresh installation is not as it should be:\n%s", out)
	}
	for _, tc := range []struct {
		reason string
		harm   func()
		want   []string
		role   string // is to be deleted before init gives its rights again
	}{
		{"a policy that is not bound refuses nothing",
			func() {
				i.delete(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: gen.Meta("", "kudo-install")})
			},
			[]string{"validatingadmissionpolicybinding kudo-install", "is missing", "policy kudo-install in force", "does not refuse what it must"}, ""},
		{"a policy that was watered down", func() {
			policy := env.Read(t, i.Cluster, &admissionregistrationv1.ValidatingAdmissionPolicy{}, "", "kudo-installations")
			policy.Spec.Validations = policy.Spec.Validations[:1]
			policy.Spec.Validations[0].Expression = "true"
			env.Must(t, i.Update(ctx, policy))
		}, []string{"differs from what init installs in spec.validations", "policy kudo-installations in force", "does not refuse what it must"}, ""},
		{"rights that were taken", func() {
			role := env.Read(t, i.Cluster, &rbacv1.ClusterRole{}, "", "kudo-manager")
			role.Rules = role.Rules[:1]
			env.Must(t, i.Update(ctx, role))
		}, []string{"clusterrole kudo-manager", "may not update instances.kudo.dev", "rights of serviceaccount kudo-manager", "rights that init has given it, and init does not give them back"}, "kudo-manager"},
		{"the role for users", func() { i.delete(&rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "kudo-installer")}) }, []string{"clusterrole kudo-installer", "is missing"}, ""},
		{"a webhook that looks at less", func() {
			hooks := i.webhook()
			hooks.Webhooks[0].Rules[0].Operations = hooks.Webhooks[0].Rules[0].Operations[:1]
			env.Must(t, i.Update(ctx, hooks))
		}, []string{"validatingwebhookconfiguration kudo-manager-instance-validation-webhook-config", "webhooks[0].rules"}, ""},
		{"a CRD that was changed", func() {
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			crd.SetName("operators.kudo.dev")
			patch := client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/spec/names/shortNames","value":["mine"]}]`))
			env.Must(t, i.Patch(ctx, crd, patch))
		}, []string{"customresourcedefinition operators.kudo.dev", "spec.names.shortNames"}, ""},
	} {
		tc.harm()
		env.Eventually(t, "found: "+tc.reason, func() string { // policies take about a second
			out, _ := i.Kudo("init", "--verify")
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					return out
				}
			}
			return ""
		})
		remedy := "Remedy: kubectl kudo init --upgrade"
		if tc.role != "" { // R26
			remedy = "Remedy: kubectl delete clusterrole " + tc.role + ", and kubectl kudo init --upgrade, give them again"
		}
		out := i.init(1, []string{"--verify"}, append(tc.want, remedy, "checks failed")...)
		if tc.role != "" {
			i.delete(&rbacv1.ClusterRole{ObjectMeta: gen.Meta("", tc.role)})
		}
		i.init(0, append([]string{"--upgrade", "--wait"}, i.external...))
		if out2, code := i.Kudo("init", "--verify"); code != 0 {
			t.Fatalf("%s: the remedy does not mend it. Before:\n%s\nafter:\n%s", tc.reason, out, out2)
		}
	}
	t.Log("a manager that does not run")
	i.local("kill", "manager")
	i.init(1, []string{"--verify", "-o", "yaml"}, "check: manager works", "state: FAILED", "no manager runs")
	i.local("start", "manager")
}

// Suites begin with an init, whatever cluster they are run on: a manager outside of the cluster stays there.
func testAgain(t testing.TB, i *installation) {
	before := *i.webhook().Webhooks[0].ClientConfig.URL
	for _, args := range [][]string{{"--wait"}, {"--wait", "--unsafe-self-signed-webhook-ca"}, {"--upgrade"}} {
		i.init(0, args, "runs outside of the cluster", "configured")
		if after := i.webhook().Webhooks[0].ClientConfig.URL; after == nil || *after != before {
			t.Errorf("init %v moved the webhooks from %s", args, before)
		}
		i.gone(&appsv1.Deployment{ObjectMeta: gen.Meta("kudo-system", "kudo-controller-manager")})
	}
	env.Eventually(t, "all is as it was", func() string { // the manager was killed before, and waits for its lease
		out, code := i.Kudo("init", "--verify")
		if code == 0 {
			return ""
		}
		return out
	})
}

// T7: what an administrator has decided is kept, and nothing is decided for him.
func testSettings(t testing.TB, i *installation) {
	ctx := context.Background()
	decided := func() map[string]string {
		return env.Read(t, i.Cluster, &corev1.ConfigMap{}, "kudo-system", "kudo-config").Data
	}
	i.init(0, []string{"--crd-allowed-hosts", "example.org", "--run-as-everywhere"}, "clusterrolebinding kudo-run-as created")
	i.init(0, []string{"--upgrade", "--privileged", "--wait"})
	i.init(0, []string{"--upgrade"})
	want := map[string]string{"mode": "privileged", "default-account": "kudo", "crd-allowed-hosts": "example.org", "run-as-everywhere": "true"}
	if got := decided(); !maps.Equal(got, want) {
		t.Errorf("the settings are %v, want %v", got, want)
	}
	out, code := i.Kudo("init", "--verify")
	if code != 0 || !strings.Contains(out, "WARNING   mode") || !strings.Contains(out, "privileged: plans of Instances that name no ServiceAccount run with the rights of kudo") {
		t.Errorf("init --verify ended with %d and says of the mode: %s", code, out)
	}
	contains(t, kudoOf(i, "version"), "mode: privileged, all namespaces")
	i.local("kill", "manager")
	i.local("start", "manager")
	env.Eventually(t, "the event of a start in this mode", func() string {
		events := &corev1.EventList{}
		env.Must(t, i.List(ctx, events))
		for _, event := range events.Items {
			if event.Reason == v1beta1.EventPrivilegedMode && event.Type == corev1.EventTypeWarning && event.InvolvedObject.Kind == "Namespace" && event.InvolvedObject.Name == "kudo-system" {
				return ""
			}
		}
		return fmt.Sprintf("none of %d events", len(events.Items))
	})
	i.init(0, []string{"--strict", "--run-as-everywhere=false"}, "clusterrolebinding kudo-run-as removed")
	contains(t, kudoOf(i, "version"), "mode: strict")

	t.Log("a kudo of before has decided nothing: the administrator has to")
	ns, err := i.Namespace(ctx)
	env.Must(t, err)
	instance := &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "old")}
	env.Must(t, i.Create(ctx, instance))
	i.delete(&corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "kudo-config")})
	i.init(1, []string{"--upgrade"}, "1 Instances in 1 namespaces write with the rights of kudo: --strict stops their next plans until they have accounts (kubectl kudo account create), --privileged keeps it so")
	i.init(0, []string{"--upgrade", "--strict"})
	env.Must(t, i.Delete(ctx, instance))

	t.Log("arguments of the Deployment that init would remove")
	deployment := &appsv1.Deployment{ObjectMeta: gen.Meta("kudo-system", "kudo-controller-manager")}
	labels := map[string]string{"app": "x"}
	deployment.Spec.Selector, deployment.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	deployment.Spec.Replicas = ptr.To(int32(0))
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "x", Args: []string{"--namespace=kudo-system", "--require-service-account"}}}
	env.Must(t, i.Create(ctx, deployment))
	i.init(2, []string{"--upgrade", "--kudo-image", "example.org/kudo:1"}, "Deployment kudo-system/kudo-controller-manager has --require-service-account, which init would remove: say --keep-args or --drop-args")
	i.delete(deployment)

	t.Log("rights of install plans that were narrowed stay so")
	role := env.Read(t, i.Cluster, &rbacv1.ClusterRole{}, "", "kudo-install-plans")
	rules := role.Rules
	role.Rules = rules[:1]
	env.Must(t, i.Update(ctx, role))
	i.init(0, []string{"--upgrade"})
	if role = env.Read(t, i.Cluster, &rbacv1.ClusterRole{}, "", "kudo-install-plans"); len(role.Rules) != 1 {
		t.Errorf("init has given them back: %v", role.Rules)
	}
	out, _ = i.Kudo("init", "--verify")
	contains(t, out, "WARNING   clusterrole kudo-install-plans", "has other rules than init gives it, which init leaves as they are")
	i.delete(role)
	i.init(0, []string{"--upgrade"}, "clusterrole kudo-install-plans created")
}

// kudoOf runs a command on the installation.
func kudoOf(i *installation, args ...string) string {
	out, _ := i.Kudo(args...)
	return out
}

// What must not be done is refused, and changes nothing.
func testRefusals(t testing.TB, i *installation) {
	ctx := context.Background()
	i.init(2, []string{"--verify", "--upgrade"}, "exclude each other")
	i.init(2, []string{"--remove-crds"}, "require --remove: add --remove")
	i.init(2, []string{"--remove", "--instances=maybe"}, "must be uninstall or keep")
	i.init(2, []string{"-i", "x", "--version", "1.0.0"}, "exclude each other")
	i.init(2, []string{"--version", "0.1.0"}, "it knows the manager of ", "use kubectl kudo 0.1.0, or give --kudo-image")
	i.init(1, []string{"-n", "elsewhere"}, "kudo is installed in namespace kudo-system")
	i.init(1, []string{"--service-account", "absent"}, "ServiceAccount kudo-system/absent does not exist", "kubectl create serviceaccount absent")
	i.init(2, []string{"--strict", "--privileged"}, "--strict and --privileged exclude each other")
	i.init(2, []string{"--default-account", "a:b"}, `default-account is "a:b", which is no name of a ServiceAccount`)
	i.init(2, []string{"--default-crd-url-template", "http://example.org/crds.tgz"}, "it must begin with https://")
	i.init(1, []string{"--cert-manager", "--wait", "--kudo-image", "example.org/kudo:1"}, "cert-manager is not installed")
	if a := i.webhook().Annotations; a["cert-manager.io/inject-ca-from"] != "" {
		t.Errorf("cert-manager is not there, and yet something was written: %v", a)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("instances.kudo.dev")
	env.Must(t, i.Patch(ctx, crd, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"kudo.dev/version":"v99.0.0"}}}`))))
	old := i.release("v0.1.0")
	old(1, append([]string{"--upgrade"}, i.external...), "kudo v99.0.0 is installed, and this is v0.1.0")
	old(1, i.external, "kudo v99.0.0 is installed")
	old(0, append([]string{"--allow-downgrade"}, i.external...), "configured")
	i.gone(&appsv1.Deployment{ObjectMeta: gen.Meta("kudo-system", "kudo-controller-manager")})

	t.Log("an account that is there is bound")
	env.Must(t, i.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta("kudo-system", "mine")}))
	for _, flags := range [][]string{{"--service-account", "mine"}, {}, {"--upgrade"}} { // it is kept
		i.init(0, append(flags, i.external...))
		if b := env.Read(t, i.Cluster, &rbacv1.ClusterRoleBinding{}, "", "kudo-manager"); len(b.Subjects) != 1 || b.Subjects[0].Name != "mine" {
			t.Errorf("init %v: the rights go to %+v", flags, b.Subjects)
		}
	}
	i.init(0, append([]string{"--service-account", "kudo-manager"}, i.external...))
	if b := env.Read(t, i.Cluster, &rbacv1.ClusterRoleBinding{}, "", "kudo-manager"); len(b.Subjects) != 1 || b.Subjects[0].Name != "kudo-manager" {
		t.Errorf("the rights go to %+v", b.Subjects)
	}
	i.delete(&corev1.ServiceAccount{ObjectMeta: gen.Meta("kudo-system", "mine")})
	// The manager had no rights meanwhile: on a slow machine, long enough to lose its lease, upon which it ends.
	i.stopped()
	i.local("start", "manager")
}

const slowJob = `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Name }}-slow
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: x, command: [sleep, "6"]}]
`

// A plan that runs while kudo is upgraded, and its manager replaced, goes on and ends, once.
func testUpgrade(t testing.TB, i *installation) {
	ctx := context.Background()
	ns := i.NewNamespace(t)
	ov := gen.Version(ns, "slow", gen.Param("VALUE", "a", ""), gen.Template("job.yaml", slowJob), gen.Apply("job", "job.yaml"), gen.ConfigMaps("cm", 2), gen.Serial("deploy", "job", "cm"))
	env.Must(t, i.Create(ctx, ov))
	env.Must(t, i.Create(ctx, gen.Instance("i", ov, nil)))
	before, err := i.Await(ctx, ns, "i", long, func(x *v1beta1.Instance) bool {
		return x != nil && x.Status.PlanStatus["deploy"].Status == v1beta1.InProgress
	})
	env.Must(t, err)
	env.Eventually(t, "the Job", func() string {
		if err := i.Get(ctx, client.ObjectKey{Namespace: ns, Name: "i-slow"}, &batchv1.Job{}); err != nil {
			return err.Error()
		}
		return ""
	})
	job := env.Read(t, i.Cluster, &batchv1.Job{}, ns, "i-slow")
	i.init(0, append([]string{"--upgrade", "--wait"}, i.external...), "configured")
	i.local("kill", "manager")
	i.local("start", "manager")
	after, err := i.Await(ctx, ns, "i", long, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	was, is := before.Status.PlanStatus["deploy"], after.Status.PlanStatus["deploy"]
	if is.Status != v1beta1.Complete || is.UID != was.UID || is.Revision != 1 {
		t.Errorf("the run %s (%d) was replaced by %s (%d): %s", was.UID, was.Revision, is.UID, is.Revision, is.Status)
	}
	if again := env.Read(t, i.Cluster, &batchv1.Job{}, ns, "i-slow"); again.UID != job.UID {
		t.Errorf("the Job was made anew")
	}
	env.Must(t, i.Delete(ctx, after))
}

// KUDO's manager is not installed over by chance, and an upgrade replaces it.
func testPredecessor(t testing.TB, i *installation) {
	ctx := context.Background()
	labels := map[string]string{"app": "kudo-manager", "control-plane": "controller-manager"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kudo-system", Name: "kudo-controller-manager", Labels: labels}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "kudobuilder/controller:v0.19.0"}}
	env.Must(t, i.Create(ctx, set))
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", "kudo-manager-rolebinding"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"}}
	env.Must(t, i.Create(ctx, binding))
	installCertManager(t, i)
	cert, issuer := certManagers("Certificate", "kudo-webhook-server-certificate"), certManagers("Issuer", "selfsigned-issuer")
	for _, obj := range []*unstructured.Unstructured{cert, issuer} {
		env.Must(t, i.Create(ctx, obj))
	}
	i.init(1, i.external, "KUDO's manager runs in namespace kudo-system", "--upgrade replaces it")
	i.init(1, []string{"--verify"}, "KUDO's manager still runs")

	t.Log("what cannot be installed removes nothing")
	i.init(1, append([]string{"--upgrade", "--service-account", "absent"}, i.external...), "ServiceAccount kudo-system/absent does not exist")
	for _, obj := range []client.Object{set, binding, cert, issuer} {
		env.Must(t, i.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	}

	i.init(0, append([]string{"--upgrade", "--wait"}, i.external...), "kudo-controller-manager of KUDO removed", "kudo-webhook-server-certificate of KUDO removed")
	i.gone(set, binding, cert, issuer)
	i.local("kill", "manager") // its certificate was KUDO's
	i.local("start", "manager")
	env.Eventually(t, "an installation as it should be", func() string {
		if out, code := i.Kudo("init", "--verify"); code != 0 {
			return out
		}
		return ""
	})
}

// used deploys an Instance and an OperatorVersion that installs something.
func (i *installation) used(t testing.TB) (ns string, role *rbacv1.ClusterRole) {
	t.Helper()
	ctx := context.Background()
	ns = i.NewNamespace(t)
	role = &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "held-"+ns)}
	ov := gen.Version(ns, "used", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 2), gen.Serial("deploy", "cm"),
		gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: "+role.Name+"\nrules: []\n"),
		gen.Apply("role", "role.yaml"), gen.Serial("install", "role"), gen.InstallPlan("install"))
	env.Must(t, i.Create(ctx, ov))
	env.Must(t, i.Create(ctx, gen.Instance("i", ov, nil)))
	_, err := i.Await(ctx, ns, "i", long, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	return ns, env.Read(t, i.Cluster, role, "", role.Name)
}

// Without the CRDs' going, all that is held waits for the next init.
func testKeepWithoutCRDs(t testing.TB, i *installation) {
	ctx := context.Background()
	i.local("up") // the removal before has taken all away
	ns, role := i.used(t)
	i.init(1, []string{"--remove"}, "kudo is in use", "Instances "+ns+"/i", "Installations of OperatorVersion "+ns+"/used", "--instances=keep")
	i.init(0, []string{"--remove", "--instances=keep", "--dry-run"}, "- ClusterRoleBinding kudo-manager", "= Instance "+ns+"/i stays")
	env.Read(t, i.Cluster, &rbacv1.ClusterRoleBinding{}, "", "kudo-manager")
	i.init(0, []string{"--remove", "--instances=keep"}, "clusterrolebinding kudo-manager removed", "customresourcedefinition instances.kudo.dev stays: it holds the objects of its kind: 1 Instances",
		"validatingadmissionpolicy kudo-installations stays: it guards", "configmap kudo-config stays: it holds what was decided about kudo", "instance "+ns+"/i stays: it and all that it holds wait")
	i.gone(&rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", "kudo-manager")}, &corev1.ServiceAccount{ObjectMeta: gen.Meta("kudo-system", "kudo-manager")})
	if now := env.Read(t, i.Cluster, &rbacv1.ClusterRole{}, "", role.Name); now.UID != role.UID || len(now.OwnerReferences) != 1 {
		t.Errorf("what the Installation holds was touched: %+v", now.ObjectMeta)
	}
	i.stopped()
	i.local("up")
	_, err := i.Await(ctx, ns, "i", long, func(x *v1beta1.Instance) bool { return x != nil })
	env.Must(t, err)
}

// Together with the CRDs, all that is held stays, and has no owner any more, so that the garbage collector does not delete it.
func testKeep(t testing.TB, i *installation) {
	ns, role := i.used(t)
	cm := env.Read(t, i.Cluster, &corev1.ConfigMap{}, ns, "i-cm-0")
	if len(cm.OwnerReferences) == 0 || len(role.OwnerReferences) == 0 {
		t.Fatal("nothing owns the objects, so that this shows nothing")
	}
	i.init(1, []string{"--remove", "--remove-crds"}, "kudo is in use")
	i.init(0, []string{"--remove", "--remove-crds", "--instances=keep", "--dry-run"}, "= ConfigMap "+ns+"/i-cm-0 stays: it is no longer kudo's", "- CustomResourceDefinition instances.kudo.dev\n      and with it 1 Instances", "- Namespace kudo-system")
	mine := &corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "mine")}
	env.Must(t, i.Create(context.Background(), mine))
	i.init(0, []string{"--remove", "--remove-crds", "--instances=keep", "--dry-run"}, "= Namespace kudo-system stays: it holds what is not kudo's: ConfigMap mine")
	i.delete(mine)
	i.init(0, []string{"--remove", "--remove-crds", "--instances=keep"}, "configmap "+ns+"/i-cm-0 stays", "clusterrole "+role.Name+" stays", "customresourcedefinition instances.kudo.dev removed: and with it 1 Instances", "namespace kudo-system removed")
	for _, obj := range []client.Object{cm, role} {
		uid := obj.GetUID()
		env.Must(t, i.Get(context.Background(), client.ObjectKeyFromObject(obj), obj))
		if obj.GetUID() != uid || len(obj.GetOwnerReferences()) > 0 || obj.GetAnnotations()[v1beta1.ManagedAnnotation] != "" {
			t.Errorf("%s is not as it was, and free: %+v", obj.GetName(), obj.GetOwnerReferences())
		}
	}
	i.gone(&corev1.Namespace{ObjectMeta: gen.Meta("", "kudo-system")}, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: gen.Meta("", "kudo-installations")})
	env.Contains(t, i.MustKudo(t, 1, "get", "instances"), "kudo is not installed on this cluster")
	i.init(1, []string{"--verify"}, "kudo is not installed")
	i.init(1, []string{"--upgrade"}, "nothing to upgrade")
	i.init(0, []string{"--remove", "--remove-crds"})
	i.stopped()
}

// A release uninstalls all; then nothing is left.
func testRelease(t testing.TB, i *installation) {
	ns, role := i.used(t)
	i.init(0, []string{"--remove", "--remove-crds", "--instances=uninstall"}, "instance "+ns+"/i removed: after its cleanup plan", "namespace kudo-system removed")
	i.gone(role, &corev1.Namespace{ObjectMeta: gen.Meta("", "kudo-system")}, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "kudo-manager")})
	env.Eventually(t, "the Instance's objects gone", func() string {
		list := &corev1.ConfigMapList{}
		env.Must(t, i.List(context.Background(), list, client.InNamespace(ns), client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage}))
		if len(list.Items) > 0 {
			return list.Items[0].Name + " is there"
		}
		return ""
	})
}

const certManagerCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"PLURAL.cert-manager.io"},"spec":{"group":"cert-manager.io","scope":"Namespaced",
"names":{"plural":"PLURAL","singular":"SINGULAR","kind":"KIND","listKind":"KINDList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// installCertManager defines cert-manager's kinds, for which no controller runs here.
func installCertManager(t testing.TB, i *installation) {
	t.Helper()
	for kind, plural := range map[string]string{"Issuer": "issuers", "Certificate": "certificates"} {
		crd := &unstructured.Unstructured{}
		text := strings.NewReplacer("PLURAL", plural, "SINGULAR", strings.ToLower(kind), "KIND", kind).Replace(certManagerCRD)
		env.Must(t, crd.UnmarshalJSON([]byte(text)))
		env.Must(t, i.Create(context.Background(), crd))
		env.Eventually(t, kind+" served", func() string {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(certManagers(kind, "").GroupVersionKind())
			if err := i.List(context.Background(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

func certManagers(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("cert-manager.io/v1")
	obj.SetKind(kind)
	obj.SetNamespace("kudo-system")
	obj.SetName(name)
	return obj
}

// With cert-manager, which an earlier step has defined, it is asked for the certificate, and the manager keeps out of it.
func testCertManager(t testing.TB, i *installation) {
	ctx := context.Background()
	i.init(0, []string{"--cert-manager", "--kudo-image", "example.org/kudo:1"})
	i.init(0, []string{"--upgrade"}) // it is kept
	cert := certManagers("Certificate", "kudo-webhook-server-certificate")
	env.Must(t, i.Get(ctx, client.ObjectKeyFromObject(cert), cert))
	if got := i.webhook().Annotations["cert-manager.io/inject-ca-from"]; got != "kudo-system/kudo-webhook-server-certificate" {
		t.Errorf("the CA is injected from %q", got)
	}
	args := env.Read(t, i.Cluster, &appsv1.Deployment{}, "kudo-system", "kudo-controller-manager").Spec.Template.Spec.Containers[0].Args
	env.Contains(t, strings.Join(args, " "), "--webhook-cert-rotation=false")
	i.gone(&corev1.Secret{ObjectMeta: gen.Meta("kudo-system", "kudo-webhook-server-secret")})
	i.init(0, []string{"--remove", "--remove-crds"}, "deployment kudo-controller-manager removed", "certificate kudo-webhook-server-certificate removed")
}
