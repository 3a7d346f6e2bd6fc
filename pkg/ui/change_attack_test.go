package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/ui/access"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestChoicesOfForm checks that a value among choices comes back as it is: browsers shorten white space in the text of an option.
func TestChoicesOfForm(t *testing.T) {
	ov, sizes := changeable(), []string{" a  b ", "one\ntwo"}
	ov.Spec.Parameters[3].Enum, ov.Spec.Parameters[3].Default = &sizes, &sizes[0]
	_, body := begin(t, "", changed(), ov).get(t, "/instances/a/one/change")
	expect(t, body, `<option value=" a  b " selected>`, "<option value=\"one\ntwo\">")
}

// TestNamesInForm checks that a parameter has no field if a browser would not send its name as it is, or would send it twice.
func TestNamesInForm(t *testing.T) {
	ov := changeable()
	for _, name := range []string{"VALUE", "A\nB", "C\u202eD"} {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name})
	}
	_, body := begin(t, "", changed(), ov).get(t, "/instances/a/one/change")
	if strings.Count(body, `name="value.VALUE"`) != 1 || strings.Count(body, "its name is used twice or is not plain text") != 3 {
		t.Errorf("the form is\n%s", body)
	}
}

// TestSensitiveFields checks that no sensitive parameter has a field, also one that has no value yet, or whose value a ConfigMap gives.
func TestSensitiveFields(t *testing.T) {
	ov, i := changeable(), changed()
	ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "TOKEN", Sensitive: true}, v1beta1.Parameter{Name: "PIN", Sensitive: true})
	i.Spec.ParametersFrom[0].Keys["PIN"] = "pin"
	_, body := begin(t, "", i, ov).get(t, "/instances/a/one/change")
	expect(t, body, "<strong>TOKEN</strong>", "<strong>PIN</strong>")
	for _, name := range []string{"value.TOKEN", "former.TOKEN", "value.PIN"} {
		if strings.Contains(body, name) {
			t.Errorf("there is a field %s", name)
		}
	}
}

// TestLargeForm checks that a browser can send the form of an Instance with large values: the body of a request is bounded.
func TestLargeForm(t *testing.T) {
	ov, i := changeable(), changed()
	for _, name := range strings.Fields("A B C D E F G H") {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name})
		i.Spec.Parameters[name] = strings.Repeat("\"\n", maxEditable/2)
	}
	_, body := begin(t, "", i, ov).get(t, "/instances/a/one/change")
	if size := len(fieldsOfPage(t, body).Encode()); size > access.MaxBody {
		t.Errorf("the form has %d bytes, and a request may have %d", size, access.MaxBody)
	}
	expect(t, body, "<strong>H</strong>", "too long to be changed here")
}

// fieldsOfPage returns the fields of the form of parameters, as a browser posts them.
func fieldsOfPage(t *testing.T, body string) url.Values {
	t.Helper()
	_, fields, _ := strings.Cut(body, `<input type="hidden" name="action" value="update">`)
	fields, _, _ = strings.Cut(fields, "</form>")
	out := formOf(t, `<form id="act">`+fields)
	for _, values := range out {
		values[0] = strings.ReplaceAll(values[0], "\n", "\r\n")
	}
	return out
}

// TestHangingCluster checks that a preview ends if the cluster does not answer: others wait for its place.
func TestHangingCluster(t *testing.T) {
	r := begin(t, "", changed(), changeable())
	r.computeTime = 100 * time.Millisecond
	left := make(chan struct{})
	t.Cleanup(func() { close(left) })
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "OperatorVersion" && q.Verb == "get" || q.Kind == "ControllerRevision" {
			<-left
		}
		return nil, nil
	})
	for range maxPreviews + 1 {
		status, body := r.post(t, "/instances/a/one/preview", url.Values{"action": {"uninstall"}})
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, "did not answer") {
			t.Errorf("%d\n%s", status, body)
		}
	}
}

