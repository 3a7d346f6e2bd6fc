package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const operatorYAML = `apiVersion: kudo.dev/v1beta1
name: wrong
operatorVersion: 0.1.0
kubernetesVersion: 1.20.0
tasks:
- name: app
  kind: Apply
  spec:
    resources: [app.yaml]
plans:
  deploy:
    strategy: serial
    phases:
    - name: main
      strategy: serial
      steps:
      - name: app
        tasks: [app]
`

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\n"

var _ = Describe("The command line refuses wrong packages and calls, before anything is created:", Label("wrong-input"), func() {
	for _, tc := range []struct {
		reason string
		files  map[string]string
		args   []string
		code   int
		want   []string
	}{
		{"malformed YAML names file and line", map[string]string{"operator.yaml": "name: x\n  bad: [", "params.yaml": "parameters: []"}, nil, 1, []string{"operator.yaml:2"}},
		{"a missing file is named", map[string]string{"operator.yaml": operatorYAML}, nil, 1, []string{"params.yaml"}},
		{"an unknown task kind", map[string]string{"operator.yaml": operatorYAML + "# \n", "params.yaml": "", "templates/other.yaml": ""}, nil, 1, []string{"app.yaml"}},
		{"a required parameter without value", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "parameters:\n- name: NEEDED\n", "templates/app.yaml": configMap}, nil, 1, []string{"NEEDED"}},
		{"an unknown parameter", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "", "templates/app.yaml": configMap}, []string{"-p", "NOPE=1"}, 1, []string{"NOPE", "not defined"}},
		{"a mistyped parameter", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "parameters:\n- name: N\n  type: integer\n  default: 1\n", "templates/app.yaml": configMap}, []string{"-p", "N=many"}, 1, []string{"N", "integer", "many"}},
		{"a name that an Instance cannot have", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "", "templates/app.yaml": configMap}, []string{"--instance", "My_App"}, 2, []string{"My_App", "lower case"}},
		{"a name that is too long for a label", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "", "templates/app.yaml": configMap}, []string{"--instance", strings.Repeat("x", 64)}, 2, []string{"longer than 63"}},
		{"an operator that cannot be named so", map[string]string{"operator.yaml": strings.Replace(operatorYAML, "name: wrong", "name: Wrong_One", 1), "params.yaml": "", "templates/app.yaml": configMap}, nil, 1, []string{"operator.yaml:2", "Wrong_One"}},
		{"a dependency whose version cannot be in a name", map[string]string{
			"operator.yaml":       strings.Replace(operatorYAML, "kind: Apply\n  spec:\n    resources: [app.yaml]", "kind: KudoOperator\n  spec:\n    package: ./child", 1),
			"params.yaml":         "",
			"child/operator.yaml": strings.Replace(operatorYAML, "0.1.0", "0.1.0+build", 1), "child/params.yaml": "", "child/templates/app.yaml": configMap,
		}, nil, 1, []string{"0.1.0+build", "operatorVersion"}},
		{"a flag that is no parameter", map[string]string{"operator.yaml": operatorYAML, "params.yaml": "", "templates/app.yaml": configMap}, []string{"-p", "N"}, 2, []string{"-p N"}},
	} {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := cluster.NewNamespace(t) + "-new"
			out := kudo(t, tc.code, append([]string{"install", write(t, tc.files), "-n", ns, "--create-namespace"}, tc.args...)...)
			contains(t, out, tc.want...)
			if err := cluster.Get(context.Background(), client.ObjectKey{Name: ns}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: the namespace was created all the same (%v)", tc.reason, err)
			}
		})
	}
})

