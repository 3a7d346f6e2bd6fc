package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
)

var _ = It("The plans of an Instance see the version before, and a rollback sees that nothing else was completed", Label("rollback", "G5"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	pack := func(version, app string) string {
		return write(t, map[string]string{
			"operator.yaml": strings.Replace(operatorYAML, "operatorVersion: 0.1.0", "operatorVersion: "+version+"\nappVersion: "+app, 1),
			"params.yaml":   "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: BAD, default: ''}\n",
			"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata: {key: '{{ .From.AppVersion }} to {{ .AppVersion }}'}\n" +
				"{{- with .Params.BAD }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {'{{ . }}': x}\n{{- end }}\n",
		})
	}
	prints := func(want string) {
		t.Helper()
		if got := get(t, &corev1.ConfigMap{}, ns, "app").Data["key"]; got != want {
			t.Errorf("the plans have written %q, want %q", got, want)
		}
	}
	on := func(args ...string) []string { return append(args, "-n", ns, "--instance", "i", "--wait") }
	kudo(t, 0, on("install", pack("0.1.0", "15"))...)
	prints(" to 15")
	next := pack("0.2.0", "16")
	contains(t, kudo(t, 0, "upgrade", next, "-n", ns, "--instance", "i", "--dry-run"), "15 to 16")
	kudo(t, 3, on("upgrade", next, "-p", "BAD=no key")...)
	prints("15 to 16")
	kudo(t, 0, on("rollback")...)
	prints("15 to 15")
	kudo(t, 0, on("upgrade", next)...)
	prints("15 to 16")
	kudo(t, 0, "plan", "trigger", "--name", "deploy", "-n", ns, "--instance", "i", "--wait")
	prints("16 to 16")
})
