package integration

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A dry run of an upgrade lists what the upgrade will prune, and changes nothing", Label("upgrade-dry-run", "rule-12"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	operator := func(version, resources string) string {
		return "apiVersion: kudo.dev/v1beta1\nname: shrink\noperatorVersion: " + version + `
tasks:
- name: app
  kind: Apply
  spec: {resources: [` + resources + `]}
plans:
  deploy:
    strategy: serial
    phases:
    - name: app
      strategy: serial
      steps: [{name: app, tasks: [app]}]
`
	}
	cm := func(name, annotations string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-" + name + "\n  annotations: {" + annotations + "}\n"
	}
	templates := map[string]string{"templates/a.yaml": cm("a", ""), "templates/b.yaml": cm("b", ""), "templates/c.yaml": cm("c", "kudo.dev/keep: 'true'"), "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n"}
	pack := func(version, resources string) string {
		files := map[string]string{"operator.yaml": operator(version, resources)}
		for name, text := range templates {
			files[name] = text
		}
		return write(t, files)
	}
	kudo(t, 0, "install", pack("1.0.0", "a.yaml, b.yaml, c.yaml"), "--instance", "i", "-n", ns, "--wait")
	two := pack("2.0.0", "a.yaml")
	out := kudo(t, 0, "upgrade", two, "--instance", "i", "-n", ns, "--dry-run")
	contains(t, out, "plan 1: deploy", "- ConfigMap "+ns+"/i-b", "= ConfigMap "+ns+"/i-c", "kudo.dev/keep", "1 delete, 1 keep, 1 unchanged")
	get(t, &corev1.ConfigMap{}, ns, "i-b")
	kudo(t, 0, "upgrade", two, "--instance", "i", "-n", ns, "--wait")
	env.Eventually(t, "ConfigMap i-b gone", env.Condition(func() bool {
		list := &corev1.ConfigMapList{}
		env.Must(t, cluster.List(t.Context(), list))
		for _, cm := range list.Items {
			if cm.Namespace == ns && cm.Name == "i-b" {
				return false
			}
		}
		return true
	}))
	get(t, &corev1.ConfigMap{}, ns, "i-c")
	contains(t, kudo(t, 1, "upgrade", two, "--instance", "i", "-n", ns, "--dry-run"), "runs shrink-2.0.0 already")
})

var _ = It("A dry run of an upgrade reads the Secrets that decide what is pruned, and says so if it cannot", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	pack := func(version string) string {
		return write(t, map[string]string{
			"operator.yaml":      strings.Replace(operatorYAML, "0.1.0", version, 1),
			"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: TEAM, sensitive: true}\n",
			"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-{{ .Params.TEAM }}\n",
		})
	}
	login := secret(ns, "login", map[string]string{"TEAM": "blue"})
	env.Must(t, cluster.Create(t.Context(), login))
	kudo(t, 0, "install", pack("0.1.0"), "--instance", "i", "-n", ns, "--parameters-from", "secret/login", "--wait")
	get(t, &corev1.ConfigMap{}, ns, "app-blue")
	contains(t, kudo(t, 0, "upgrade", pack("0.2.0"), "--instance", "i", "-n", ns, "--dry-run"), "0 delete")
	env.Must(t, cluster.Delete(t.Context(), login))
	contains(t, kudo(t, 3, "upgrade", pack("0.2.0"), "--instance", "i", "-n", ns, "--dry-run"), "the plan would wait", "Secret "+ns+"/login", "does not exist")
	contains(t, kudo(t, 2, "update", "--instance", "i", "-n", ns, "--parameters-from", "login"), "must be secret/NAME or configmap/NAME")
	contains(t, kudo(t, 1, "install", pack("0.1.0"), "--instance", "j", "-n", ns), "TEAM", "required")
})

