package explore

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// config is a Config with one exploration.
func config(name, apiVersion, kind, scripts string) string {
	return "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: " + name + "}\nspec:\n  explorations:\n  - apiVersion: " + apiVersion + "\n    kind: " + kind + "\n    " +
		strings.ReplaceAll(strings.TrimSpace(scripts), "\n", "\n    ") + "\n"
}

var _ = It("A script of a user decides instead of kudo's own rules, also on a kind of Kubernetes, and a change of it is followed at once", Serial, Label("health-script"), func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	const name = "deployment-health"
	configure(t, config(name, "apps/v1", "Deployment", "healthLua: |\n  if (observedObj.metadata.labels or {}).signed == 'yes' then return true end\n  return false, 'waits for a signature'"))
	i := install(t, operator(ns, [][2]string{{"web", deployment}}, gen.Param("REPLICAS", "1", ""), gen.Param("WORD", "one", "")), nil)
	says(t, i, "Deployment "+ns+"/web", "waits for a signature")
	merge(t, live(t, "apps/v1", "Deployment", ns, "web"), `{"metadata":{"labels":{"signed":"yes"}}}`, false)
	complete(t, i, 1)

	set(t, i, `{"parameters":{"WORD":"two"}}`)
	complete(t, i, 2)
	merge(t, configOf(t, name), `{"spec":{"explorations":[{"apiVersion":"apps/v1","kind":"Deployment","healthLua":"return false, 'is never done'"}]}}`, false)
	set(t, i, `{"parameters":{"WORD":"three"}}`)
	says(t, i, "is never done")
	env.Must(t, suite.Delete(ctx, configOf(t, name)))
	complete(t, i, 3)
})

var _ = It("What an install plan applies is asked for its health as what Instances apply, and again when a rule changes", Serial, func() {
	t := GinkgoTB()
	define(t, kind("Boiler", "boilers"))
	const name = "boiler-health"
	configure(t, config(name, group, "Boiler", "healthLua: |\n  if observedObj.spec.liters > 3 then return true end\n  return false, 'holds too little'"))
	ns := suite.NewNamespace(t)
	ov := gen.Version(ns, "boiler", gen.Template("boiler.yaml", "apiVersion: explore.example.com/v1\nkind: Boiler\nmetadata: {name: boiler, namespace: "+ns+"}\nspec: {liters: 1}\n"),
		gen.Apply("boiler", "boiler.yaml"), gen.Serial("install", "boiler"), gen.InstallPlan("install"), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, ov))
	env.Contains(t, installed(t, ov, v1beta1.InProgress), "Boiler "+ns+"/boiler", "holds too little")
	merge(t, configOf(t, name), `{"spec":{"explorations":[{"apiVersion":"`+group+`","kind":"Boiler","healthLua":"return false, 'waits for a visit'"}]}}`, false)
	env.Eventually(t, "the answer of the new rule", func() string {
		if got := installed(t, ov, v1beta1.InProgress); !strings.Contains(got, "waits for a visit") {
			return got
		}
		return ""
	})
	env.Must(t, suite.Delete(ctx, configOf(t, name)))
	installed(t, ov, v1beta1.Complete)
	env.Must(t, suite.Delete(ctx, ov))
})

func configOf(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	return live(t, "config.kudo.dev/v1alpha1", "Config", "", name)
}

var _ = Describe("Rules for one kind:", Ordered, ContinueOnFailure, func() {
	It("An object without status is ready once applied, unless a rule says that a status is to come", func() {
		t := GinkgoTB()
		define(t, kind("Kettle", "kettles"))
		const kettle = "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\nspec: {liters: 1}\n"
		bare := suite.NewNamespace(t)
		complete(t, install(t, operator(bare, [][2]string{{"kettle", kettle}}), nil), 1)
		configure(t, config("kettles", group, "Kettle", `healthLua: |
  local status = observedObj.status
  if status == nil or status.temperature == nil then return false, 'has no status yet' end
  return status.temperature >= 100, 'is at ' .. status.temperature .. ' degrees'
statusLua: |
  return {temperature = observedObj.status and observedObj.status.temperature}`))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"kettle", kettle}}), nil)
		says(t, i, "Kettle "+ns+"/kettle", "has no status yet")
		merge(t, live(t, group, "Kettle", ns, "kettle"), `{"status":{"temperature":60}}`, true)
		says(t, i, "is at 60 degrees")
		merge(t, live(t, group, "Kettle", ns, "kettle"), `{"status":{"temperature":100}}`, true)
		complete(t, i, 1)
		env.Eventually(t, "the status in that of the Instance", func() string { return reflected(t, i, "Kettle", `{"temperature":100}`) })
		merge(t, live(t, group, "Kettle", ns, "kettle"), `{"status":{"temperature":110}}`, true)
		env.Eventually(t, "a change of it", func() string { return reflected(t, i, "Kettle", `{"temperature":110}`) })
	})

	It("A step that waits names what is not there, by a script and by what kudo knows of Deployments", Label("missing-dependency"), func() {
		t := GinkgoTB()
		define(t, kind("Kettle", "kettles"))
		configure(t, config("lids", group, "Kettle", `healthLua: return observedObj.status ~= nil
dependenciesLua: |
  return {{apiVersion = 'v1', kind = 'Secret', namespace = desiredObj.metadata.namespace, name = desiredObj.spec.lid}}`))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{
			{"kettle", "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\nspec: {lid: lid}\n"},
			{"web", strings.Replace(deployment, "image: nginx,", "image: nginx, envFrom: [{configMapRef: {name: words}}],", 1)},
		}, gen.Param("REPLICAS", "1", ""), gen.Param("WORD", "one", "")), nil)
		says(t, i, "Kettle "+ns+"/kettle", "needs Secret "+ns+"/lid: missing")
		create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: lid, namespace: "+ns+"}\n")
		merge(t, live(t, group, "Kettle", ns, "kettle"), `{"status":{}}`, true)
		complete(t, i, 1)
	})

	It("A script changes what is rendered", func() {
		t := GinkgoTB()
		define(t, kind("Kettle", "kettles"))
		configure(t, config("packing", group, "Kettle", "packingLua: |\n  desiredObj.spec.liters = desiredObj.spec.liters * 2\n  return desiredObj"))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"kettle", "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\nspec: {liters: 2}\n"}}), nil)
		complete(t, i, 1)
		if got := field(live(t, group, "Kettle", ns, "kettle"), "spec.liters"); got != "4" {
			t.Errorf("got %s liters", got)
		}
	})

	It("A script that fails is named, and nothing is called healthy on it", func() {
		t := GinkgoTB()
		define(t, kind("Kettle", "kettles"))
		configure(t, config("loop", group, "Kettle", "healthLua: while true do end return true"))
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"kettle", "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\n"}}), nil)
		says(t, i, "its health is not known", "user Config/loop", "instructions")
		merge(t, configOf(t, "loop"), `{"spec":{"explorations":[{"apiVersion":"`+group+`","kind":"Kettle","healthLua":"return true"}]}}`, false)
		complete(t, i, 1)
	})
})

