package ui

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// post sends a form and returns the status and the body of the page.
func (r *running) post(t testing.TB, path string, form url.Values) (int, string) {
	t.Helper()
	response, err := http.PostForm(r.url+path, form)
	return readPage(t, response, err)
}

// changeable is an OperatorVersion with a template, and parameters of all kinds that the form knows.
func changeable() *v1beta1.OperatorVersion {
	fixed, sizes := true, []string{"small", "large"}
	ov := gen.Version("a", "web-1.0.0", gen.Param("VALUE", "x", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"), gen.Serial("backup", "cm"))
	ov.Spec.Operator.Name, ov.Spec.Version = "web", "1.0.0"
	ov.Spec.Parameters = append(ov.Spec.Parameters,
		v1beta1.Parameter{Name: "PASSWORD", Sensitive: true, Default: new("s3cr3t-default")},
		v1beta1.Parameter{Name: "CLASS", Immutable: &fixed, Default: new("fast")},
		v1beta1.Parameter{Name: "SIZE", Enum: &sizes, Default: new("small")},
		v1beta1.Parameter{Name: "TLS", Type: v1beta1.BooleanType, Default: new("false")},
		v1beta1.Parameter{Name: "COUNT", Type: v1beta1.IntegerType, Default: new("1")},
		v1beta1.Parameter{Name: "TEXT", Description: "a text", Default: new("\none\ntwo")},
		v1beta1.Parameter{Name: "BELL", Default: new("a\ab")},
		v1beta1.Parameter{Name: "HOST"}, v1beta1.Parameter{Name: "LOGIN"})
	return ov
}

// otherVersion is another version of its operator.
func otherVersion(version string) *v1beta1.OperatorVersion {
	ov := changeable()
	ov.Name, ov.Spec.Version = "web-"+version, version
	return ov
}

// changed is an Instance of it, with two runs and a source.
func changed() *v1beta1.Instance {
	return instance("a", "one", func(i *v1beta1.Instance) {
		i.Spec.Parameters = map[string]string{"VALUE": "y", "LOGIN": "ann:s3cr3t-inline", "PASSWORD": "s3cr3t-inline"}
		i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "ConfigMap", Name: "hosts", Keys: map[string]string{"HOST": "host"}}}
		i.Status.Baseline = &v1beta1.Baseline{Revision: 2, OperatorVersion: "a/web-1.0.0"}
		i.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.Complete, Revision: 2, UID: "run-2"}
	})
}

// runOf is the record of a run of Instance one.
func runOf(revision int64, parameters string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: history.Name("one", revision), Labels: map[string]string{v1beta1.InstanceLabel: "one"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "one", UID: "uid-one", Controller: new(true)}}}, Revision: revision,
		Data: runtime.RawExtension{Raw: []byte(`{"plan":"deploy","cause":"c","operatorVersion":"a/web-1.0.0","parameters":` + parameters + `}`)}}
}

