package ui

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
)

// TestChange shows U5, U9 and U11: a user types a value, and sees what would happen and the command for it. No value stands in the address,
// and the page can be used with keys and by screen readers.
func TestChange(t *testing.T) {
	_, _, b := start(t, objects()...)
	b.visit("/instances/default/site/change")
	b.shows("Plan report has failed.")
	b.checkAccess("a failed Instance")
	b.visit("/instances/default/web")
	b.do(chromedp.Click("#change-link"), chromedp.WaitVisible("#value-0"))
	b.do(chromedp.SetValue("#value-0", "5 & more"), chromedp.Click(".fields button"), chromedp.WaitVisible("pre.preview"))
	b.shows("update --instance web -n default -p 'REPLICAS=5 & more'")
	if got := b.eval("location.pathname + location.search"); got != "/instances/default/web/preview" {
		t.Errorf("U9: the address is %s", got)
	}
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.checkAccess("a preview, " + theme)
	}
	b.do(chromedp.EmulateViewport(320, 640))
	if got := b.eval("document.documentElement.scrollWidth + String(document.documentElement.outerHTML.includes('s3cr3t')) + String(document.querySelector('.lost').hidden)"); got != "320falsetrue" {
		t.Errorf("a preview is wider than the page, has a secret, or says that its stream is lost: %s", got)
	}
}

// checkPreviews shows U5, U6 and U14 on a control plane: each form of the page shows what would happen, nothing happens, and the command that
// it gives does it.
func checkPreviews(t *testing.T, e *env.Env, b *tab) {
	t.Helper()
	for _, tc := range []struct {
		reason string
		fill   []chromedp.Action[chromedp.Void]
		form   string
		want   string
		then   string
	}{
		{"an update", []chromedp.Action[chromedp.Void]{chromedp.SetValue("#value-0", "3")}, "update", "parameters changed: REPLICAS", "parameters changed: REPLICAS"},
		{"a plan", []chromedp.Action[chromedp.Void]{chromedp.SetValue("#plan", "deploy")}, "trigger", "plan 1: deploy", "with kubectl kudo plan trigger"},
		{"an upgrade", []chromedp.Action[chromedp.Void]{chromedp.SetValue("#version", "web-1.27.4-0.2.0")}, "upgrade", "upgrade of Instance default/site", "to default/web-1.27.4-0.2.0"},
		{"a rollback", []chromedp.Action[chromedp.Void]{chromedp.SetValue("#run", "1")}, "rollback", "rollback of Instance default/site", "parameters changed: REPLICAS"},
	} {
		b.visit("/instances/default/site/change")
		b.do(tc.fill...)
		b.do(chromedp.Click("form:has(input[value="+tc.form+"]) button"), chromedp.WaitVisible("pre.preview"))
		b.shows(tc.want)
		b.checkAccess("the preview of " + tc.reason)
		before := run(t, e, 0, "plan", "history", "--instance", "site")
		line := b.eval("document.querySelector('.command code').textContent")
		b.visit("/instances/default/site")
		if got := run(t, e, 0, "plan", "history", "--instance", "site"); got != before {
			t.Errorf("U5: the preview of %s has started a run:\n%s", tc.reason, got)
		}
		words, err := exec.Command("sh", "-c", "printf '%s\\n' "+strings.TrimPrefix(line, "kubectl kudo ")).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		run(t, e, 0, append(strings.Split(strings.TrimSpace(string(words)), "\n"), "--wait")...)
		if got := run(t, e, 0, "plan", "history", "--instance", "site"); got == before || !strings.Contains(got, tc.then) {
			t.Errorf("U6: %s has started no run:\n%s", line, got)
		}
	}
	b.visit("/instances/default/site/change")
	b.do(chromedp.Click("form:has(input[value=uninstall]) button"), chromedp.WaitVisible("pre.preview"))
	b.shows("uninstall --instance site -n default --expect sha256:")
}

