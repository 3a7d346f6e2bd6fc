package ui

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
)

// expect fails unless a page has all texts, in this order.
func expect(t *testing.T, body string, texts ...string) {
	t.Helper()
	at := 0
	for _, want := range texts {
		n := strings.Index(body[at:], want)
		if n < 0 {
			t.Fatalf("%q is not there, or not behind what comes before it:\n%s", want, body)
		}
		at += n
	}
}

// TestInstancePage shows the page of an Instance: conditions, plan tree with culprit, queue, drift, parameters, and commands to copy.
func TestInstancePage(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) {
		fail(i)
		i.Spec.Parameters = map[string]string{"REPLICAS": "3"}
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "update", Cause: "parameters changed: REPLICAS", RequestedBy: "ann with kubectl kudo update"}}
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "web"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "gone"}}
		i.Status.Drift = []v1beta1.ObjectDrift{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "web", Fields: []string{".spec.replicas"}, Writer: "kubectl-scale"}}
	})
	deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(2)},
		"status": map[string]any{"replicas": int64(2), "updatedReplicas": int64(1), "observedGeneration": int64(1)}}}
	deployment.SetNamespace("a")
	deployment.SetName("web")
	deployment.SetLabels(map[string]string{v1beta1.InstanceLabel: "one", v1beta1.HeritageLabel: v1beta1.Heritage})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-x", Labels: deployment.GetLabels()}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	r := begin(t, "", i, version("a", "web-1.0.0", nil), deployment, pod)
	next, shown := r.events(t, "/instances/a/one", ""), map[string]string{}
	for !strings.Contains(shown["objects"], "web-x") || !strings.Contains(shown["objects"], "missing") || !strings.Contains(shown["objects"], "replicas updated") ||
		!strings.Contains(shown["history"], "No run is recorded") {
		parts, _ := next()
		for id, html := range parts {
			shown[id] = html
		}
	}
	expect(t, shown["state"], "✗", "failed", "Job report: container main of pod report-x ended with exit code 7")
	expect(t, shown["about"], "/versions/a/web-1.0.0", "kubectl kudo plan status --instance one -n a --watch", "kubectl kudo plan retry --instance one -n a --dry-run",
		"kubectl kudo diff --instance one -n a", "Ready", "Stalled")
	expect(t, shown["plans"], "backup", "not run", "deploy", `id="plan-report" open`, "main", "prepare", "job", "Job report", "Pod report-x", "Container main", "ended with exit code 7", "Queue",
		"parameters changed: REPLICAS; by ann with kubectl kudo update")
	expect(t, shown["objects"], "missing", "ConfigMap gone", "in progress", "Deployment web", "by kubectl-scale", ".spec.replicas")
	expect(t, shown["parameters"], "PASSWORD", "(sensitive)", "default", "REPLICAS", "3", "Instance")
	expect(t, shown["events"], "No events")
	expect(t, shown["history"], "No run is recorded")
}

// TestVersionsPage shows the pages of OperatorVersions: install plans, and the Instances that run them, or are about to.
func TestVersionsPage(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil), instance("b", "two", func(i *v1beta1.Instance) {
		i.Spec.OperatorVersion.Name, i.Spec.OperatorVersion.Namespace = "web-2.0.0", "a"
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "a/web-1.0.0"}
	}), version("a", "web-1.0.0", nil), version("a", "web-2.0.0", func(ov *v1beta1.OperatorVersion) {
		ov.Spec.InstallPlan = "install"
		ov.Spec.Plans["install"] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "crds", Steps: []v1beta1.Step{{Name: "apply"}}}}}
		ov.Status.Conditions = []metav1.Condition{{Type: v1beta1.StalledCondition, Status: "True"}}
		ov.Status.AggregatedStatus.Message = "CRD books.x.io differs"
		ov.Spec.Provenance = &v1beta1.Provenance{Source: "https://example.org/web.tgz", Signatures: []string{"s"}}
	}))
	_, body := r.get(t, "/versions")
	expect(t, body, "failed", "a/web-2.0.0", "install", "<td>1</td>", "CRD books.x.io differs", "installed", "a/web-1.0.0", "none", "<td>2</td>")
	status, body := r.get(t, "/versions/a/web-2.0.0")
	expect(t, body, "CRD books.x.io differs", "not verified</span>, 1 signature", "https://example.org/web.tgz", "Install plan", "install", "Instances that run it", "/instances/b/two", "PASSWORD", "(sensitive)")
	if status != http.StatusOK || strings.Contains(body, `href="https://example.org`) {
		t.Errorf("%d, or the source of a package is a link", status)
	}
	if status, body := r.get(t, "/versions/a/none"); status != http.StatusNotFound || !strings.Contains(body, "does not exist") {
		t.Errorf("an OperatorVersion that does not exist: %d", status)
	}
	if _, body := r.get(t, "/versions/a/web-1.0.0"); !strings.Contains(body, "not signed") {
		t.Error("a package without a signature is not said to have none")
	}
}

