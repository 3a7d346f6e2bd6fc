package ui

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/apitest"
)

// hostile is what an attacker writes into each field: ann of docs/design/tenancy.md, who may create Instances, otto, who may write
// OperatorVersions, and whatever writes logs, events and statuses.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>' onmouseover='alert(1)' javascript:alert(1) {{.}} ` + "\x1b[2J\u202e\u2066</title></style>"

// allPages are the pages with the objects of a test.
var allPages = []string{"/instances", "/instances?q=", "/instances/a/one", "/instances/a/one/change", "/versions", "/versions/a/web-1.0.0", "/versions/a/web-1.0.0/install", "/catalog", "/catalog/package", "/shared", "/clusters", "/settings", "/nothing"}

// hostileObjects have the text of an attacker wherever one can be.
func hostileObjects() (*v1beta1.Instance, *v1beta1.OperatorVersion, *v1beta1.Installation, *appsv1.ControllerRevision, *corev1.Event) {
	condition := []metav1.Condition{{Type: "Ready" + hostile, Status: "False", Reason: hostile, Message: hostile},
		{Type: v1beta1.ReadyCondition, Status: "False", Reason: hostile, Message: hostile}, {Type: v1beta1.StalledCondition, Status: "True", Message: hostile}}
	run := map[string]v1beta1.PlanStatus{"deploy" + hostile: {Name: "deploy" + hostile, Status: v1beta1.FatalError, Message: hostile, Late: hostile, Revision: 3,
		Phases: []v1beta1.PhaseStatus{{Name: hostile, Status: v1beta1.FatalError, Message: hostile, Steps: []v1beta1.StepStatus{{Name: hostile, Status: v1beta1.ExecutionStatus(hostile), Message: hostile,
			Late: hostile, Tasks: []v1beta1.TaskStatus{{Name: hostile, Status: v1beta1.FatalError, Message: hostile, Total: 2, Culprit: &v1beta1.Culprit{APIVersion: hostile, Kind: hostile,
				Name: hostile, Owner: hostile, Pod: hostile, Container: hostile, Reason: hostile, Message: hostile}}}}}}}}}
	drift := []v1beta1.ObjectDrift{{APIVersion: hostile, Kind: hostile, Namespace: "a", Name: hostile, Fields: []string{hostile}, Writer: hostile, Message: hostile}}
	i := instance("a", "one", func(i *v1beta1.Instance) {
		i.Labels[v1beta1.OperatorLabel] = hostile
		i.Spec.ServiceAccountName = hostile
		i.Spec.Parameters = map[string]string{"REPLICAS": hostile, hostile: hostile}
		i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: hostile, Name: hostile, Keys: map[string]string{"REPLICAS" + hostile: hostile}}}
		i.Spec.Schedules = []v1beta1.Schedule{{Name: hostile, Plan: hostile}}
		i.Status.Conditions, i.Status.PlanStatus, i.Status.Drift = condition, run, drift
		i.Status.AggregatedStatus.Message = hostile
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: hostile, Cause: hostile, RequestedBy: hostile}}
		i.Status.Schedules = []v1beta1.ScheduleStatus{{Name: hostile, LastRun: 1, LastResult: hostile}}
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: hostile, Kind: hostile, Namespace: "a", Name: hostile}, {APIVersion: "v1", Kind: "ConfigMap", Name: hostile, Namespace: hostile}}
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: hostile + "/" + hostile, Revision: 3}
	})
	ov := version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Operator.Name, ov.Spec.Version, ov.Spec.AppVersion, ov.Spec.InstallPlan = hostile, hostile, hostile, hostile
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: hostile, Description: hostile, DisplayName: hostile, Default: new(hostile)})
		ov.Spec.Plans[hostile] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: hostile, Steps: []v1beta1.Step{{Name: hostile, Tasks: []string{hostile}}}}}}
		ov.Spec.Provenance = &v1beta1.Provenance{Source: "javascript:alert(1)" + hostile, Signatures: []string{hostile}}
		ov.Status.Conditions, ov.Status.PlanStatus, ov.Status.Drift = condition, run, drift
		ov.Status.AggregatedStatus.Message = hostile
	})
	holds := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "holds"}}
	holds.Spec.Subject = v1beta1.InstallationSubject{Kind: hostile, Namespace: hostile, Name: hostile}
	holds.Status.Resources = []v1beta1.HeldResource{{APIVersion: hostile, Kind: hostile, Namespace: hostile, Name: hostile, State: v1beta1.HoldState(hostile), Message: hostile},
		{APIVersion: "v1", Kind: "Namespace", Name: "x", State: v1beta1.HoldMismatch, Message: hostile}}
	record := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: history.Name("one", 2), Labels: map[string]string{v1beta1.InstanceLabel: "one"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "one", UID: "uid-one", Controller: new(true)}}}, Revision: 2}
	record.Data = runtime.RawExtension{Raw: []byte(`{"plan":"<script>alert(1)</script>","cause":"<script>alert(1)</script>","requestedBy":"<script>alert(1)</script>","operatorVersion":"<script>",` +
		`"parameters":{"<script>alert(1)</script>":"<img src=x onerror=alert(1)>","REPLICAS":"\u202e<script>"}}`)}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Instance", Name: "one", UID: "uid-one"},
		Type: hostile, Reason: hostile, Message: hostile}
	return i, ov, holds, record, event
}