var _ = It("Commands with a preview end by what it says, and act only as was expected", Label("previews", "P14", "P16"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	pack := func(version, value string) string {
		return write(t, map[string]string{
			"operator.yaml":      strings.Replace(operatorYAML, "0.1.0", version, 1),
			"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: VALUE, default: one}\n",
			"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {key: '{{ .Params.VALUE }}" + value + "'}\n",
		})
	}
	one, two := pack("0.1.0", ""), pack("0.2.0", "-new")
	broken := write(t, map[string]string{
		"operator.yaml":      strings.Replace(operatorYAML, "0.1.0", "0.3.0", 1),
		"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: VALUE, default: one}\n",
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: [no, map]\n",
	})
	at := func(args ...string) []string { return append(args, "--instance", "i", "-n", ns) }
	value := func() string {
		cm := &corev1.ConfigMap{}
		get(t, cm, ns, "app")
		return cm.Data["key"]
	}
	digest := func(out string) string { return out[strings.LastIndex(out, "sha256:"):][:len("sha256:")+64] }
	kudo(t, 0, at("install", one, "--wait")...)

	By("diff: the codes of kubectl diff")
	contains(t, kudo(t, 0, at("diff")...), " 0 change,")
	contains(t, kudo(t, 1, at("diff", "-p", "VALUE=two")...), ".data.key: one -> two")
	contains(t, kudo(t, 1, at("diff", two)...), ".data.key: one -> one-new")
	contains(t, kudo(t, 2, "diff", "--instance", "none", "-n", ns), "does not exist")
	contains(t, kudo(t, 3, at("diff", "-p", "NONE=x")...), "✗ refused", "NONE not defined")
	contains(t, kudo(t, 3, at("diff", broken)...), "✗ ConfigMap "+ns+"/app", "would fail")
	env.Must(t, cluster.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(ns, "reader"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"instances", "operatorversions"}},
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	}}))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "reader"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader"}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}}))
	env.Must(t, cluster.AwaitRight(t.Context(), "reader", authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Group: "kudo.dev", Resource: "instances"}))
	contains(t, kudo(t, 4, at("diff", two, "--as", "reader")...), "? ConfigMap "+ns+"/app", "cannot patch")
	contains(t, kudo(t, 0, at("update", "-p", "VALUE=two", "--dry-run=client", "--as", "reader")...), ".data.key: one -> two", "they were not asked")

	By("dry runs of all commands, which change nothing")
	contains(t, kudo(t, 0, at("update", "-p", "VALUE=two", "--dry-run")...), ".data.key: one -> two")
	contains(t, kudo(t, 0, at("plan", "trigger", "--name", "deploy", "--dry-run")...), "plan 1: deploy", " 1 unchanged")
	contains(t, kudo(t, 0, at("plan", "preview", "--name", "deploy")...), "plan 1: deploy", " 1 unchanged")
	contains(t, kudo(t, 0, at("plan", "preview")...), "0 plans")
	contains(t, kudo(t, 0, at("uninstall", "--dry-run")...), "- ConfigMap "+ns+"/app", "it is deleted with the Instance")
	contains(t, kudo(t, 3, at("upgrade", broken, "--dry-run")...), "would fail")
	contains(t, kudo(t, 3, at("uninstall", "--dry-run", "--fail-on", "delete")...), "has what --fail-on names: delete")
	contains(t, kudo(t, 4, at("update", "-p", "VALUE=two", "--dry-run=client", "--fail-on", "unknown")...), "not all is known")
	if got := value(); got != "one" {
		t.Fatalf("a preview has changed the value to %q", got)
	}

	By("expect: another digest, a change in between, and the right one")
	seen := digest(kudo(t, 0, at("update", "-p", "VALUE=two", "--dry-run")...))
	file := filepath.Join(write(t, map[string]string{"p.json": kudo(t, 0, at("update", "-p", "VALUE=two", "--dry-run", "-o", "json")...)}), "p.json")
	contains(t, kudo(t, 3, at("update", "-p", "VALUE=three", "--expect", seen)...), "nothing was changed", ".data.key: one -> three")
	contains(t, kudo(t, 3, at("upgrade", two, "--expect", seen)...), "nothing was changed")
	contains(t, kudo(t, 3, at("uninstall", "--expect", seen)...), "nothing was changed")
	contains(t, kudo(t, 3, at("plan", "trigger", "--name", "deploy", "--expect", seen)...), "nothing was changed")
	env.Must(t, cluster.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}},
		client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"other"}}`))))
	contains(t, kudo(t, 3, at("update", "-p", "VALUE=two", "--expect", seen)...), "nothing was changed", ".data.key: other -> two")
	contains(t, kudo(t, 3, at("update", "-p", "VALUE=two", "--expect", file)...), "nothing was changed", "- ConfigMap "+ns+"/app: .data.key: one -> two",
		"+ ConfigMap "+ns+"/app: .data.key: other -> two")
	if got := value(); got != "other" {
		t.Fatalf("what was not expected was done: the value is %q", got)
	}
	seen = digest(kudo(t, 0, at("update", "-p", "VALUE=two", "--dry-run")...))
	kudo(t, 0, at("update", "-p", "VALUE=two", "--expect", seen, "--wait")...)
	if got := value(); got != "two" {
		t.Errorf("what was expected was not done: the value is %q", got)
	}

	By("rollback, after an upgrade")
	kudo(t, 0, at("upgrade", two, "--wait")...)
	contains(t, kudo(t, 0, at("rollback", "--dry-run")...), ".data.key: two-new -> two")
	if got := value(); got != "two-new" {
		t.Errorf("a preview has rolled back: the value is %q", got)
	}
})

var _ = It("A preview calls unknown what only its reader may not write, with the rules that the reader lacks", Label("previews", "P5"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	pack := write(t, map[string]string{
		"operator.yaml": operatorYAML,
		"params.yaml":   "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/app.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: app}\n" +
			"rules:\n- {apiGroups: [''], resources: [secrets], verbs: [list]}\n",
	})
	role := &rbacv1.Role{ObjectMeta: gen.Meta(ns, "maker"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "create"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"instances", "operatorversions", "operators"}},
		{Verbs: []string{"get", "create", "patch"}, APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}},
		{Verbs: []string{"use"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}},
	}}
	env.Must(t, cluster.Create(t.Context(), role))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "maker"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "maker"}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "maker"}}))
	env.Must(t, cluster.AwaitRight(t.Context(), "maker", authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Group: "kudo.dev", Resource: "instances"}))
	out := kudo(t, 0, "install", pack, "--instance", "i", "-n", ns, "--dry-run", "--as", "maker")
	contains(t, out, "? Role "+ns+"/app", "not currently held", "secrets", " 0 refused")
	contains(t, kudo(t, 0, "install", pack, "--instance", "i", "-n", ns, "--dry-run"), "+ Role "+ns+"/app", " 0 unknown")
})

var _ = It("diff of files without an Instance shows the install plans that other parameters run again, and changes nothing", Label("previews", "P10"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	version := func(value string) *v1beta1.OperatorVersion {
		ov := gen.Version(ns, "shared-1", gen.Param("VALUE", "a", ""), gen.InstallPlan("install"), gen.Apply("make", "map.yaml"), gen.Serial("install", "make"),
			gen.Template("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: "+ns+"}\ndata: {key: '{{ .Params.VALUE }}'}\n"))
		ov.Spec.InstallParameters = map[string]string{"VALUE": value}
		ov.APIVersion, ov.Kind = v1beta1.GroupVersion.String(), "OperatorVersion"
		return ov
	}
	file := func(value string) string {
		text, err := yaml.Marshal(version(value))
		env.Must(t, err)
		return filepath.Join(write(t, map[string]string{"version.yaml": string(text)}), "version.yaml")
	}
	contains(t, kudo(t, 1, "diff", "-f", file("one"), "-n", ns), "+ OperatorVersion "+ns+"/shared-1", "+ ConfigMap "+ns+"/shared", "plan 1: install")
	env.Must(t, cluster.Create(t.Context(), version("one")))
	env.Eventually(t, "the install plan is complete", env.Condition(func() bool {
		now := &v1beta1.OperatorVersion{}
		return cluster.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shared-1"}, now) == nil && now.Status.PlanStatus["install"].Status == v1beta1.Complete
	}))
	contains(t, kudo(t, 0, "diff", "-f", file("one"), "-n", ns), "0 plans", " 1 unchanged")
	out := kudo(t, 4, "diff", "-f", file("two"), "-n", ns)
	contains(t, out, "~ OperatorVersion "+ns+"/shared-1", ".spec.installParameters.VALUE: one -> two", "plan 1: install of OperatorVersion "+ns+"/shared-1 (installPlan or installParameters changed)",
		"~ ConfigMap "+ns+"/shared", ".data.key: one -> two", "to the Instances that use it", " 0 refused")
	cm := &corev1.ConfigMap{}
	if get(t, cm, ns, "shared"); cm.Data["key"] != "one" {
		t.Errorf("the preview has changed the object to %q", cm.Data["key"])
	}
})
