package explore

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// failed is an object of a kind that the bundled rules know, and how it fails permanently.
type failed struct {
	// file holds the definition, among those by others.
	file, apiVersion, kind, spec string
	// status is the patch that makes the object fail; of a kind without a status subresource, it is a part of the object.
	status       string
	hasSubstatus bool
	message      string
}

// The definitions are large, so that they are created one after the other.
var _ = DescribeTable("An object that has failed permanently ends the plan, with its own message", Serial, Label("C62", "failed-objects"),
	func(f failed) {
		t := GinkgoTB()
		definition, err := os.ReadFile(filepath.Join(corpus.Require(t), "kinds", f.file))
		env.Must(t, err)
		define(t, string(definition))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{
			{"subject", "apiVersion: " + f.apiVersion + "\nkind: " + f.kind + "\nmetadata: {name: subject}\nspec: " + f.spec + "\n"},
			{"next", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: next}\n"},
		}), nil)
		says(t, i, f.kind+" "+ns+"/subject")
		merge(t, live(t, f.apiVersion, f.kind, ns, "subject"), f.status, f.hasSubstatus)
		begin := time.Now()
		now, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
		env.Must(t, err)
		AddReportEntry("time from the failure to the end of the plan", time.Since(begin).String()) // it shall be at most 2 s on an idle machine
		st := now.Status.PlanStatus[v1beta1.DeployPlan]
		if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, f.kind+" "+ns+"/subject") || !strings.Contains(st.Message, f.message) {
			t.Errorf("deploy is %s: %s", st.Status, st.Message)
		}
		if got := st.Phases[0].Steps[1].Status; got == v1beta1.Complete || got == v1beta1.InProgress {
			t.Errorf("the next step is %s", got)
		}
	},
	Entry("a workflow", failed{file: "argoproj.io_workflows.yaml", apiVersion: "argoproj.io/v1alpha1", kind: "Workflow",
		spec:    "{entrypoint: main, templates: [{name: main, container: {image: busybox}}]}",
		status:  `{"status":{"phase":"Failed","message":"child 'main-1' failed"}}`,
		message: "Failed: child 'main-1' failed"}),
	Entry("a batch job", failed{file: "batch.volcano.sh_jobs.yaml", apiVersion: "batch.volcano.sh/v1alpha1", kind: "Job",
		spec:   "{minAvailable: 1, queue: default, tasks: [{name: main, replicas: 1, template: {spec: {containers: [{name: c, image: busybox}]}}}]}",
		status: `{"status":{"state":{"phase":"Aborted","message":"the queue is closed"}}}`, hasSubstatus: true,
		message: "Aborted: the queue is closed"}),
	Entry("a certificate", failed{file: "cert-manager.io_certificates.yaml", apiVersion: "cert-manager.io/v1", kind: "Certificate",
		spec: "{secretName: tls, dnsNames: [example.org], issuerRef: {name: letters}}",
		status: `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"DoesNotExist","message":"no Secret","observedGeneration":1},` +
			`{"type":"Issuing","status":"False","reason":"Failed","message":"the issuer denied it","observedGeneration":1}]}}`, hasSubstatus: true,
		message: "the issuer denied it"}),
	Entry("a release of a chart", failed{file: "helm.toolkit.fluxcd.io_helmreleases.yaml", apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease",
		spec: "{interval: 1m, chartRef: {kind: OCIRepository, name: charts}}",
		status: `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False","reason":"InstallFailed","message":"install failed",` +
			`"observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Stalled","status":"True","reason":"RetriesExceeded",` +
			`"message":"terminal error: exceeded maximum retries","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`, hasSubstatus: true,
		message: "exceeded maximum retries"}),
)
