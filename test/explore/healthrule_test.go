package explore

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

var _ = It("A rule without a script says when an object of a kind is healthy, and when it has failed", Serial, Label("C61", "health-rule"), func() {
	t := GinkgoTB()
	define(t, kind("Vat", "vats"))
	for _, wrong := range []struct{ rule, message string }{
		{"health: {}", "conditions or field must be set"},
		{"health: {field: '{.status.phase}'}", "field and healthy must be set together"},
		{"health: {healthy: [Full]}", "field and healthy must be set together"},
		{"health: {conditions: {healthy: [Ready]}, failed: [Leaking]}", "failed needs a field"},
		{"health: {conditions: {healthy: []}}", "should have at least 1 items"},
		{"health: {conditions: {healthy: [Ready]}}\nhealthLua: return true", "health and healthLua exclude each other"},
		{"health: {field: '{..phase}', healthy: [Full]}", "would match at any depth"},
	} {
		err := suite.Create(ctx, parse(t, config("vats", group, "Vat", wrong.rule))[0])
		if err == nil || !strings.Contains(err.Error(), wrong.message) {
			t.Errorf("%s: error %v, want %q", wrong.rule, err, wrong.message)
		}
	}
	configure(t, config("vats", group, "Vat", "health: {conditions: {healthy: [Ready]}, field: '{.status.phase}', healthy: [Full], failed: [Leaking], "+
		"message: '{.status.message}'}"))
	DeferCleanup(func() { env.Must(t, suite.Delete(ctx, configOf(t, "vats"))) })

	const vat = "apiVersion: explore.example.com/v1\nkind: Vat\nmetadata: {name: vat}\nspec: {liters: 1}\n"
	for _, end := range []struct {
		status string
		want   v1beta1.ExecutionStatus
	}{
		{`{"status":{"phase":"Full","conditions":[{"type":"Ready","status":"True"}]}}`, v1beta1.Complete},
		{`{"status":{"phase":"Leaking","message":"a hole in the bottom"}}`, v1beta1.FatalError},
	} {
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"vat", vat}}), nil)
		says(t, i, "Vat "+ns+"/vat", "there is no condition Ready yet", "{.status.phase} is not set yet")
		merge(t, live(t, group, "Vat", ns, "vat"), `{"status":{"phase":"Filling","conditions":[{"type":"Ready","status":"False","reason":"Low"}]}}`, true)
		says(t, i, "condition Ready is False: Low", "{.status.phase} is Filling (healthy: Full)")
		merge(t, live(t, group, "Vat", ns, "vat"), end.status, true)
		now, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
		env.Must(t, err)
		st := now.Status.PlanStatus[v1beta1.DeployPlan]
		if st.Status != end.want || end.want == v1beta1.FatalError && !strings.Contains(st.Message, "{.status.phase} is Leaking; a hole in the bottom") {
			t.Errorf("deploy is %s, want %s: %s", st.Status, end.want, st.Message)
		}
	}
})
