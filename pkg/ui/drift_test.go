package ui

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// drifted is an Instance whose ConfigMap another client has changed, with the ConfigMap as it is now.
func drifted(key string) (*v1beta1.Instance, *corev1.ConfigMap) {
	i := changed()
	i.Spec.ParametersFrom, i.Status.Resources = nil, []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "one-cm-0", UID: "uid-cm"}}
	i.Status.Drift = []v1beta1.ObjectDrift{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "one-cm-0", Fields: []string{".data.key"}, Writer: "mallory", Since: new(metav1.NewTime(time.Unix(1000, 0)))},
		{APIVersion: "v1", Kind: "Service", Namespace: "a", Name: "other", Fields: []string{".spec.type"}, Writer: "trent"},
	}
	made := &corev1.ConfigMap{ObjectMeta: gen.Meta("a", "one-cm-0"), Data: map[string]string{"key": key}}
	made.UID, made.Labels = "uid-cm", map[string]string{v1beta1.InstanceLabel: "one"}
	return i, made
}

// TestDriftPage shows the drift of an Instance with a diff: each object that plan deploy would set back, what stands in it now and what it
// writes, and who has changed it. Nothing is written.
func TestDriftPage(t *testing.T) {
	i, made := drifted("changed-by-mallory")
	r := begin(t, "", i, changeable(), made)
	_, body := r.get(t, "/instances/a/one")
	expect(t, body, `href="/instances/a/one/drift"`)
	status, body := r.get(t, "/instances/a/one/drift")
	if status != http.StatusOK {
		t.Fatalf("%d\n%s", status, body)
	}
	expect(t, body, "ConfigMap a/one-cm-0", "Changed by <strong>mallory</strong>", "1970-01-01", "<code>.data.key</code>", "<del>changed-by-mallory</del>", "<ins>y</ins>",
		"Service a/other", "trent", "plan deploy does not change it", ".spec.type", `action="/instances/a/one/preview"`, `value="deploy"`, "kubectl kudo diff --instance one -n a")
	checkHarmless(t, "the drift", body)
	if got := r.api.Get(made); got.Object["data"].(map[string]any)["key"] != "changed-by-mallory" {
		t.Error("U5: the page has set the object back")
	}
	for _, request := range r.api.Requests() {
		if verb, _, _ := strings.Cut(request, " "); !slices.Contains([]string{"get", "list", "watch"}, strings.ToLower(verb)) && strings.Contains(request, "configmaps/one-cm-0") && !strings.Contains(request, "dryRun") {
			t.Errorf("U5: the page writes: %s", request)
		}
	}
	same, made := drifted("y")
	same.Status.Drift = nil
	r = begin(t, "", same, changeable(), made)
	if _, body := r.get(t, "/instances/a/one"); strings.Contains(body, "/drift") {
		t.Error("an Instance without drift leads to it")
	}
	if _, body = r.get(t, "/instances/a/one/drift"); strings.Contains(body, "<del>") {
		t.Errorf("there is a difference without drift:\n%s", body)
	}
	if status, body := r.get(t, "/instances/a/none/drift"); status != http.StatusNotFound || !strings.Contains(body, "instance a/none does not exist") {
		t.Errorf("an Instance that does not exist: %d", status)
	}
	if status, _ := begin(t, "b", changed(), changeable()).get(t, "/instances/a/one/drift"); status != http.StatusNotFound {
		t.Errorf("an Instance of another namespace: %d", status)
	}
}

// TestDriftSecrets shows U9: what stands in an object is masked where it is a sensitive value, and too many of them show nothing.
func TestDriftSecrets(t *testing.T) {
	i, made := drifted("login with s3cr3t-inline and s3cr3t-default")
	_, body := begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	if strings.Contains(body, "s3cr3t") || !strings.Contains(body, "changed, not shown") {
		t.Errorf("a sensitive value is sent:\n%s", body)
	}
	i, made = drifted("s3cr3t")
	i.Spec.Parameters["PASSWORD"] = strings.Repeat("s3cr3t", maxHidden/6+1)
	status, body := begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	if status == http.StatusOK || strings.Contains(body, "s3cr3t") || !strings.Contains(body, "too many sensitive values") {
		t.Errorf("values that are too many to search for: %d\n%s", status, body)
	}
	i, made = drifted(hostile)
	i.Status.Drift[0].Writer, i.Status.Drift[1].Name = hostile, hostile
	_, body = begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	checkHarmless(t, "the drift", body)
}