// checkActs shows U5, U6 and U14 on a control plane: with --allow-actions, the button below a preview does what the preview shows, and the
// history names the page. A preview that has become wrong is not done: the page shows the new one.
func checkActs(t *testing.T, e *env.Env) {
	t.Helper()
	s, b := serve(t, e.Kubeconfig, "-n", "default", "--allow-actions"), open(t)
	b.expected = regexp.MustCompile(`status of (409 .*/act|404 .*/instances/default/site)`)
	b.enter(s)
	b.shows("actions allowed")
	preview := func(form string, fill ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		b.visit("/instances/default/site/change")
		b.do(fill...)
		b.do(chromedp.Click("form:has(input[value="+form+"]) button"), chromedp.WaitVisible("#act button"))
	}
	act := func(want string) {
		t.Helper()
		b.checkAccess("a preview with a button")
		b.do(chromedp.Click("#act button"), chromedp.WaitVisible("#history"))
		b.until("location.pathname === '/instances/default/site'")
		b.until("document.getElementById('history').textContent.includes('with kubectl kudo ui')")
		run(t, e, 0, "plan", "wait", "--instance", "site")
		if got := run(t, e, 0, "plan", "history", "--instance", "site"); !strings.Contains(got, want) {
			t.Errorf("U6: the button has not done it: no %q in\n%s", want, got)
		}
	}
	preview("update", chromedp.SetValue("#value-0", "4"))
	act("parameters changed: REPLICAS; by kudo-local-admin with kubectl kudo ui")
	preview("trigger", chromedp.SetValue("#plan", "deploy"))
	act("by kudo-local-admin with kubectl kudo ui")
	preview("upgrade", chromedp.SetValue("#version", "web-1.27.4-0.2.0"))
	act("to default/web-1.27.4-0.2.0; by kudo-local-admin with kubectl kudo ui")
	preview("rollback", chromedp.SetValue("#run", "5")) // older runs may be dropped before the button is pressed
	run(t, e, 0, "update", "--instance", "site", "-p", "MESSAGE=meanwhile", "--wait")
	before := run(t, e, 0, "plan", "history", "--instance", "site")
	b.do(chromedp.Click("#act button"), chromedp.WaitVisible("main > p.notice"))
	b.shows("the cluster has changed since the preview that you have seen")
	if got := run(t, e, 0, "plan", "history", "--instance", "site"); got != before {
		t.Errorf("U6: another preview than the one that was seen is done:\n%s", got)
	}
	act("by kudo-local-admin with kubectl kudo ui")
	checkInstall(t, e, b)
	checkCancel(t, e, b, func() { preview("cancel") })
	checkRetry(t, e, b)
	preview("uninstall")
	b.shows("uninstall of Instance default/site")
	b.do(chromedp.Click("#act button"), chromedp.WaitVisible("#state"))
	b.until("/This Instance (does not exist|was deleted)|deleting/.test(document.body?.innerText)")
	env.Eventually(t, "the deletion of the Instance by the button (U6)", func() string {
		if got := run(t, e, 0, "get", "instances"); strings.Contains(got, "site") {
			return got
		}
		return ""
	})
}

// checkCancel shows U14 for a plan that waits for pods that a quota refuses: the page cancels it. show opens the preview.
func checkCancel(t *testing.T, e *env.Env, b *tab, show func()) {
	t.Helper()
	cluster, err := e.Connect()
	if err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "no-more-pods"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	if err := cluster.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	run(t, e, 0, "update", "--instance", "site", "-p", "REPLICAS=6")
	env.Eventually(t, "the plan waits for its pods", func() string {
		if got := run(t, e, 0, "plan", "status", "--instance", "site"); !strings.Contains(got, "IN_PROGRESS") {
			return got
		}
		return ""
	})
	show()
	b.do(chromedp.Click("#act button"), chromedp.WaitVisible("#history"))
	b.until("location.pathname === '/instances/default/site' && /deploy\\s+.?\\s*cancelled/.test(document.getElementById('history').innerText)")
	if got := run(t, e, 0, "plan", "history", "--instance", "site"); !strings.Contains(got, "CANCELLED") {
		t.Errorf("U6: the button has not cancelled the plan:\n%s", got)
	}
	if err := cluster.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
}

// checkRetry shows U14 for the Instance that has failed: as long as the Job that has failed is there, the preview says that a retry would fail,
// and has no button; then its plan runs again by the page.
func checkRetry(t *testing.T, e *env.Env, b *tab) {
	t.Helper()
	b.visit("/instances/default/broken/change")
	b.do(chromedp.Click("form:has(input[value=retry]) button"), chromedp.WaitVisible("pre.preview"))
	b.shows("It would fail")
	if got := b.eval("String(document.querySelector('#act'))"); got != "null" {
		t.Errorf("U6: a retry that would fail has a button: %s", got)
	}
	cluster, err := e.Connect()
	if err != nil {
		t.Fatal(err)
	}
	failed := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "broken-report"}}
	if err := cluster.Delete(t.Context(), failed, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	b.visit("/instances/default/broken/change")
	b.do(chromedp.Click("form:has(input[value=retry]) button"), chromedp.WaitVisible("#act button"))
	b.shows("retry of Instance default/broken")
	b.do(chromedp.Click("#act button"), chromedp.WaitVisible("#history"))
	b.until("location.pathname === '/instances/default/broken' && document.getElementById('history').textContent.includes('retry of run')")
	if got := run(t, e, 0, "plan", "history", "--instance", "broken"); !strings.Contains(got, "by kudo-local-admin with kubectl kudo ui") {
		t.Errorf("U6: the history does not say who has retried:\n%s", got)
	}
}

// checkInstall shows U5, U6 and U14 for a new Instance of an OperatorVersion: it is made as the preview shows, and the page then says that it
// waits for its account.
func checkInstall(t *testing.T, e *env.Env, b *tab) {
	t.Helper()
	b.visit("/versions/default/web-1.27.4-0.2.0")
	b.do(chromedp.Click("#install-link"), chromedp.WaitVisible("#instance"))
	b.checkAccess("the form of a new Instance")
	b.do(chromedp.SetValue("#instance", "second"), chromedp.Click(".fields button"), chromedp.WaitVisible("#act button"))
	b.shows("install of Instance default/second")
	b.checkAccess("the preview of a new Instance")
	if got := run(t, e, 0, "get", "instances"); strings.Contains(got, "second") {
		t.Errorf("U6: the preview has made it:\n%s", got)
	}
	b.do(chromedp.Click("#act button"), chromedp.WaitVisible("#state"))
	b.until("location.pathname === '/instances/default/second'")
	b.shows("waits for ServiceAccount default/kudo")
	run(t, e, 0, "account", "create", "--instance", "second", "--yes")
	run(t, e, 0, "plan", "wait", "--instance", "second")
	b.shows("ready")
	run(t, e, 0, "uninstall", "--instance", "second", "--wait")
}