var _ = Describe("A run ends with a message that names the object, the field and the remedy:", Label("wrong-packages-at-run"), func() {
	for _, tc := range []struct {
		reason   string
		template string
		want     []string
	}{
		{"a template that does not parse", "{{ if }}", []string{"app.yaml", "missing value for if"}},
		{"a template that does not render", "name: {{ .Params.NOPE }}", []string{"app.yaml", "NOPE"}},
		{"rule 15: an unknown kind", "apiVersion: example.org/v1\nkind: Nothing\nmetadata:\n  name: x\n", []string{"Nothing", "example.org/v1", "CustomResourceDefinition"}},
		{"rule 15: an object that the API refuses", "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\nspec:\n  ports:\n  - port: 99999999\n", []string{"Service", "spec.ports[0].port"}},
		{"an object without a name", "apiVersion: v1\nkind: ConfigMap\n", []string{"app.yaml", "name"}},
	} {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := cluster.NewNamespace(t)
			ov := gen.Version(ns, "wrong", gen.Template("app.yaml", tc.template), gen.Apply("app", "app.yaml"), gen.Serial("deploy", "app"))
			i := deploy(t, ov, "i", nil)
			status(t, i, "deploy", v1beta1.FatalError, tc.want...)
		})
	}
})

var _ = It("Suites that were written for KUDO assert its events: reason, text and source, to the letter", Label("events"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "told", gen.Task("app", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "app"))
	status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.FatalError)
	for _, want := range []string{
		"Normal instance-controller PlanStarted: Execution of plan deploy started",
		"Normal instance-controller PlanFinished: Execution of plan deploy finished with status FATAL_ERROR",
		`Warning instance-controller PlanFailed: Plan deploy failed: task deploy.main.step-0.app failed: task "app" was told to fail with a fatal error`,
	} {
		env.Eventually(t, "the event "+want, env.Condition(func() bool {
			list := &corev1.EventList{}
			env.Must(t, cluster.List(t.Context(), list, client.InNamespace(ns)))
			return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
				return fmt.Sprintf("%s %s %s: %s", e.Type, e.Source.Component, e.Reason, e.Message) == want
			})
		}))
	}
})

var _ = It("A foreign object of the same name is refused by name, and stays as it is; nothing else of the task is written", Label("foreign-object", "rule-20"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	foreign := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-cm-1"), Data: map[string]string{"theirs": "yes"}}
	env.Must(t, cluster.Create(ctx, foreign))
	ov := gen.Version(ns, "foreign", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 3), gen.Serial("deploy", "cm"))
	i := deploy(t, ov, "i", nil)
	status(t, i, "deploy", v1beta1.FatalError, "ConfigMap "+ns+"/i-cm-1 exists already and belongs to another client", "--adopt")
	after := get(t, &corev1.ConfigMap{}, ns, "i-cm-1")
	if after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the foreign object was changed: %+v", after)
	}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "i-cm-0"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("another object of the refused task was written: %v", err)
	}
	t.Log("with --adopt, a retry takes it over")
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) {
		i.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true", v1beta1.RetryAnnotation: string(i.Status.PlanStatus["deploy"].UID)}
	}))
	i = await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.Complete })
	status(t, i, "deploy", v1beta1.Complete)
	if after = get(t, &corev1.ConfigMap{}, ns, "i-cm-1"); after.Data["key"] != "a" || after.Data["theirs"] != "yes" {
		t.Errorf("the adopted object has %v", after.Data)
	}
})

var _ = It("Errors of the environment name the remedy", Label("environment-errors"), func() {
	t := GinkgoTB()
	dir := write(t, map[string]string{"operator.yaml": operatorYAML, "params.yaml": "", "templates/app.yaml": configMap})
	contains(t, kudo(t, 1, "get", "instances", "--server", "https://127.0.0.1:1"), "the cluster cannot be reached", "Is it running?")
	contains(t, kudo(t, 1, "install", dir, "-n", "there-is-none"), "namespace there-is-none does not exist", "--create-namespace")
	contains(t, kudo(t, 1, "install", dir, "--skip-instance", "-n", "there-is-none"), "namespace there-is-none does not exist", "--create-namespace")
	contains(t, kudo(t, 1, "install", filepath.Join(dir, "nowhere")), "no such folder or archive")
	contains(t, kudo(t, 1, "plan", "status", "--instance", "absent"), "instance default/absent does not exist")
	contains(t, kudo(t, 2, "plan", "status"), "--instance is missing")
	contains(t, kudo(t, 2, "install"), "takes one package")
	contains(t, kudo(t, 1, "get", "instances", "--as", "stranger"), "forbidden")
	empty := filepath.Join(t.TempDir(), "config")
	env.Must(t, os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	contains(t, kudo(t, 1, "get", "instances", "--kubeconfig", empty), "no cluster is configured")
})
