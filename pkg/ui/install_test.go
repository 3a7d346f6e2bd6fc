package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestInstallPage shows the form of a new Instance: a field for each parameter that can be given here, immutable ones too, and no sensitive
// value.
func TestInstallPage(t *testing.T) {
	ending := otherVersion("2.0.0")
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1beta1.OperatorVersionFinalizer}
	r := begin(t, "", changeable(), ending)
	_, body := r.get(t, "/versions/a/web-1.0.0")
	expect(t, body, `href="/versions/a/web-1.0.0/install"`)
	status, body := r.get(t, "/versions/a/web-1.0.0/install")
	if status != http.StatusOK {
		t.Fatalf("the status is %d", status)
	}
	expect(t, body, `data-seen=""`, "Nothing is changed by this page", `action="/versions/a/web-1.0.0/preview"`, `name="instance" value="web-instance"`,
		`name="account"`, `name="value.VALUE"`, "<strong>PASSWORD</strong> <code>(sensitive)</code>", "sensitive: give it by a Secret, or by install -P FILE",
		"(default, cannot be changed later)", `name="value.CLASS"`, "\nfast</textarea>", `<select id="value-3" name="value.SIZE">`, "<strong>BELL</strong>", "give it by install -P FILE",
		"kubectl kudo install --instance web-instance -n a operatorversion/web-1.0.0 --in-cluster --create-service-account")
	if strings.Contains(body, "s3cr3t") || strings.Contains(body, "set back to its default") {
		t.Errorf("a sensitive value is sent, or a value can be set back:\n%s", body)
	}
	checkHarmless(t, "the form", body)
	needy := changeable()
	needy.Spec.Parameters = append(needy.Spec.Parameters, v1beta1.Parameter{Name: "ADDRESS", Required: new(true)})
	_, body = begin(t, "", needy).get(t, "/versions/a/web-1.0.0/install")
	expect(t, body, "(required)", `name="value.ADDRESS" rows="1" required>`)
	needy.Spec.Parameters = append(needy.Spec.Parameters, v1beta1.Parameter{Name: "TOKEN", Required: new(true), Sensitive: true})
	_, body = begin(t, "", needy).get(t, "/versions/a/web-1.0.0/install")
	expect(t, body, "needs values that have no field here: TOKEN.", "--in-cluster --create-service-account -P FILE")
	if strings.Contains(body, "<form") {
		t.Error("there is a form that cannot have all that the package needs")
	}
	narrow := begin(t, "a", changeable(), gen.Version("b", "x"))
	for path, want := range map[string]string{"/versions/a/none/install": "operatorversion a/none does not exist or is being deleted", "/versions/b/x/install": "started for namespace a only"} {
		if status, body := narrow.get(t, path); status != http.StatusNotFound || !strings.Contains(body, want) || strings.Contains(body, "<form") {
			t.Errorf("%s: %d, no %q, or there is a form", path, status, want)
		}
	}
	if status, body := r.get(t, "/versions/a/web-2.0.0/install"); status != http.StatusNotFound || strings.Contains(body, "<form") {
		t.Errorf("an OperatorVersion that is being deleted: %d", status)
	}
	narrow.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "OperatorVersion" && q.Verb == "list" {
			return nil, apierrors.NewForbidden(v1beta1.Resource("operatorversions"), "", nil)
		}
		return nil, nil
	})
	if status, body := narrow.get(t, "/versions/a/web-1.0.0/install"); status != http.StatusForbidden || strings.Contains(body, "<form") {
		t.Errorf("without the right to list OperatorVersions: %d", status)
	}
}

