package ui

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

// run runs kubectl kudo, and fails the test if the exit code is another.
func run(t *testing.T, e *env.Env, code int, args ...string) string {
	t.Helper()
	out, got := e.Kudo(args...)
	if got != code {
		t.Fatalf("kubectl kudo %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

// TestPlane walks through the pages on a real control plane (U13): an Instance is installed, changed, fails and is uninstalled while people look,
// and each page shows it without being loaded again.
func TestPlane(t *testing.T) {
	e, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	s, b := serve(t, e.Kubeconfig, "-n", "default"), open(t)
	b.expected = regexp.MustCompile(`status of 404 .*/instances/default/site`)
	b.enter(s)
	b.shows("There are no Instances in namespace default yet")
	web := sourcetree.Root() + "/docs/examples/web"
	run(t, e, 0, "install", web, "--instance", "site", "--create-service-account", "--yes", "--wait")
	run(t, e, 0, "install", newerVersion(t, web), "--skip-instance")
	b.shows("default/site")
	b.shows("ready")
	b.do(chromedp.Click("th a"), chromedp.WaitVisible("#history"))
	b.shows("instance created")
	b.shows("Deployment site")
	run(t, e, 0, "update", "--instance", "site", "-p", "REPLICAS=2", "--wait")
	b.until("document.getElementById('history').textContent.includes('parameters changed: REPLICAS')")
	b.until("/REPLICAS:\\s*not set\\s*→\\s*2/.test(document.getElementById('history').innerText)")
	b.until("document.getElementById('parameters').textContent.includes('REPLICAS')")
	b.shows("PlanFinished")
	b.checkAccess("an Instance on a control plane")
	checkPreviews(t, e, b)
	checkDrift(t, e, b)
	for _, path := range []string{"/versions", "/catalog", "/catalog/package?repository=examples&name=web", "/shared", "/settings"} {
		b.visit(path)
		b.checkAccess(path + " on a control plane")
	}
	b.shows("valid until")
	b.shows("strict")
	b.visit("/versions")
	b.do(chromedp.Click("a[href='/versions/default/web-1.27.4-0.1.0']"), chromedp.WaitVisible("h2"))
	b.shows("default/site")
	t.Run("clusters", func(t *testing.T) { checkClusters(t, e) })
	checkLog(t, e, b)
	b.visit("/instances/default/site")
	checkActs(t, e)
	b.shows("This Instance was deleted while the page was open.")
}

// checkDrift shows on a control plane what another client has changed, in which field, and what plan deploy sets back.
func checkDrift(t *testing.T, e *env.Env, b *tab) {
	t.Helper()
	cluster, err := e.Connect()
	if err != nil {
		t.Fatal(err)
	}
	page := &corev1.ConfigMap{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "site-page"}, page); err != nil {
		t.Fatal(err)
	}
	page.Data["index.html"] = "changed by mallory"
	if err := cluster.Update(t.Context(), page, client.FieldOwner("mallory")); err != nil {
		t.Fatal(err)
	}
	b.visit("/instances/default/site")
	b.do(chromedp.WaitVisible("#drift-link"))
	b.do(chromedp.Click("#drift-link"), chromedp.WaitVisible("form[action$='/preview'] button"))
	b.shows("Changed by mallory")
	b.shows("changed by mallory")
	b.checkAccess("the drift on a control plane")
	b.do(chromedp.Click("form[action$='/preview'] button"), chromedp.WaitVisible("pre.preview"))
	b.shows("~ ConfigMap default/site-page")
	run(t, e, 0, "plan", "trigger", "--instance", "site", "--name", "deploy", "--wait")
	b.visit("/instances/default/site")
	b.until("!document.getElementById('drift-link')")
}

// checkClusters shows on a control plane the clusters that an inventory has registered, by the published definition of ClusterProfiles.
func checkClusters(t *testing.T, e *env.Env) {
	t.Helper()
	cluster, err := e.Connect()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(corpus.Require(t), "karmada-crds", "multicluster", "multicluster.x-k8s.io_clusterprofiles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	profile := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"spec": map[string]any{"displayName": "Frankfurt", "clusterManager": map[string]any{"name": "inventory"}}}}
	profile.SetNamespace("default")
	profile.SetName("east")
	apitest.Eventually(t, "a cluster can be registered", func() bool { return cluster.Create(t.Context(), profile) == nil })
	s, b := serve(t, e.Kubeconfig, "-n", "default"), open(t)
	b.enter(s)
	b.visit("/clusters")
	b.shows("default/east")
	b.shows("not known")
	profile.Object["status"] = map[string]any{"version": map[string]any{"kubernetes": "v1.36.3"}, "conditions": []any{map[string]any{"type": "ControlPlaneHealthy", "status": "False",
		"reason": "NoAnswer", "message": "no answer for 40 s", "lastTransitionTime": "2026-11-26T12:00:00Z"}}}
	if err := cluster.Status().Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	b.shows("not healthy")
	b.shows("no answer for 40 s")
	b.checkAccess("clusters on a control plane")
	b.do(chromedp.Click("nav a[href='/instances']"), chromedp.WaitVisible("#rows"))
	b.do(chromedp.Click("nav a[href='/clusters']"), chromedp.WaitVisible("#clusters-scroll"))
}

// newerVersion returns the folder of version 0.2.0 of a package that has version 0.1.0.
func newerVersion(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "operator.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "operatorVersion: 0.1.0", "operatorVersion: 0.2.0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkLog shows P22: the page of an Instance shows what the container that failed has written last, as text and without secrets, though the
// page was open before.
func checkLog(t *testing.T, e *env.Env, b *tab) {
	t.Helper()
	const password = "correct-horse-battery"
	b.visit("/instances")
	if got := run(t, e, 3, "install", "testdata/report", "--instance", "broken", "-p", "PASSWORD="+password, "--create-service-account", "--yes", "--wait"); !strings.Contains(got, "| no database") {
		t.Errorf("the command line shows no log: %s", got)
	}
	b.shows("default/broken")
	b.visit("/instances/default/broken")
	b.shows("Last lines of what failed")
	b.until("document.querySelector('pre.log')?.innerText === 'before\\n\\\\x1b[31mlogin with REDACTED\\n<img src=x onerror=window.pwned=1>\\nno database'")
	b.until("/kubectl logs broken-report-\\S+ -c report -n default/.test(document.getElementById('logs').innerText)")
	if got := b.eval("String(window.pwned) + document.documentElement.outerHTML.includes('" + password + "')"); got != "undefinedfalse" {
		t.Errorf("the log is HTML, or has a secret: %s", got)
	}
	b.checkAccess("the log of what failed")
}
