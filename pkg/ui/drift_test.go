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

// TestDriftPage checks that the page lists each object that plan deploy would set back: its fields, the present values, the values that the
// plan writes, and the client that has changed them. The page writes nothing.
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
	dry := 0
	for _, request := range r.api.Requests() {
		verb, of, _ := strings.Cut(request, " ")
		switch {
		case strings.HasSuffix(of, "(dry run)"):
			dry++
		case slices.Contains([]string{"create", "patch", "update", "delete"}, verb) && !strings.Contains(of, "Review "):
			t.Errorf("U5: the page writes: %s", request)
		}
	}
	if dry == 0 {
		t.Errorf("no dry run is asked for: %v", r.api.Requests())
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

// TestDriftUnknown checks an Instance whose plan deploy would fail: the page says what is not known, and does not say that nothing differs.
func TestDriftUnknown(t *testing.T) {
	i, made := drifted("changed-by-mallory")
	broken := changeable()
	gen.Template("first.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ fail \"no license\" }}}\n")(broken)
	gen.Apply("first", "first.yaml")(broken)
	gen.Serial("deploy", "first", "cm")(broken)
	_, body := begin(t, "", i, broken, made).get(t, "/instances/a/one/drift")
	expect(t, body, "Service a/other", "it is not known whether plan deploy changes it", "What is not known", "plan deploy would fail", "no license")
	if strings.Contains(body, "plan deploy does not change it") || strings.Contains(body, "Nothing: each object") {
		t.Error("what is not known is said to be as it should")
	}
	i.Status.Drift = nil
	_, body = begin(t, "", i, broken, made).get(t, "/instances/a/one/drift")
	expect(t, body, "plan deploy would fail")
	if strings.Contains(body, "Nothing: each object") {
		t.Error("an Instance whose plan would fail is said to be without drift")
	}
}

// TestDriftSecrets shows U9: the page masks sensitive values in objects. If there are too many values to search for, it shows no object.
func TestDriftSecrets(t *testing.T) {
	i, made := drifted("login with s3cr3t-inline and s3cr3t-default")
	_, body := begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	if strings.Contains(body, "s3cr3t") || !strings.Contains(body, "changed, not shown") {
		t.Errorf("a sensitive value is sent:\n%s", body)
	}
	i, made = drifted("s3cr3t")
	i.Spec.Parameters["PASSWORD"] = strings.Repeat("s3cr3t", maxHidden/6+1)
	status, body := begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	if status != http.StatusUnprocessableEntity || strings.Contains(body, "s3cr3t") || !strings.Contains(body, "too many sensitive values") {
		t.Errorf("values that are too many to search for: %d\n%s", status, body)
	}
	i, made = drifted(hostile)
	i.Status.Drift[0].Writer, i.Status.Drift[1].Name = hostile, hostile
	_, body = begin(t, "", i, changeable(), made).get(t, "/instances/a/one/drift")
	checkHarmless(t, "the drift", body)
}