// TestInstall shows U4, U5 and U6: the preview of a new Instance with its command, and the button that makes it, once, as the user.
func TestInstall(t *testing.T) {
	const path = "/versions/a/web-1.0.0/"
	form := url.Values{"action": {"install"}, "instance": {"two"}, "account": {"kudo"}, "value.VALUE": {"z"}, "former.VALUE": {"x"},
		"value.CLASS": {"slow"}, "former.CLASS": {"fast"}, "value.SIZE": {"small"}, "former.SIZE": {"small"},
		"value.HOST": {"h"}, "former.HOST": {""}, "value.LOGIN": {"ann"}, "former.LOGIN": {""}}
	r := beginActing(t, changed(), changeable())
	status, body := r.post(t, path+"preview", form)
	if status != http.StatusOK {
		t.Fatalf("%d\n%s", status, body)
	}
	expect(t, body, `href="/versions/a/web-1.0.0/install"`, `action="/versions/a/web-1.0.0/act"`, "Do exactly this",
		"kubectl kudo install --instance two -n a operatorversion/web-1.0.0 --in-cluster --service-account kudo -p CLASS=slow -p HOST=h -p LOGIN=ann -p VALUE=z --expect sha256:",
		"install of Instance a/two")
	checkHarmless(t, "the preview", body)
	made := &v1beta1.Instance{ObjectMeta: gen.Meta("a", "two")}
	if r.api.Get(made) != nil {
		t.Fatal("U6: the preview has made it")
	}
	button := formOf(t, body)
	other := url.Values{}
	for name, values := range button {
		other[name] = values
	}
	other.Set(fieldDigest, "sha256:0")
	if status, _ := r.post(t, path+"act", other); status != http.StatusConflict || r.api.Get(made) != nil {
		t.Errorf("U6: another preview than the one that was seen is done: %d", status)
	}
	empty := url.Values{"action": {"install"}, "instance": {"four"}, "value.VALUE": {""}, "former.VALUE": {"x"}}
	if _, body := r.post(t, path+"preview", empty); !strings.Contains(body, "-P FILE</code>") || !strings.Contains(body, "The command of this action:") || formOf(t, body) == nil {
		t.Errorf("U4: an empty value, which a flag cannot say:\n%s", body)
	}
	r.api.Before(allow(false, nil))
	if _, body := r.post(t, path+"preview", form); !strings.Contains(body, "Disabled: you may not create instances.kudo.dev in namespace a") {
		t.Errorf("U5: without the right, there is a button:\n%s", body)
	}
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "create" && len(q.Query["dryRun"]) == 0 && q.Query.Get("fieldManager") != string(manager) {
			t.Errorf("the field manager is %s", q.Query.Get("fieldManager"))
		}
		return nil, nil
	}))
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).PostForm(r.url+path+"act", button)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || got != "/instances/a/two" {
		t.Fatalf("%d, and leads to %q", response.StatusCode, got)
	}
	r.api.Read(made)
	if p := made.Spec.Parameters; p["VALUE"] != "z" || p["CLASS"] != "slow" || len(p) != 4 || made.Spec.ServiceAccountName != "kudo" || made.Spec.OperatorVersion.Name != "web-1.0.0" {
		t.Errorf("the Instance has the spec %+v", made.Spec)
	}
	if status, body := r.post(t, path+"act", button); status != http.StatusUnprocessableEntity || !strings.Contains(body, "exists already") {
		t.Errorf("a form that is posted twice: %d\n%s", status, body)
	}
	r.api.Remove(made)
	if status, body := r.post(t, path+"act", button); status != http.StatusConflict || r.api.Get(made) != nil || !strings.Contains(body, "Do exactly this") {
		t.Errorf("U6: the form is posted again after the Instance was deleted: %d", status)
	}
	_, body = r.post(t, path+"preview", form)
	button = formOf(t, body)
	edited := changeable()
	gen.Serial("cleanup", "cm")(edited)
	r.api.Put(edited)
	if status, _ := r.post(t, path+"act", button); status != http.StatusConflict || r.api.Get(made) != nil {
		t.Errorf("U6: an OperatorVersion that has got another plan since the preview: %d", status)
	}
	for _, tc := range []struct {
		reason, path string
		form         url.Values
		want         string
	}{
		{"the name of another Instance", path, url.Values{"action": {"install"}, "instance": {"one"}}, ""},
		{"a name that is a path", path, url.Values{"action": {"install"}, "instance": {"../../b/instances/x"}}, "cannot name an Instance"},
		{"a name that is HTML", path, url.Values{"action": {"install"}, "instance": {"<script>"}}, "cannot name an Instance"},
		{"a sensitive parameter", path, url.Values{"action": {"install"}, "instance": {"three"}, "value.PASSWORD": {"x"}, "former.PASSWORD": {"y"}}, "give it by a Secret, or by install -P FILE"},
		{"a parameter that does not exist", path, url.Values{"action": {"install"}, "instance": {"three"}, "value.NONE": {"x"}, "former.NONE": {"y"}}, "is not defined"},
		{"an action on an Instance", path, url.Values{"action": {"uninstall"}, "instance": {"one"}}, "names no action"},
		{"an upgrade", path, url.Values{"action": {"upgrade"}, "instance": {"one"}, "version": {"web-1.0.0"}}, "names no action"},
		{"an installation of an Instance that is there", "/instances/a/one/", url.Values{"action": {"install"}}, "names no action"},
		{"an OperatorVersion that does not exist", "/versions/a/none/", url.Values{"action": {"install"}}, "does not exist"},
	} {
		for _, route := range []string{"preview", "act"} {
			status, body := r.post(t, tc.path+route, tc.form)
			if status != http.StatusUnprocessableEntity || !strings.Contains(body, tc.want) || formOf(t, body) != nil {
				t.Errorf("%s, %s: %d, no %q, or a button in\n%s", tc.reason, route, status, tc.want, body)
			}
			checkHarmless(t, tc.reason, body)
		}
	}
	r = begin(t, "", changed(), changeable())
	if status, _ := r.post(t, path+"act", button); status != http.StatusMethodNotAllowed && status != http.StatusNotFound {
		t.Errorf("U5: a page that may not act has a route, which answers %d", status)
	}
}
