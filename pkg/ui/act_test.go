package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// beginActing runs a Server that may act, of a user who may patch Instances.
func beginActing(t *testing.T, objects ...client.Object) *running {
	t.Helper()
	hosts := &corev1.ConfigMap{ObjectMeta: gen.Meta("a", "hosts"), Data: map[string]string{"host": "h"}}
	r := begin(t, "", append(objects, hosts)...)
	r.AllowActions = true
	r.pages = r.routes()
	r.api.Before(allow(true, nil))
	return r
}

// allow answers which rights the user has, and then calls another hook, if there is one.
func allow(allowed bool, next apitest.Hook) apitest.Hook {
	return func(q apitest.Request) (any, error) {
		if q.Kind == "SelfSubjectAccessReview" {
			return &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
		}
		if next != nil {
			return next(q)
		}
		return nil, nil
	}
}

// formOf returns the fields of the form that does what a preview shows, as a browser would post them; nil if there is none.
func formOf(t *testing.T, body string) url.Values {
	t.Helper()
	var out url.Values
	name := ""
	for tokens := html.NewTokenizer(strings.NewReader(body)); ; {
		kind := tokens.Next()
		token := tokens.Token()
		attribute := func(name string) string {
			for _, a := range token.Attr {
				if a.Key == name {
					return a.Val
				}
			}
			return ""
		}
		switch {
		case kind == html.ErrorToken:
			return out
		case kind == html.StartTagToken && token.Data == "form" && attribute("id") == "act":
			out = url.Values{}
		case kind == html.StartTagToken && token.Data == "textarea":
			name = attribute("name")
		case kind == html.TextToken && name != "" && out != nil:
			out.Add(name, strings.TrimPrefix(token.Data, "\n"))
			name = ""
		}
	}
}

// liveOf returns an Instance as the API server has it.
func (r *running) liveOf(name string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("a", name)}
	r.api.Read(i)
	return i
}

