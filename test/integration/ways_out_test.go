package integration

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// words returns a table with one blank between its words.
func words(table string) string { return strings.Join(strings.Fields(table), " ") }

var _ = It("A rollback ends the run that stands in its way, or waits behind it, and what is queued says behind what", Label("rollback-first", "P20"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	deploy(t, web(ns), "i", nil)
	missing := "does-not-exist:1"
	env.Must(t, cluster.Create(t.Context(), web(ns, gen.Serial("upgrade", "app"), func(ov *v1beta1.OperatorVersion) {
		ov.Name, ov.Spec.Version = "web-2", "2.0.0"
		for n := range ov.Spec.Parameters {
			if ov.Spec.Parameters[n].Name == "IMAGE" {
				ov.Spec.Parameters[n].Default = &missing
			}
		}
	})))
	upgrade := func() {
		t.Helper()
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2" }))
		await(t, ns, "i", func(i *v1beta1.Instance) bool {
			return i.Status.AggregatedStatus.ActivePlanName == "upgrade" && strings.Contains(i.Status.AggregatedStatus.Message, "Deployment")
		})
	}
	arrived := func() {
		t.Helper()
		if got := get(t, &appsv1.Deployment{}, ns, "i").Spec.Template.Spec.Containers[0].Image; got != "nginx:1.27" {
			t.Errorf("after the rollback, the image is %s", got)
		}
	}
	on := func(args ...string) []string { return append(args, "-n", ns, "--instance", "i") }

	upgrade()
	contains(t, kudo(t, 0, on("rollback", "--wait", "--wait-time", "90s")...), "set back to run 1; plan upgrade, which was running, is being cancelled", "ready")
	arrived()
	contains(t, words(kudo(t, 0, on("plan", "history")...)), "2 upgrade CANCELLED", "3 deploy COMPLETE")
	contains(t, kudo(t, 0, on("plan", "status")...), "[FATAL_ERROR]", "(cancelled)", "Step step-0 [STOPPED]", "Task app [STOPPED]")

	upgrade()
	behind := "behind plan upgrade (kubectl kudo plan cancel --instance i -n " + ns + " ends it), which waits for: "
	contains(t, kudo(t, 4, on("rollback", "--after-running", "--wait", "--wait-time", "30s")...), "set back to run 3, after plan upgrade has ended",
		"plan deploy is queued "+behind, "Deployment "+ns+"/i")
	contains(t, kudo(t, 0, on("plan", "status")...), "Queued 1: plan deploy", behind)
	hasEvent(t, ns, "Plan deploy is queued behind plan upgrade: ")
	if c := meta.FindStatusCondition(get(t, &v1beta1.Instance{}, ns, "i").Status.Conditions, v1beta1.ReconcilingCondition); c == nil ||
		!strings.HasPrefix(c.Message, "plan deploy is queued "+behind) {
		t.Errorf("the condition is %+v", c)
	}
	kudo(t, 0, on("plan", "cancel")...)
	kudo(t, 0, on("plan", "wait", "--wait-time", "90s")...)
	arrived()
})

var _ = It("A run that another run has replaced ended when that one was started", Label("superseded", "P28"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	stuck(t, ns)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters["IMAGE"] = "nginx:1.27" }))
	await(t, ns, "i", env.PlanEnded("deploy", 2))
	type run struct {
		Status            string
		Started, Finished time.Time
	}
	read := func() (runs []run) {
		env.Must(t, json.Unmarshal([]byte(kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns, "-o", "json")), &runs))
		return runs
	}
	if runs := read(); len(runs) != 2 || runs[0].Status != "SUPERSEDED" || !runs[0].Finished.Equal(runs[1].Started) || runs[1].Status != "COMPLETE" {
		t.Errorf("the history is %+v", runs)
	}
})
