package explore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
)

// cup is the template of a Cup that needs a Secret. Mode is the value of the annotation; there is none if mode is empty.
func cup(mode, namespace, lid string) string {
	annotations := ""
	if mode != "" {
		annotations = ", annotations: {" + v1beta1.DependenciesAnnotation + ": " + mode + "}"
	}
	return "apiVersion: explore.example.com/v1\nkind: Cup\nmetadata: {name: cup" + annotations + "}\nspec: {namespace: " + namespace + ", lid: " + lid + "}\n"
}

// isWritten reports whether the Cup of a namespace exists.
func isWritten(t testing.TB, ns string) bool {
	t.Helper()
	err := suite.Get(ctx, client.ObjectKey{Namespace: ns, Name: "cup"}, object(group, "Cup"))
	if !apierrors.IsNotFound(err) {
		env.Must(t, err)
	}
	return err == nil
}

// finish waits for the Cup of a namespace, and makes it healthy.
func finish(t testing.TB, ns string) {
	t.Helper()
	env.Eventually(t, "the write of the Cup", func() string {
		if !isWritten(t, ns) {
			return "there is no Cup in namespace " + ns
		}
		return ""
	})
	merge(t, live(t, group, "Cup", ns, "cup"), `{"status":{}}`, true)
}

var _ = Describe("What an object depends on and is not there", Ordered, ContinueOnFailure, Label("C63", "dependencies"), func() {
	BeforeEach(func() {
		t := GinkgoTB()
		define(t, kind("Cup", "cups"))
		configure(t, config("cups", group, "Cup", `healthLua: return observedObj.status ~= nil
dependenciesLua: |
  return {{apiVersion = 'v1', kind = 'Secret', namespace = desiredObj.spec.namespace, name = desiredObj.spec.lid}}`))
	})

	It("is named, and the object is written all the same", func() {
		t := GinkgoTB()
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"cup", cup("", ns, "lid")}}), nil)
		says(t, i, "Cup "+ns+"/cup: needs Secret "+ns+"/lid: missing")
		finish(t, ns)
		complete(t, i, 1)
	})

	It("is named by a dry run, which writes nothing", func() {
		t := GinkgoTB()
		ns := suite.NewNamespace(t)
		pack := t.TempDir()
		env.Must(t, os.Mkdir(filepath.Join(pack, "templates"), 0o700))
		for name, text := range map[string]string{
			"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: cups\noperatorVersion: 0.1.0\nkubernetesVersion: 1.30.0\n" +
				"tasks: [{name: cup, kind: Apply, spec: {resources: [cup.yaml]}}]\n" +
				"plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: cup, tasks: [cup]}]}]}}\n",
			"params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
			"templates/cup.yaml": cup("", ns, "lid"),
		} {
			env.Must(t, os.WriteFile(filepath.Join(pack, name), []byte(text), 0o600))
		}
		env.Contains(t, suite.MustKudo(t, 0, "install", pack, "--instance", "i", "-n", ns, "--service-account", "kudo", "--dry-run"),
			"needs Secret "+ns+"/lid: missing")
		if isWritten(t, ns) {
			t.Error("the dry run has written the Cup")
		}
	})

	It("is awaited, and the plan continues when it appears", func() {
		t := GinkgoTB()
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"cup", cup("await", ns, "lid")}}), nil)
		if status := says(t, i, "Cup "+ns+"/cup is not written yet: needs Secret "+ns+"/lid: missing: create it, or remove the annotation "+
			"kudo.dev/dependencies=await"); status != v1beta1.InProgress {
			t.Errorf("the step is %s", status)
		}
		if isWritten(t, ns) {
			t.Error("the Cup is written before what it needs")
		}
		dir := filepath.Join(t.TempDir(), "diag")
		suite.MustKudo(t, 0, "diagnostics", "collect", "i", "-n", ns, "-O", dir)
		found, err := filepath.Glob(filepath.Join(dir, "*", "instance_i", "dependencies.yaml"))
		if env.Must(t, err); len(found) != 1 {
			t.Fatalf("the diagnostics have %d files of dependencies", len(found))
		}
		env.Contains(t, read(t, found[0]), "plan: deploy", "kind: Cup", "mode: await", "kind: Secret", "name: lid", "state: missing")
		create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: lid, namespace: "+ns+"}\n")
		says(t, i, "Cup "+ns+"/cup: is not healthy")
		finish(t, ns)
		complete(t, i, 1)
	})

	It("is asked for anew when a rule has changed", func() {
		t := GinkgoTB()
		ns := suite.NewNamespace(t)
		i := install(t, operator(ns, [][2]string{{"cup", cup("await", ns, "lid")}}), nil)
		says(t, i, "needs Secret "+ns+"/lid: missing")
		merge(t, configOf(t, "cups"), `{"spec":{"explorations":[{"apiVersion":"`+group+`","kind":"Cup","dependenciesLua":"return {}"}]}}`, false)
		complete(t, i, 1)
	})

	It("is asked for anew when a webhook that answered wrongly is repaired, without a change of configuration", func() {
		t := GinkgoTB()
		define(t, kind("Mug", "mugs"))
		ns := suite.NewNamespace(t)
		var lid atomic.Value
		lid.Store("wrong")
		url, bundle := serveHere(t, server.Operations{v1alpha1.ExploreDependencies: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
			return server.Dependencies(v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: ns, Name: lid.Load().(string)}), nil
		}})
		configure(t, strings.ReplaceAll(gadgetHook("[ExploreDependencies]", url, bundle), "gadgets", "mugs"))
		create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: right, namespace: "+ns+"}\n")
		i := install(t, operator(ns, [][2]string{{"mug", strings.ReplaceAll(cup("await", ns, "x"), "Cup", "Mug")}}), nil)
		says(t, i, "needs Secret "+ns+"/wrong: missing")
		lid.Store("right")
		complete(t, i, 1)
	})

	It("ends the plan, with what is missing and what to do", func() {
		t := GinkgoTB()
		for mode, want := range map[string]string{
			"refuse": " is not written: needs Secret NS/lid: missing: create it and run the plan again, or remove the annotation kudo.dev/dependencies=refuse",
			"wait":   `: annotation kudo.dev/dependencies is "wait": use await or refuse, or remove the annotation`,
		} {
			ns := suite.NewNamespace(t)
			i := install(t, operator(ns, [][2]string{{"cup", cup(mode, ns, "lid")}}), nil)
			now, err := suite.Await(ctx, ns, i.Name, env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
			env.Must(t, err)
			st := now.Status.PlanStatus[v1beta1.DeployPlan]
			if want := "Cup " + ns + "/cup" + strings.ReplaceAll(want, "NS", ns); st.Status != v1beta1.FatalError || !strings.Contains(st.Message, want) {
				t.Errorf("deploy is %s: %s, want %s", st.Status, st.Message, want)
			}
			if isWritten(t, ns) {
				t.Errorf("the Cup is written with %s", mode)
			}
		}
	})

	It("is not known where the account may not read, whether it exists or not", func() {
		t := GinkgoTB()
		foreign := suite.NewNamespace(t)
		create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: there, namespace: "+foreign+"}\n")
		var messages []string
		for _, lid := range []string{"there", "absent"} {
			ns := suite.NewNamespace(t)
			i := install(t, operator(ns, [][2]string{{"cup", cup("await", foreign, lid)}}), nil)
			says(t, i, "Cup "+ns+"/cup is not written yet: needs Secret "+foreign+"/"+lid+" (", "is forbidden", "not known: let ServiceAccount "+ns+"/kudo read it")
			now := &v1beta1.Instance{}
			env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(i), now))
			message := now.Status.PlanStatus[v1beta1.DeployPlan].Phases[0].Steps[0].Message
			messages = append(messages, strings.NewReplacer(ns, "NS", lid, "LID").Replace(message))
			if isWritten(t, ns) {
				t.Error("the Cup is written before what it needs is known")
			}
			ns = suite.NewNamespace(t)
			i = install(t, operator(ns, [][2]string{{"cup", cup("refuse", foreign, lid)}}), nil)
			says(t, i, "Cup "+ns+"/cup: needs Secret "+foreign+"/"+lid+" (", "not known")
			finish(t, ns)
			complete(t, i, 1)
		}
		if messages[0] != messages[1] {
			t.Errorf("the message gives away what exists:\n%s", strings.Join(messages, "\n"))
		}
	})
})