// TestAct shows U4, U5 and U6: the button below a preview does what the preview shows, once, as the user, and the history can name the page.
func TestAct(t *testing.T) {
	failing := func(i *v1beta1.Instance) {
		i.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.FatalError, Revision: 2, UID: "run-2"}
	}
	runs := func(i *v1beta1.Instance) {
		i.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.InProgress, Revision: 2, UID: "run-2"}
	}
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.Instance)
		form   url.Values
		done   func(*v1beta1.Instance) bool
	}{
		{"a plan that runs", runs, url.Values{"action": {"cancel"}}, func(i *v1beta1.Instance) bool { return i.Annotations[v1beta1.CancelAnnotation] == "run-2" }},
		{"a value of several lines", nil, url.Values{"action": {"update"}, "value.TEXT": {"\r\none\r\n<two>"}, "former.TEXT": {"\r\none\r\ntwo"}},
			func(i *v1beta1.Instance) bool {
				return i.Spec.Parameters["TEXT"] == "\none\n<two>" && i.Spec.Parameters["VALUE"] == "y" && len(i.Spec.ParametersFrom) == 1
			}},
		{"a default", nil, url.Values{"action": {"update"}, "unset.VALUE": {"true"}}, func(i *v1beta1.Instance) bool { _, set := i.Spec.Parameters["VALUE"]; return !set }},
		{"a plan", nil, url.Values{"action": {"trigger"}, "plan": {"backup"}}, func(i *v1beta1.Instance) bool { return i.Spec.PlanExecution.PlanName == "backup" }},
		{"an earlier run", nil, url.Values{"action": {"rollback"}, "run": {"1"}}, func(i *v1beta1.Instance) bool { return i.Spec.Parameters["VALUE"] == "x" }},
		{"another version", nil, url.Values{"action": {"upgrade"}, "version": {"web-1.1.0"}}, func(i *v1beta1.Instance) bool { return i.Spec.OperatorVersion.Name == "web-1.1.0" }},
		{"a failed plan", failing, url.Values{"action": {"retry"}}, func(i *v1beta1.Instance) bool { return i.Annotations[v1beta1.RetryAnnotation] == "run-2" }},
	} {
		i := changed()
		if tc.change != nil {
			tc.change(i)
		}
		r := beginActing(t, i, changeable(), otherVersion("1.1.0"), runOf(1, `{"VALUE":"x"}`), runOf(2, `{"VALUE":"y"}`))
		status, body := r.post(t, "/instances/a/one/preview", tc.form)
		form := formOf(t, body)
		if status != http.StatusOK || form == nil || !strings.Contains(body, "Do exactly this") || !strings.Contains(body, "actions allowed") {
			t.Errorf("%s: %d, and the preview has no button:\n%s", tc.reason, status, body)
			continue
		}
		if tc.done(r.liveOf("one")) {
			t.Errorf("%s: U6: the preview has done it", tc.reason)
		}
		other := url.Values{}
		for name, values := range form {
			other[name] = values
		}
		other.Set(fieldDigest, "sha256:0")
		if status, body := r.post(t, "/instances/a/one/act", other); status != http.StatusConflict || tc.done(r.liveOf("one")) || !strings.Contains(body, "the cluster has changed since the preview") {
			t.Errorf("%s: U6: another preview than the one that was seen is done: %d\n%s", tc.reason, status, body)
		}
		response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).PostForm(r.url+"/instances/a/one/act", form)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		after := r.liveOf("one")
		if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/instances/a/one" || !tc.done(after) {
			t.Errorf("%s: %d to %q, and it is not done: %+v", tc.reason, response.StatusCode, response.Header.Get("Location"), after.Spec)
			continue
		}
		after.Generation++ // as API servers do
		r.api.Put(after)
		status, _ = r.post(t, "/instances/a/one/act", form)
		if again := r.liveOf("one"); status != http.StatusConflict && status != http.StatusUnprocessableEntity ||
			again.Spec.PlanExecution.UID != after.Spec.PlanExecution.UID {
			t.Errorf("%s: it is done twice: %d", tc.reason, status)
		}
	}
}

// TestActUninstall shows that a deletion keeps what is to be kept before, and that nothing is kept for a deletion that is refused.
func TestActUninstall(t *testing.T) {
	i := changed()
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "kept"}}
	kept := &corev1.ConfigMap{ObjectMeta: gen.Meta("a", "kept")}
	kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
	kept.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "one", UID: i.UID}}
	r := beginActing(t, i, changeable(), kept)
	_, body := r.post(t, "/instances/a/one/preview", url.Values{"action": {"uninstall"}})
	form := formOf(t, body)
	expect(t, body, "kept", "annotated to be kept")
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "delete" {
			return nil, apierrors.NewForbidden(v1beta1.Resource("instances"), "one", nil)
		}
		return nil, nil
	}))
	owners := func() int { return len(r.api.Get(kept).GetOwnerReferences()) }
	if status, body := r.post(t, "/instances/a/one/act", form); status != http.StatusUnprocessableEntity || !strings.Contains(body, "is forbidden") || owners() != 1 {
		t.Errorf("a deletion that is refused: %d, and the object has %d owners\n%s", status, owners(), body)
	}
	r.api.Before(allow(true, nil))
	_, body = r.post(t, "/instances/a/one/preview", url.Values{"action": {"uninstall"}, "keep-claims": {"true"}})
	keeping := formOf(t, body)
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "list" {
			return nil, apierrors.NewForbidden(v1beta1.Resource("instances"), "", nil)
		}
		return nil, nil
	}))
	if status, _ := r.post(t, "/instances/a/one/act", keeping); status < http.StatusBadRequest || r.api.Get(i) == nil || owners() != 1 {
		t.Errorf("the claims of children that are not known are not kept: %d, and the object has %d owners", status, owners())
	}
	r.api.Before(allow(true, nil))
	r.post(t, "/instances/a/one/act", form)
	if r.api.Get(i) != nil || owners() != 0 {
		t.Errorf("the Instance exists: %t, and the object has %d owners", r.api.Get(i) != nil, owners())
	}
}

