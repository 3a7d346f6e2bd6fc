package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// sized makes a Deployment whose limit of memory is a parameter.
const sized = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: 0
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers:
      - name: app
        image: nginx:1.27
        resources: {limits: {memory: "{{ .Params.MEMORY }}"}}
`

var _ = It("An update that the API server refuses names the template and the parameter, in the preview, in the status and on the command line", Label("P8"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "sized-1", gen.Param("MEMORY", "64Mi", ""), gen.Param("SECRET", "s", ""), gen.Template("sized.yaml", sized), gen.Apply("sized", "sized.yaml"), gen.Serial("deploy", "sized"))
	deploy(t, ov, "i", nil)
	const blame = "spec.template.spec.containers[0].resources.limits.memory: template sized.yaml uses MEMORY"
	update := []string{"update", "--instance", "i", "-n", ns, "-p", "MEMORY=banana"}
	contains(t, kudo(t, 3, append(update, "--dry-run")...), blame, "1 refused")
	contains(t, kudo(t, 3, append(update, "--wait")...), "quantities must match the regular expression", blame)
	i := await(t, ns, "i", env.PlanEnded("deploy", 2))
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || !strings.Contains(st.Message, blame) {
		t.Errorf("the plan is %s: %s", st.Status, st.Message)
	}
	contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), blame)
	contains(t, kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "MEMORY=128Mi", "--wait"), "instance "+ns+"/i ready")
})