// TestVersionsOfNamespace shows U10: pages of OperatorVersions say which Instances they count, that those are not known, and why.
func TestVersionsOfNamespace(t *testing.T) {
	refuse := func(kind string) apitest.Hook {
		return func(q apitest.Request) (any, error) {
			if q.Kind == kind {
				return nil, apierrors.NewForbidden(v1beta1.Resource(kind), "", errors.New("ann may not"))
			}
			return nil, nil
		}
	}
	for _, tc := range []struct {
		reason, namespace, refused string
		list, one                  []string
	}{
		{"all namespaces", "", "", []string{">Instances<", "<td>1</td>"}, []string{"Instances that run it", "/instances/a/one"}},
		{"a namespace", "a", "", []string{">Instances in namespace a<", "<td>1</td>"}, []string{"Instances in namespace a that run it", "/instances/a/one"}},
		{"no right for Instances", "a", "Instance", []string{">Instances in namespace a<", "<td>not known</td>"}, []string{"Instances in namespace a that run it", "Not known."}},
		{"no right for OperatorVersions", "a", "OperatorVersion", []string{"This cannot be shown", "ann may not"}, []string{"This cannot be shown", "ann may not"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := apitest.Start(t, instance("a", "one", nil), version("a", "web-1.0.0", nil))
			api.Before(refuse(tc.refused))
			r := beginOn(t, api, tc.namespace)
			r.await(t, "all is known that can be", func() bool { return r.instances.Status().State != loading && r.versions.Status().State != loading })
			_, list := r.get(t, "/versions")
			expect(t, list, tc.list...)
			status, one := r.get(t, "/versions/a/web-1.0.0")
			expect(t, one, tc.one...)
			if status != http.StatusOK || strings.Contains(one, "Loading") {
				t.Errorf("%d: %s", status, one)
			}
		})
	}
	if _, body := begin(t, "lab").get(t, "/versions"); !strings.Contains(body, "There are no OperatorVersions in namespace lab yet.") {
		t.Errorf("of a namespace without OperatorVersions, the page says %s", body)
	}
}

// TestInstallState: an OperatorVersion has one state, and a status of an older generation says nothing of the newest one.
func TestInstallState(t *testing.T) {
	condition := func(kind string) []metav1.Condition { return []metav1.Condition{{Type: kind, Status: "True"}} }
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.OperatorVersion)
		want   state
	}{
		{"it has no install plan", func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan, ov.Generation = "", 2 }, versionInstalled},
		{"the manager has not seen it", func(*v1beta1.OperatorVersion) {}, versionInstalling},
		{"it is installed", func(ov *v1beta1.OperatorVersion) { ov.Status.Conditions = condition(v1beta1.InstalledCondition) }, versionInstalled},
		{"it was installed before its spec was changed", func(ov *v1beta1.OperatorVersion) {
			ov.Status.Conditions, ov.Generation, ov.Status.ObservedGeneration = condition(v1beta1.InstalledCondition), 2, 1
		}, versionWaiting},
		{"it had failed before its spec was changed", func(ov *v1beta1.OperatorVersion) {
			ov.Status.Conditions, ov.Generation, ov.Status.ObservedGeneration = condition(v1beta1.StalledCondition), 2, 1
		}, versionWaiting},
		{"it has failed", func(ov *v1beta1.OperatorVersion) { ov.Status.Conditions = condition(v1beta1.StalledCondition) }, versionFailed},
		{"others have changed it", func(ov *v1beta1.OperatorVersion) { ov.Status.Drift = make([]v1beta1.ObjectDrift, 1) }, versionDrifted},
	} {
		ov := version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = "install"; tc.change(ov) })
		if got, _ := installState(ov); got != tc.want {
			t.Errorf("%s: it is %s, want %s", tc.reason, got.Word, tc.want.Word)
		}
	}
}