// TestActRefused shows U5: without --allow-actions there is no route and no button, what would fail has none, and a user without the right sees
// which one is missing.
func TestActRefused(t *testing.T) {
	objects := func() []client.Object {
		return []client.Object{changed(), changeable(), runOf(1, `{"VALUE":"x"}`), runOf(2, `{"VALUE":"y"}`)}
	}
	update := url.Values{"action": {"update"}, "value.VALUE": {"z"}, "former.VALUE": {"y"}}
	r := begin(t, "", objects()...)
	_, body := r.post(t, "/instances/a/one/preview", update)
	if status, _ := r.post(t, "/instances/a/one/act", update); status != http.StatusMethodNotAllowed && status != http.StatusNotFound || formOf(t, body) != nil || !strings.Contains(body, "read-only") {
		t.Errorf("U5: a page that may not act has a route, which answers %d, or a form", status)
	}

	r = beginActing(t, objects()...)
	for reason, form := range map[string]url.Values{
		"no running plan": {"action": {"cancel"}},
		"a wrong value":   {"action": {"update"}, "value.COUNT": {"many"}, "former.COUNT": {"1"}},
		"a missing plan":  {"action": {"trigger"}, "plan": {"none"}},
	} {
		if _, body := r.post(t, "/instances/a/one/preview", form); formOf(t, body) != nil {
			t.Errorf("%s has a button", reason)
		}
	}
	_, body = r.post(t, "/instances/a/one/preview", update)
	form := formOf(t, body)
	for reason, tc := range map[string]struct {
		hook apitest.Hook
		want string
	}{
		"the right is missing": {allow(false, nil), "Disabled: you may not patch instances.kudo.dev in namespace a"},
		"the right is not known": {func(q apitest.Request) (any, error) {
			if q.Kind == "SelfSubjectAccessReview" {
				return nil, apierrors.NewServiceUnavailable("no answer")
			}
			return nil, nil
		}, "Disabled: it is not known whether you may patch"},
	} {
		r.api.Before(tc.hook)
		if _, body := r.post(t, "/instances/a/one/preview", update); !strings.Contains(body, tc.want) || !strings.Contains(body, "<button disabled") {
			t.Errorf("%s: no %q in\n%s", reason, tc.want, body)
		}
	}

	var wrote bool
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "patch" && len(q.Query["dryRun"]) == 0 {
			wrote = true
			if got := q.Query.Get("fieldManager"); got != string(manager) {
				t.Errorf("the field manager is %s", got)
			}
			return nil, apierrors.NewConflict(v1beta1.Resource("instances"), "one", nil)
		}
		return nil, nil
	}))
	if status, body := r.post(t, "/instances/a/one/act", form); status != http.StatusUnprocessableEntity || !strings.Contains(body, "another client has changed the Instance at this moment") || !wrote {
		t.Errorf("a conflict: %d, written %t\n%s", status, wrote, body)
	}
	r.api.Before(allow(true, func(q apitest.Request) (any, error) {
		if q.Kind == "Instance" && q.Verb == "patch" && len(q.Query["dryRun"]) == 0 {
			return nil, apierrors.NewForbidden(v1beta1.Resource("instances"), "one", nil)
		}
		return nil, nil
	}))
	if status, body := r.post(t, "/instances/a/one/act", form); status != http.StatusUnprocessableEntity || !strings.Contains(body, "is forbidden") {
		t.Errorf("a refused write: %d\n%s", status, body)
	}
	if got := r.liveOf("one").Spec.Parameters["VALUE"]; got != "y" {
		t.Errorf("the value is %s", got)
	}
}
