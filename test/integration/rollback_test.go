package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"

	"kudo.dev/kudo/test/env"
)

var _ = It("An Instance is set back to the version and the parameters of an earlier run, by its plans", Label("rollback"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	pack := func(version string) string {
		return write(t, map[string]string{
			"operator.yaml":      strings.Replace(operatorYAML, "0.1.0", version, 1),
			"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: A, default: a}\n- {name: B, default: b}\n- {name: FIXED, default: f, immutable: true}\n- {name: P, sensitive: true, default: ''}\n",
			"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata: {key: '" + version + " {{ .Params.A }} {{ .Params.B }} {{ .Params.FIXED }} {{ .Params.P }}'}\n",
		})
	}
	holds := func(want string) {
		t.Helper()
		if got := get(t, &corev1.ConfigMap{}, ns, "app").Data["key"]; got != want {
			t.Errorf("the plans have written %q, want %q", got, want)
		}
	}
	on := func(args ...string) []string { return append(args, "-n", ns, "--instance", "i", "--wait") }
	env.Must(t, cluster.Create(t.Context(), secret(ns, "login", map[string]string{"P": "one"})))
	kudo(t, 0, on("install", pack("0.1.0"), "-p", "A=1", "--parameters-from", "secret/login")...)
	contains(t, kudo(t, 1, "rollback", "-n", ns, "--instance", "i"), "no complete run with another version or other parameters")
	kudo(t, 0, on("update", "-p", "A=2", "-p", "B=2")...)
	kudo(t, 0, on("upgrade", pack("0.2.0"), "-p", "A=3")...)
	holds("0.2.0 3 2 f one")

	kudo(t, 0, on("rollback")...)
	holds("0.1.0 2 2 f one")
	contains(t, kudo(t, 0, on("rollback", "--to-revision", "1")...), "set back to run 1")
	holds("0.1.0 1 b f one")
	i := get(t, &v1beta1.Instance{}, ns, "i")
	if _, written := i.Spec.Parameters["P"]; written || len(i.Spec.ParametersFrom) != 1 {
		t.Errorf("what sources give stays there: %v", i.Spec.Parameters)
	}
	contains(t, kudo(t, 1, on("rollback", "--to-revision", "1")...), "already")
	contains(t, kudo(t, 1, on("rollback", "--to-revision", "77")...), "no run 77", "plan history")
	env.Must(t, cluster.Delete(t.Context(), get(t, &v1beta1.OperatorVersion{}, ns, "wrong-0.2.0")))
	contains(t, kudo(t, 1, on("rollback", "--to-revision", "3")...), "wrong-0.2.0", "does not exist any more", "--skip-instance")
	holds("0.1.0 1 b f one")
})