var _ = Describe("Admission refuses, with the reason:", Ordered, ContinueOnFailure, Label("admission"), func() {
	const mine = "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: mine}\n"
	BeforeAll(func() {
		configure(GinkgoTB(), config("theirs", "explore.example.com/v1", "Spoon", "healthLua: return true"))
	})
	for _, tc := range env.Sorted(map[string]struct {
		reason, text string
		want         []string
	}{
		"Script": {"a script that does not compile, by its field and line", config("mine", "a/v1", "K", "healthLua: return ("), []string{"spec.explorations[0].healthLua"}},
		"Clash":  {"two that answer the same, naming both", config("mine", "explore.example.com/v1", "Spoon", "healthLua: return false"), []string{"ExploreHealthy of explore.example.com/v1 Spoon", "Config/mine", "Config/theirs"}},
		"Field":  {"a path that cannot be read", mine + "spec: {retentions: [{apiVersion: a/v1, kind: K, fields: ['{..x}']}]}\n", []string{"spec.retentions[0].fields[0]"}},
		"Hook":   {"a webhook without TLS", gadgetHook("[ExploreHealthy]", "http://127.0.0.1:1/x", "aW5uIQ=="), []string{"https"}},
		"Time":   {"a time-out out of bounds", strings.Replace(gadgetHook("[ExploreHealthy]", "https://127.0.0.1:1/x", ""), "timeoutSeconds: 1", "timeoutSeconds: 31", 1), []string{"timeoutSeconds"}},
	}) {
		It(tc.reason, func() {
			t := GinkgoTB()
			o := parse(t, tc.text)[0]
			err := suite.Create(ctx, o)
			if err == nil {
				_ = suite.Delete(ctx, o)
				t.Fatalf("%s: it was let in", tc.reason)
			}
			env.Contains(t, err.Error(), tc.want...)
		})
	}
	It("but not another operation of the same kind", func() {
		create(GinkgoTB(), config("mine", "explore.example.com/v1", "Spoon", "statusLua: return {}"))
	})
})

var _ = It("A rule that admission did not check answers nothing, and says so in its condition", Serial, func() {
	t := GinkgoTB()
	define(t, kind("Kettle", "kettles"))
	hook := live(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "kudo-manager-explore-validation-webhook-config")
	hooks, _, _ := unstructured.NestedSlice(hook.Object, "webhooks")
	for _, h := range hooks {
		h.(map[string]any)["objectSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "unchecked", "operator": "DoesNotExist"}}}
	}
	env.Must(t, unstructured.SetNestedSlice(hook.Object, hooks, "webhooks"))
	env.Must(t, suite.Update(ctx, hook))
	t.Cleanup(func() {
		for _, h := range hooks {
			delete(h.(map[string]any), "objectSelector")
		}
		now := live(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", hook.GetName())
		env.Must(t, unstructured.SetNestedSlice(now.Object, hooks, "webhooks"))
		env.Must(t, suite.Update(ctx, now))
	})
	text := strings.Replace(config("unchecked", group, "Kettle", "healthLua: return ("), "{name: unchecked}", "{name: unchecked, labels: {unchecked: 'yes'}}", 1)
	env.Eventually(t, "a Config that admission does not see", func() string { // the apiserver learns of its own webhooks by a watch
		o := parse(t, text)[0]
		if err := suite.Create(ctx, o); err != nil {
			return err.Error()
		}
		t.Cleanup(func() { _ = suite.Delete(ctx, o) })
		return ""
	})
	env.Contains(t, ready(t, parse(t, text)[0], "False"), "spec.explorations[0].healthLua")
	ns := suite.NewNamespace(t)
	i := install(t, operator(ns, [][2]string{{"kettle", "apiVersion: explore.example.com/v1\nkind: Kettle\nmetadata: {name: kettle}\n"}}), nil)
	says(t, i, "its health is not known", "user Config/unchecked", "spec.explorations[0].healthLua")
})
