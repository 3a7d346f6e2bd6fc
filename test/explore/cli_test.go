package explore

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

	configure(t, config("live", group, "Kettle", "healthLua: return false, 'leaks'\nreplicaLua: return 2, {resourceRequest = {cpu = '100m', ['example.com/gas'] = 1}}"))
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

var _ = It("The command explore check --live says which versions of the rules' kinds the cluster does not serve, and writes nothing", Label("C69", "check-live"), func() {
	t := GinkgoTB()
	define(t, kind("Jug", "jugs"))
	env.Eventually(t, "the definition of Jugs", func() string {
		if _, err := suite.RESTMapper().RESTMapping(schema.GroupKind{Group: "explore.example.com", Kind: "Jug"}, "v1"); err != nil {
			return err.Error()
		}
		return ""
	})
	file := func(apiVersion, kind string) string {
		name := filepath.Join(t.TempDir(), "config.yaml")
		env.Must(t, os.WriteFile(name, []byte(config("jugs", apiVersion, kind, "healthLua: return true")), 0o600))
		return name
	}
	check := func(code int, args ...string) string {
		t.Helper()
		return suite.MustKudo(t, code, append([]string{"explore", "check"}, args...)...)
	}
	served := check(0, "--live", "-f", file(group, "Jug"))
	env.Contains(t, served, "Config/jugs spec.explorations[0]", "Jug.explore.example.com", "Certificate.cert-manager.io", "1 Configs are valid")
	if strings.Contains(served, "jugs spec.explorations[0]: ") {
		t.Errorf("a rule for a version that is served was warned of:\n%s", served)
	}
	old := file("explore.example.com/v1beta1", "Jug")
	const nothing = "the cluster does not serve Jug.explore.example.com in v1beta1: the rule matches nothing; it serves v1"
	env.Contains(t, check(0, "--live", "-f", old), "Warning: ", nothing)
	env.Contains(t, check(1, "--live", "--strict", "-f", old), nothing, "found 1 errors in 1 Configs")
	env.Contains(t, check(0, "--live", "-f", file(group, "Nothing")), "the cluster does not serve Nothing.explore.example.com: the rule matches nothing until its")
	env.Contains(t, check(0, "--live", "-f", file("apps/v1", "Deployment")), "Deployment.apps ", "1 Configs are valid")
	create(t, config("live-jugs", "explore.example.com/v1beta1", "Jug", "healthLua: return true"))
	env.Contains(t, check(0, "--live"), "Config/live-jugs spec.explorations[0]: "+nothing)
})