// TestChangePage shows the forms of an Instance: what can be changed, what cannot and why, and no sensitive value.
func TestChangePage(t *testing.T) {
	i := changed()
	i.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "x"}}
	elsewhere, other := otherVersion("3.0.0"), otherVersion("4.0.0")
	elsewhere.Namespace, other.Spec.Operator.Name = "b", "db"
	r := begin(t, "", i, changeable(), otherVersion("0.9.0"), otherVersion("1.1.0"), elsewhere, other, runOf(1, `{"VALUE":"x"}`), runOf(2, `{"VALUE":"y"}`))
	status, body := r.get(t, "/instances/a/one/change")
	if status != http.StatusOK {
		t.Fatalf("the status is %d", status)
	}
	expect(t, body, `data-seen=""`, "Back to the Instance", "Nothing is changed by this page",
		`name="value.VALUE"`, "\ny</textarea>", "set back to its default",
		"<strong>PASSWORD</strong> <code>(sensitive)</code>", "sensitive: change it by a Secret",
		"<strong>CLASS</strong> <code>fast</code>", "immutable",
		`<select id="value-3" name="value.SIZE">`, `<option value="small" selected>small</option>`, `<option value="large">large</option>`,
		`<select id="value-4" name="value.TLS">`, `<option value="true">true</option>`, `<option value="false" selected>false</option>`,
		`name="value.TEXT" rows="3" aria-describedby="about-6">`+"\n\none\ntwo</textarea>", `id="about-6">a text`,
		"<strong>BELL</strong>", "control characters", "<strong>HOST</strong>", "it comes from ConfigMap hosts",
		"<strong>LOGIN</strong>", "has a sensitive value in it",
		"kubectl kudo update --instance one -n a -p NAME=VALUE --dry-run",
		`<option value="backup">backup</option>`, `<option value="deploy">deploy</option>`, "Others have changed objects: 1", `<option value="2">2: deploy`, `<option value="1">1: deploy`, "keep-claims")
	if strings.Contains(body, "s3cr3t") || strings.Contains(body, "Preview the retry") {
		t.Errorf("a sensitive value is sent, or a plan is said to have failed:\n%s", body)
	}
	expect(t, body, `<option value="web-1.1.0">web-1.1.0</option><option value="web-0.9.0">web-0.9.0 (lower)</option></select>`,
		"kubectl kudo upgrade --instance one -n a PACKAGE --dry-run")
	_, body = r.get(t, "/instances/a/one")
	expect(t, body, `href="/instances/a/one/change"`)
	i.Spec.ParametersFrom = append(i.Spec.ParametersFrom, v1beta1.ParametersSource{Kind: "Secret", Name: "all"})
	r.api.Put(i)
	_, body = r.get(t, "/instances/a/one/change")
	expect(t, body, "VALUE", "(Instance)", "SIZE", "(default, unless Secret all gives it)", "<strong>HOST</strong>", "it comes from ConfigMap hosts")

	fail(i)
	i.DeletionTimestamp, i.Finalizers = &metav1.Time{}, nil
	form := changeForm{}
	(&target{subject: subject{Instance: i}}).fill(&form)
	if form.Failed != "report" || len(form.Plans) != 0 || len(form.Fields) != 0 {
		t.Errorf("an Instance that has failed, without its OperatorVersion, has the form %+v", form)
	}
}

// TestChangePageStates shows U10: an Instance that does not exist, one of another namespace, and one whose history may not be read.
func TestChangePageStates(t *testing.T) {
	r := begin(t, "a", changed(), changeable(), instance("b", "two", nil))
	for path, want := range map[string]string{"/instances/a/none/change": "does not exist", "/instances/b/two/change": "started for namespace a only"} {
		if status, body := r.get(t, path); status != http.StatusNotFound || !strings.Contains(body, want) || strings.Contains(body, "<form") {
			t.Errorf("%s: %d, no %q, or there is a form", path, status, want)
		}
	}
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "ControllerRevision" {
			return nil, apierrors.NewForbidden(v1beta1.Resource(q.Kind), "", errors.New("no"))
		}
		return nil, nil
	})
	for kind, tc := range map[string]struct {
		err  error
		want int
	}{
		"forbidden": {apierrors.NewForbidden(v1beta1.Resource("instances"), "one", errors.New("no")), http.StatusForbidden},
		"broken":    {apierrors.NewInternalError(errors.New("etcd")), http.StatusBadGateway},
	} {
		failing := begin(t, "a", changed(), changeable())
		failing.api.Before(func(q apitest.Request) (any, error) {
			if q.Kind == "Instance" && q.Verb == "get" {
				return nil, tc.err
			}
			return nil, nil
		})
		if status, body := failing.get(t, "/instances/a/one/change"); status != tc.want || strings.Contains(body, "<form") {
			t.Errorf("%s: %d, want %d", kind, status, tc.want)
		}
	}
	if got := statusOf(errLate); got != http.StatusGatewayTimeout {
		t.Errorf("a cluster that does not answer: %d", got)
	}
	status, body := r.get(t, "/instances/a/one/change")
	if status != http.StatusOK || strings.Contains(body, `name="value.`) || !strings.Contains(body, "while the history of the Instance is not known") {
		t.Errorf("without the history, a parameter can be changed: %d\n%s", status, body)
	}
}

