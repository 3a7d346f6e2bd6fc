package explore

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("The command explore run --live asks those whom the manager asks, and prints who answers", Serial, func() {
	t := GinkgoTB()
	define(t, kind("Kettle", "kettles"))
	ns := suite.NewNamespace(t)
	i := install(t, operator(ns, [][2]string{{"web", deployment}, {"kettle", "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\nspec: {liters: 2}\n"}},
		gen.Param("REPLICAS", "3", ""), gen.Param("WORD", "one", "")), nil)
	complete(t, i, 1)
	run := func(code int, args ...string) string {
		t.Helper()
		return suite.MustKudo(t, code, append([]string{"explore", "run", "-n", ns}, args...)...)
	}
	env.Contains(t, run(0, "--operation", "InterpretReplica", "--live", "deployment.apps/web"), "answered by: native", "replicas: 3", "cpu: 10m")
	env.Contains(t, run(0, "--operation", "InterpretHealth", "--live", "kettle.explore.example.com/kettle"), "answered by: native", "healthy: true")
	env.Contains(t, run(0, "--operation", "ExplorePacking", "--live", "kettle.explore.example.com/kettle"), "no opinion")

	teach(t, config("live", group, "Kettle", "healthLua: return false, 'leaks'\nreplicaLua: return 2, {resourceRequest = {cpu = '100m', ['example.com/gas'] = 1}}"))
	env.Contains(t, run(0, "--operation", "InterpretHealth", "--live", "kettle.explore.example.com/kettle"), "answered by: user (Config/live)", "message: leaks")
	out := suite.MustKudo(t, 0, "get", "instances", "-n", ns, "-o", "wide")
	env.Contains(t, out, "REPLICAS", "REQUESTS", " 5 ", "cpu=230m,example.com/gas=2,memory=48Mi")

	desired := filepath.Join(t.TempDir(), "desired.yaml")
	env.Must(t, os.WriteFile(desired, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: "+ns+"}\nspec: {replicas: 1}\n"), 0o600))
	create(t, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: "+ns+"}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 9}\n")
	env.Contains(t, run(0, "--operation", "Retain", "--desired", desired, "--live", "deployment.apps/web"), "answered by: native", ".spec.replicas: 1 -> 3")

	inside := strings.Replace(gadgetHook("[ExploreHealthy, ExploreReplica]", "https://127.0.0.1:1/x", `""`), `{url: "https://127.0.0.1:1/x", caBundle: ""}`, "{service: {namespace: shop, name: sample}}", 1)
	define(t, gadgets)
	create(t, inside)
	create(t, "apiVersion: explore.example.com/v1\nkind: Gadget\nmetadata: {name: g, namespace: "+ns+"}\n")
	env.Contains(t, run(0, "--operation", "InterpretHealth", "--live", "gadget.explore.example.com/g"), "webhook gadgets/gadgets.example.com is not asked", "shop/sample", "answered by: native")
	merge(t, parse(t, inside)[0], `{"webhooks":[{"name":"gadgets.example.com","rules":[{"operations":["ExploreHealthy"],"apiGroups":["explore.example.com"],"apiVersions":["*"],"resources":["gadgets"]}],"clientConfig":{"url":"https://127.0.0.1:1/x"},"exploreReviewVersions":["v1alpha1"]}]}`, false)
	env.Contains(t, run(1, "--operation", "InterpretHealth", "--live", "gadget.explore.example.com/g"), "ExploreHealthy of Gadget "+ns+"/g is unknown", "webhook gadgets/gadgets.example.com", "connection refused")
})