// What templates have: elements and attributes.
var (
	elements = strings.Fields("a b body br button caption code dd del details div dl dt form g h1 h2 h3 head header html input ins label li line link main meta nav noscript ol " +
		"option p pre rect script section select span strong summary svg table tbody td text textarea th thead time title tr ul")
	attributes = strings.Fields("action aria-current aria-describedby aria-hidden aria-label aria-labelledby autocomplete charset class content data-copy data-live data-open data-seen datetime for height hidden href id lang " +
		"maxlength method name open rel required role rows rx scope selected src tabindex type value viewbox width x x1 x2 y y1 y2")
)

// checkHarmless fails if HTML has an element or an attribute that no template has, or a character that is not shown.
func checkHarmless(t *testing.T, where, body string) {
	t.Helper()
	if strings.ContainsAny(body, "\x1b\u202e\u2066\x00") {
		t.Errorf("U9: %s has control characters", where)
	}
	for tokens := html.NewTokenizer(strings.NewReader(body)); ; {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return
		}
		token := tokens.Token()
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		if !slices.Contains(elements, token.Data) || token.Data == "script" && kind == html.StartTagToken && token.Attr[0].Val != "/session/page.js" {
			t.Errorf("U9: %s has the element %s", where, token)
		}
		for _, a := range token.Attr {
			switch {
			case !slices.Contains(attributes, a.Key):
				t.Errorf("U7: %s has the attribute %s in %s", where, a.Key, token)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action") && (!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")) && a.Val != "#main":
				t.Errorf("U9: %s has a link to %s", where, a.Val)
			}
		}
	}
}

// TestHostileText shows U9: what others write is text, on each page and in each message of its stream, and no control character of it is left.
func TestHostileText(t *testing.T) {
	i, ov, holds, record, event := hostileObjects()
	r := begin(t, "", i, ov, holds, record, event)
	next := r.events(t, "/instances/a/one", "")
	shown := map[string]string{}
	for !strings.Contains(shown["events"], "&lt;script") || !strings.Contains(shown["history"], "&lt;script") {
		parts, _ := next()
		for id, content := range parts {
			shown[id] = content
			checkHarmless(t, "fragment "+id, content)
		}
	}
	for _, path := range append(allPages, "/instances/a/one/drift", "/catalog?repository=%3Cscript%3E&name=%3Cscript%3E&page=%3Cscript%3E", "/instances?q="+"%22%3E%3Cscript%3E&ns=%3Cscript%3E&state=%3Cscript%3E", "/instances/%3Cscript%3E/x", "/versions/a/%22%3E%3Cscript%3E",
		"/instances/a/..%2f..%2fsession") {
		_, body := r.get(t, path)
		checkHarmless(t, path, body)
	}
	if _, body := r.get(t, "/instances/a/one"); !strings.Contains(body, `\x1b[2J`) || !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Error("the text of others is not shown at all")
	}
	// The public page and its files are fixed.
	for _, path := range []string{"/session", "/session/style.css", "/session/../ui.go", "/session/%2e%2e/ui.go", "/session/x"} {
		request, _ := http.NewRequest(http.MethodGet, "http://x"+path, nil)
		body := recorded(r.Public(), request)
		if strings.Contains(body, "package ui") {
			t.Errorf("%s gives a file of the program", path)
		}
	}
}