// TestUncertainWrite checks that the page does not say that nothing was done if the answer to a write is lost, or says that it came too late.
func TestUncertainWrite(t *testing.T) {
	r := beginActing(t, changed(), changeable())
	_, body := r.post(t, "/instances/a/one/preview", url.Values{"action": {"trigger"}, "plan": {"backup"}})
	form := formOf(t, body)
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "patch" && len(q.Query["dryRun"]) == 0 {
			return nil, apierrors.NewTimeoutError("request did not complete within the allotted duration", 0)
		}
		return nil, nil
	}))
	status, body := r.post(t, "/instances/a/one/act", form)
	if status != http.StatusUnprocessableEntity || strings.Contains(body, "Nothing was done") || !strings.Contains(body, "It is not known whether it was done") {
		t.Errorf("%d\n%s", status, body)
	}
}

// TestHiddenPreview checks that what a preview cannot show cannot be done: the values that it would have to leave out are too many.
func TestHiddenPreview(t *testing.T) {
	i := changed()
	i.Spec.Parameters["PASSWORD"] = strings.Repeat("s3cr3t", maxHidden/6+1)
	status, body := beginActing(t, i, changeable()).post(t, "/instances/a/one/preview", url.Values{"action": {"trigger"}, "plan": {"backup"}})
	if status != http.StatusOK || formOf(t, body) != nil {
		t.Errorf("%d: what is not shown can be done:\n%s", status, body)
	}
	expect(t, body, "--name backup --dry-run<", "cannot be shown")
}

// TestFormerValueInPreview shows U9: no preview shows a value, or the default, of a parameter that was sensitive in a run.
func TestFormerValueInPreview(t *testing.T) {
	template := gen.Template("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-p'}\ndata: {p: '{{ .Params.PASSWORD }}'}\n")
	old := gen.Version("a", "web-0.9.0", gen.Param("VALUE", "x", ""), gen.Param("PASSWORD", "p", ""), gen.Apply("cm", "cm.yaml"), template, gen.Serial("deploy", "cm"))
	run := runOf(1, `{"VALUE":"x","PASSWORD":"s3cr3t-former"}`)
	run.Data.Raw = []byte(strings.Replace(string(run.Data.Raw), "a/web-1.0.0", "a/web-0.9.0", 1))
	between := runOf(2, `{"VALUE":"y"},"sensitive":["PASSWORD"]`)
	now := gen.Version("a", "web-1.0.0", gen.Param("VALUE", "x", ""), gen.Param("PASSWORD", "s3cr3t-default", ""), gen.Apply("cm", "cm.yaml"), template, gen.Serial("deploy", "cm"))
	i := changed()
	i.Spec.ParametersFrom, i.Status.Resources = nil, []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "one-p", UID: "uid-p"}}
	made := &corev1.ConfigMap{ObjectMeta: gen.Meta("a", "one-p"), Data: map[string]string{"p": "other-value"}}
	made.UID, made.Labels = "uid-p", map[string]string{v1beta1.InstanceLabel: "one"}
	r := begin(t, "", i, now, old, made, run, between)
	for _, form := range []url.Values{{"action": {"rollback"}, "run": {"1"}}, {"action": {"update"}, "unset.PASSWORD": {"true"}}} {
		status, body := r.post(t, "/instances/a/one/preview", form)
		if status != http.StatusOK || !strings.Contains(body, ".data.p: other-value") || strings.Contains(body, "s3cr3t") {
			t.Errorf("%v: %d, or a value that was sensitive in a run is sent:\n%s", form, status, body)
		}
	}
}

// TestRetryTwice shows U6: the form of a retry that is posted again does not retry the next run, if that has failed, too.
func TestRetryTwice(t *testing.T) {
	failed := v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.FatalError, Revision: 2, UID: "run-2"}
	i := changed()
	i.Status.PlanStatus["deploy"] = failed
	r := beginActing(t, i, changeable())
	_, body := r.post(t, "/instances/a/one/preview", url.Values{"action": {"retry"}})
	form, live := formOf(t, body), r.liveOf("one")
	failed.Revision, failed.UID = 3, "run-3"
	live.Status.PlanStatus["deploy"] = failed
	r.api.Put(live)
	status, _ := r.post(t, "/instances/a/one/act", form)
	if got := r.liveOf("one").Annotations[v1beta1.RetryAnnotation]; status != http.StatusConflict || got != "" {
		t.Errorf("%d, and the run %q is retried", status, got)
	}
}