// TestPreviewPage shows U5 and U6: each form gives the preview of its action with the command that does it, and nothing is written.
func TestPreviewPage(t *testing.T) {
	i := changed()
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "one-cm-0"}}
	hosts := &corev1.ConfigMap{ObjectMeta: gen.Meta("a", "hosts"), Data: map[string]string{"host": "h"}}
	secret := otherVersion("1.1.0")
	secret.Spec.Parameters = append(secret.Spec.Parameters, v1beta1.Parameter{Name: "TOKEN", Sensitive: true, Default: new("s3cr3t-of-the-next")})
	other, ending := otherVersion("1.0.0"), otherVersion("2.0.0")
	other.Name, other.Spec.Operator.Name = "db-1.0.0", "db"
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1beta1.OperatorVersionFinalizer}
	r := begin(t, "", i, changeable(), secret, otherVersion("0.9.0"), other, ending, hosts, runOf(1, `{"VALUE":"x"}`), runOf(2, `{"VALUE":"y"}`))
	var written atomic.Int32
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind != "" && !slices.Contains([]string{"get", "list", "watch"}, q.Verb) && !strings.Contains(strings.ToLower(q.Kind), "review") && len(q.Query["dryRun"]) == 0 {
			written.Add(1)
			t.Errorf("U5: it writes: %s", q)
		}
		return nil, nil
	})
	const path = "/instances/a/one/preview"
	for _, tc := range []struct {
		reason string
		form   url.Values
		want   []string
	}{
		{"a new value", url.Values{"action": {"update"}, "value.VALUE": {"z"}, "former.VALUE": {"y"}, "value.SIZE": {"small"}, "former.SIZE": {"small"}},
			[]string{"Nothing was changed", "kubectl kudo update --instance one -n a -p VALUE=z", "update of Instance a/one", "plan 1: deploy", "sha256:"}},
		{"several lines, as browsers send them", url.Values{"action": {"update"}, "value.TEXT": {"one\r\nthree"}, "former.TEXT": {"one\r\ntwo"}},
			[]string{"-p &#39;TEXT=one\nthree&#39;"}},
		{"a default", url.Values{"action": {"update"}, "unset.VALUE": {"true"}, "value.VALUE": {"y"}, "former.VALUE": {"y"}}, []string{"--unset VALUE"}},
		{"a plan", url.Values{"action": {"trigger"}, "plan": {"backup"}}, []string{"exactly what is shown", "kubectl kudo plan trigger --instance one -n a --name backup --expect sha256:", "backup (asked for"}},
		{"drift", url.Values{"action": {"trigger"}, "plan": {"deploy"}}, []string{"--name deploy", "trigger of Instance a/one"}},
		{"an earlier run", url.Values{"action": {"rollback"}, "run": {"1"}}, []string{"kubectl kudo rollback --instance one -n a --to-revision 1", "rollback of Instance a/one"}},
		{"a higher version", url.Values{"action": {"upgrade"}, "version": {"web-1.1.0"}},
			[]string{"kubectl kudo upgrade --instance one -n a operatorversion/web-1.1.0 --in-cluster --expect sha256:", "upgrade of Instance a/one"}},
		{"a lower version", url.Values{"action": {"upgrade"}, "version": {"web-0.9.0"}}, []string{"operatorversion/web-0.9.0 --in-cluster --allow-downgrade"}},
		{"a deletion", url.Values{"action": {"uninstall"}}, []string{"kubectl kudo uninstall --instance one -n a --expect ", "uninstall of Instance a/one"}},
		{"a deletion that keeps claims", url.Values{"action": {"uninstall"}, "keep-claims": {"true"}}, []string{"--keep-claims"}},
	} {
		status, body := r.post(t, path, tc.form)
		if status != http.StatusOK {
			t.Errorf("%s: %d\n%s", tc.reason, status, body)
			continue
		}
		expect(t, body, tc.want...)
		checkHarmless(t, tc.reason, body)
		if strings.Contains(body, "s3cr3t") {
			t.Errorf("%s: U9: a sensitive value is sent", tc.reason)
		}
	}
	for _, tc := range []struct {
		reason, path string
		form         url.Values
		want         string
	}{
		{"no action", path, nil, "names no action"},
		{"nothing is changed", path, url.Values{"action": {"update"}, "value.VALUE": {"y"}, "former.VALUE": {"y"}}, "no parameter is changed"},
		{"another user has changed it to what the form has", path, url.Values{"action": {"update"}, "value.VALUE": {"old"}, "former.VALUE": {"old"}}, "no parameter is changed"},
		{"a value without the one that the form had", path, url.Values{"action": {"update"}, "value.VALUE": {"z"}}, "no parameter is changed"},
		{"a value of another type", path, url.Values{"action": {"update"}, "value.COUNT": {"many"}, "former.COUNT": {"1"}}, "COUNT"},
		{"a parameter that does not exist", path, url.Values{"action": {"update"}, "value.<script>": {"1"}, "former.<script>": {"2"}}, "is not defined"},
		{"control characters", path, url.Values{"action": {"update"}, "value.VALUE": {"a\x1b[2J"}, "former.VALUE": {"y"}}, "has control characters"},
		{"a sensitive parameter", path, url.Values{"action": {"update"}, "value.PASSWORD": {"x"}, "former.PASSWORD": {"y"}}, "parameter PASSWORD is sensitive"},
		{"a fixed parameter", path, url.Values{"action": {"update"}, "value.CLASS": {"slow"}, "former.CLASS": {"fast"}}, "immutable"},
		{"a plan that does not exist", path, url.Values{"action": {"trigger"}, "plan": {"<img>"}}, "does not exist"},
		{"a retry of a plan that has not failed", path, url.Values{"action": {"retry"}}, "has not failed"},
		{"a version that does not exist", path, url.Values{"action": {"upgrade"}, "version": {"<img>"}}, "&lt;img&gt; does not exist or is being deleted"},
		{"a version with a path", path, url.Values{"action": {"upgrade"}, "version": {"../../b/operatorversions/x"}}, "does not exist or is being deleted"},
		{"no version", path, url.Values{"action": {"upgrade"}}, "does not exist or is being deleted"},
		{"the version that it has", path, url.Values{"action": {"upgrade"}, "version": {"web-1.0.0"}}, "already"},
		{"another operator", path, url.Values{"action": {"upgrade"}, "version": {"db-1.0.0"}}, "cannot be upgraded to operator db"},
		{"a version that is being deleted", path, url.Values{"action": {"upgrade"}, "version": {"web-2.0.0"}}, "is being deleted"},
		{"a run that does not exist", path, url.Values{"action": {"rollback"}, "run": {"9"}}, "no such run"},
		{"an Instance that does not exist", "/instances/a/none/preview", url.Values{"action": {"retry"}}, "does not exist"},
	} {
		status, body := r.post(t, tc.path, tc.form)
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d, no %q in\n%s", tc.reason, status, tc.want, body)
		}
		checkHarmless(t, tc.reason, body)
	}
	if status, _ := r.get(t, path); status != http.StatusNotFound {
		t.Errorf("U9: a preview is answered to a GET, whose values stand in the address: %d", status)
	}
	if written.Load() > 0 {
		t.Error("U5: previews write")
	}
}

// TestPreviewBound checks that no more previews are computed at a time than maxPreviews, and that one whose browser has left is not begun.
func TestPreviewBound(t *testing.T) {
	r := begin(t, "", changed(), changeable())
	var now, most atomic.Int32
	ended := make(chan struct{})
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "get" {
			most.Store(max(most.Load(), now.Add(1)))
			<-ended
			now.Add(-1)
		}
		return nil, nil
	})
	const asked = 2 * maxPreviews
	done := make(chan int, asked)
	for range asked {
		go func() {
			status, _ := r.post(t, "/instances/a/one/preview", url.Values{"action": {"uninstall"}})
			done <- status
		}()
	}
	r.await(t, "as many are computed as may be", func() bool { return now.Load() == maxPreviews })
	close(ended)
	for range asked {
		if status := <-done; status != http.StatusOK {
			t.Errorf("the status is %d", status)
		}
	}
	if most.Load() > maxPreviews {
		t.Errorf("%d previews are computed at a time", most.Load())
	}
}