// TestSecrets shows U9: no byte that is sent has the value of a Secret or of a sensitive parameter, and no Secret is asked for but by its
// metadata.
func TestSecrets(t *testing.T) {
	const secret, inline, packed, before = "s3cr3t-of-a-secret", "s3cr3t-inline", "s3cr3t-default", "s3cr3t-before"
	i := instance("a", "one", func(i *v1beta1.Instance) {
		i.Spec.Parameters = map[string]string{"PASSWORD": inline, "REPLICAS": "3", "UNDEFINED": "s3cr3t-undefined"}
		i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "creds", Keys: map[string]string{"TOKEN": "token"}}}
		i.Status.Baseline = &v1beta1.Baseline{Revision: 2}
		i.Status.Conditions[0].Status, i.Status.Conditions[0].Message = "False", "it waits for "+inline
		i.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.FatalError, Message: "login with " + inline + " and " + packed, Revision: 2}
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "creds"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "config"}}
	})
	ov := version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[1].Default = new(packed) })
	labels := map[string]string{v1beta1.InstanceLabel: "one", v1beta1.HeritageLabel: v1beta1.Heritage}
	creds := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "creds", Labels: labels, Annotations: map[string]string{"x": secret}}, Data: map[string][]byte{"token": []byte(secret)}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "config", Labels: labels}, Data: map[string]string{"k": secret}}
	record := func(revision int64, parameters string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: history.Name("one", revision), Labels: map[string]string{v1beta1.InstanceLabel: "one"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "one", UID: "uid-one", Controller: new(true)}}}, Revision: revision,
			Data: runtime.RawExtension{Raw: []byte(`{"plan":"deploy","cause":"c","parameters":` + parameters + `}`)}}
	}
	r := begin(t, "", i, ov, creds, config, record(1, `{"PASSWORD":"`+before+`","REPLICAS":"1"}`), record(2, `{"PASSWORD":"`+inline+`","REPLICAS":"3"}`))
	var asked struct {
		sync.Mutex
		accept []string
	}
	r.api.Before(func(q apitest.Request) (any, error) {
		if q.Kind == "Secret" {
			asked.Lock()
			defer asked.Unlock()
			asked.accept = append(asked.accept, q.Accept)
		}
		return nil, nil
	})
	var sent strings.Builder
	next := r.events(t, "/instances/a/one", "")
	shown := map[string]string{}
	for !strings.Contains(shown["history"], "REPLICAS") || strings.Contains(shown["objects"], "loading") || !strings.Contains(shown["objects"], "Secret creds") {
		parts, _ := next()
		for id, content := range parts {
			shown[id] = content
			sent.WriteString(content)
		}
	}
	for _, path := range allPages {
		_, body := r.get(t, path)
		sent.WriteString(body)
	}
	if n := strings.Index(sent.String(), "s3cr3t"); n >= 0 {
		t.Errorf("U9: a secret is sent: …%.120s", sent.String()[max(0, n-60):])
	}
	for _, want := range []string{"(sensitive)", "<code>REPLICAS</code>: <del>1</del> → <ins>3</ins>", "<code>PASSWORD</code>: <del>(sensitive)</del> → <ins>(sensitive)</ins>", "only its metadata is read"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("%s is not shown", want)
		}
	}
	asked.Lock()
	defer asked.Unlock()
	if len(asked.accept) == 0 {
		t.Error("no Secret is asked for")
	}
	for _, accept := range asked.accept {
		if !strings.Contains(accept, "PartialObjectMetadata") {
			t.Errorf("U9: a request for Secrets accepts more than metadata: %s", accept)
		}
	}
}