// TestSharedPage shows the page of shared objects: a table of holders, the same as a picture, and what an uninstall would do.
func TestSharedPage(t *testing.T) {
	installation := func(name string, held ...v1beta1.HeldResource) *v1beta1.Installation {
		i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InstallationSpec{Subject: v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "a", Name: name}}}
		i.Status.Resources = held
		return i
	}
	held := func(kind, name string, state v1beta1.HoldState) v1beta1.HeldResource {
		return v1beta1.HeldResource{APIVersion: "x/v1", Kind: kind, Name: name, State: state}
	}
	many := make([]v1beta1.HeldResource, 0, maxDrawn)
	for n := range maxDrawn {
		many = append(many, held("Z", fmt.Sprintf("z-%02d", n), v1beta1.HoldCreated))
	}
	r := begin(t, "", installation("one", append(many, held("CRD", "shared", v1beta1.HoldCreated), held("Role", "foreign", v1beta1.HoldExisting))...),
		installation("two", held("CRD", "shared", v1beta1.HoldMismatch)))
	_, body := r.get(t, "/shared")
	expect(t, body, "<svg", "≠ CRD shared", "</svg>", "The picture leaves out 2 objects", "differs", "CRD shared", "/versions/a/one", "Created", "/versions/a/two", "Mismatch",
		"stays as long as one of its holders does", "Role foreign", "stays: kudo has not made it", "Z z-00", "is deleted with its holder")
	if strings.Contains(body, "whole cluster") {
		t.Error("a page of all namespaces is said to show more than others")
	}
	if _, body := begin(t, "lab").get(t, "/shared"); !strings.Contains(body, "those of the whole cluster, and not only of namespace lab") {
		t.Error("shared objects are not said to be those of the whole cluster")
	}
	svg := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindString(body)
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || strings.Contains(svg, "style=") {
		t.Errorf("the picture is no plain SVG: %v", err)
	}
}

// TestSettingsPage shows the page of settings: mode, versions, and until when the webhooks are trusted; also what cannot be read.
func TestSettingsPage(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	crd.SetName("instances.kudo.dev")
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kudo-manager"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kudo-system", Name: "kudo-manager"}}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kudo-system", Name: settings.ConfigMap}, Data: map[string]string{settings.ModeKey: "privileged"}}
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kudo-manager-instance-validation-webhook-config"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte(oldAuthority)}}}}
	r := begin(t, "", crd, binding, config, hooks)
	_, body := r.get(t, "/settings")
	expect(t, body, "this command", "v1", "mode", "privileged", "whoever may create Instances is an administrator", "not required", "certificate authority of the webhooks", "not known")
	none := begin(t, "")
	if _, body := none.get(t, "/settings"); !strings.Contains(body, "kudo is not installed on this cluster") {
		t.Error("nothing says that kudo is not installed")
	}
}

// oldAuthority is no certificate.
const oldAuthority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

// TestPublic: what needs no session is the page that opens one, and three files.
func TestPublic(t *testing.T) {
	r := begin(t, "")
	for path, want := range map[string]string{"/session": `id="enter" method="post" action="/session"`, "/session/page.js": "'use strict'", "/session/style.css": "color-scheme", "/session/icon.svg": "<svg"} {
		request, _ := http.NewRequest(http.MethodGet, path, nil)
		if body := recorded(r.Public(), request); !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
	if status, body := r.get(t, "/nothing"); status != http.StatusNotFound || !strings.Contains(body, "There is no such page.") {
		t.Errorf("a page that does not exist: %d", status)
	}
	if response, err := http.Post(r.url+"/instances/a/one", "", nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("U5: a POST is answered with %v (%v)", response.StatusCode, err)
	}
}

// TestScript shows U2 and U7: the script is small, and needs neither eval nor what the Content-Security-Policy refuses; templates have no
// inline script or style.
func TestScript(t *testing.T) {
	script, err := files.ReadFile("assets/page.js")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(script), "\n"); n > 150 {
		t.Errorf("the script has %d lines", n)
	}
	for _, word := range []string{"eval", "Function(", "document.write", "setInterval(fetch", "http:", "https:", "insertAdjacentHTML", "XMLHttpRequest"} {
		if strings.Contains(string(script), word) {
			t.Errorf("the script has %s", word)
		}
	}
	names, err := files.ReadDir("templates")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := files.ReadFile("templates/" + name.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`(?i)\son\w+=|\sstyle=|<style|javascript:|https?:|<script>|<iframe`).FindString(string(text)); found != "" {
			t.Errorf("%s has %q", name.Name(), found)
		}
	}
}

// TestChangesBetween: a parameter that was sensitive in any run, or is so now, is masked in all; one whose definition is not known, too.
func TestChangesBetween(t *testing.T) {
	sub := subject{Version: version("a", "web-1.0.0", nil)}
	before := &history.Entry{Parameters: map[string]string{"REPLICAS": "1", "PASSWORD": "old", "REMOVED": "x"}}
	after := &history.Entry{Parameters: map[string]string{"REPLICAS": "2", "PASSWORD": "new"}}
	want := []parameterChange{{"PASSWORD", "(sensitive)", "(sensitive)"}, {"REMOVED", "(sensitive)", "not set"}, {"REPLICAS", "1", "2"}}
	if got := changesBetween(before, after, sub); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	want[2] = parameterChange{"REPLICAS", "(sensitive)", "(sensitive)"}
	sub.sensitive = []string{"REPLICAS"} // its value came from a Secret in some run
	if got := changesBetween(before, after, sub); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := changesBetween(before, before, sub); len(got) > 0 {
		t.Errorf("equal runs differ in %v", got)
	}
}
