package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/test/env"
)

var _ = It("A dry run of an upgrade lists what the upgrade will prune, and changes nothing", Label("upgrade-dry-run", "rule-12"), func() {
	t := GinkgoTB()
	ns := namespace(t)
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
	ns := namespace(t)
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
