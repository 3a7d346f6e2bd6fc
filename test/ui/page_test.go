package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// start serves the page for objects, and opens it.
func start(t testing.TB, list ...client.Object) (*apitest.Server, *served, *tab) {
	t.Helper()
	api := apitest.Start(t, list...)
	s, b := serve(t, api.Kubeconfig(t, "team-a"), "-A"), open(t)
	b.freeze(now)
	b.enter(s)
	return api, s, b
}

// TestSession shows U8: the address opens the page once and is cleared, and scripts do not see the cookie.
func TestSession(t *testing.T) {
	api := apitest.Start(t, objects()...)
	s, b := serve(t, api.Kubeconfig(t, "team-a"), "-A"), open(t)
	address := s.address(t)
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#rows"))
	if got := b.eval("location.pathname + location.hash + document.cookie"); got != "/instances" {
		t.Errorf("the address, its token or a cookie is left: %s", got)
	}
	entries, err := chromedp.Run(b.ctx, chromedp.NavigationEntries())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries.Entries {
		if strings.Contains(e.URL, "#") {
			t.Errorf("the history of the browser has the token: %s", e.URL)
		}
	}
	again := open(t)
	again.expected = regexp.MustCompile(`status of 403`)
	again.do(chromedp.Navigate(address), chromedp.WaitVisible("#refused"))
	again.checkAccess("a refused address")
	again.expected = regexp.MustCompile(`status of 40[13]`)
	again.do(chromedp.Navigate(strings.TrimSuffix(address[:strings.Index(address, "/session")], "/") + "/instances"))
	again.shows("This browser has no session.")
	again.checkAccess("no session")
}

// TestPages shows U11 on each page, in both themes: no violation of accessibility, no console error, no request to anywhere else. It is also
// narrow enough for 320 pixels, which is a zoom of 400 % of 1,280.
func TestPages(t *testing.T) {
	_, _, b := start(t, objects()...)
	b.expected = regexp.MustCompile(`status of 404 .*/absent`)
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for _, path := range pages {
			b.visit(path)
			b.checkAccess(path + ", " + theme)
		}
	}
	b.do(chromedp.EmulateViewport(320, 640))
	for _, path := range pages {
		b.visit(path)
		if width := b.eval("document.documentElement.scrollWidth"); width != "320" {
			t.Errorf("U11: at 320 pixels, %s is %s wide", path, width)
		}
		b.checkAccess(path + ", narrow")
	}
}

// TestClusters shows U11 on the page of clusters, where the API server serves a kind that registers them.
func TestClusters(t *testing.T) {
	api := apitest.Start(t, objects()...)
	kind := schema.GroupVersionKind{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"}
	api.AddKind(kind, false)
	s, b := serve(t, api.Kubeconfig(t, "team-a"), "-A"), open(t)
	b.enter(s)
	b.visit("/clusters")
	b.shows("No cluster is registered here yet.")
	b.checkAccess("no clusters")
	for name, status := range map[string]string{"m1": "True", "m2": "False", "m3": "Unknown"} {
		member := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"kubernetesVersion": "v1.36.3", "conditions": []any{map[string]any{"type": "Ready",
			"status": status, "message": "asked for 40 s"}}}}}
		member.SetGroupVersionKind(kind)
		member.SetName(name)
		api.Put(member)
		b.shows(name)
	}
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.checkAccess("clusters, " + theme)
	}
	b.do(chromedp.EmulateViewport(320, 640))
	if width := b.eval("document.documentElement.scrollWidth"); width != "320" {
		t.Errorf("U11: at 320 pixels, the page of clusters is %s wide", width)
	}
}

// TestStates shows U10 and U11: what a page says when there is nothing, no right, no kudo or no cluster.
func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*apitest.Server)
		want    string
	}{
		"empty":         {func(*apitest.Server) {}, "There are no Instances yet"},
		"no right":      {func(s *apitest.Server) { s.Before(refuseInstances) }, "You have no right to list and watch"},
		"not installed": {func(s *apitest.Server) { s.RemoveKind(v1beta1.GroupVersion.WithKind("Instance")) }, "kudo is not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.Start(t)
			tc.prepare(api)
			s, b := serve(t, api.Kubeconfig(t, "team-a"), "-A"), open(t)
			b.do(chromedp.Navigate(s.address(t)), chromedp.WaitReady("#connection"))
			b.shows(tc.want)
			b.checkAccess(name)
			b.theme("dark")
			b.checkAccess(name + ", dark")
		})
	}
}

// TestLive shows U3 and U11: a change reaches the page in one message, and keeps the focus and what the user has opened.
func TestLive(t *testing.T) {
	api, _, b := start(t, objects()...)
	b.eval(`document.getElementById('i-default/pg').focus(); window.swaps = 0; new MutationObserver(() => window.swaps++).observe(document.getElementById('rows'), {childList: true}); 0`)
	if got := b.eval("document.querySelector('main').innerText.match(/[0-9]+ Instances/)[0]"); got != "5 Instances" {
		t.Fatalf("the page shows %s", got)
	}
	b.update(func() { api.Put(ready("default", "pg", "postgres-1.0.0", failed)) }, "2 failed")
	if got := b.eval("window.swaps + ' ' + document.activeElement.id"); got != "1 i-default/pg" {
		t.Errorf("the table was swapped, and the focus is: %s", got)
	}
	b.visit("/instances/default/web")
	b.shows("ImagePullBackOff")
	b.do(chromedp.Click("#plan-update-s"))
	if open := b.eval("document.getElementById('plan-update').open"); open != "false" {
		t.Fatal("a plan cannot be closed")
	}
	changed := objects()[0].(*v1beta1.Instance)
	changed.Status.PlanStatus["backup"] = v1beta1.PlanStatus{Name: "backup", Status: v1beta1.Complete, Revision: 9, StartedTimestamp: microAgo(0)}
	api.Put(changed)
	b.until("document.getElementById('plans').textContent.includes('backup') && !document.getElementById('plans').textContent.includes('not run Plan backup')")
	b.until("[...document.querySelectorAll('#plans summary, #plans .leaf')].some(e => /complete\\s+Plan backup/.test(e.textContent))")
	if open := b.eval("document.getElementById('plan-update').open + document.activeElement.id"); open != "falseplan-update-s" {
		t.Errorf("what the user has closed opens by itself, or the focus moves: %s", open)
	}
	api.Remove(changed)
	b.shows("This Instance was deleted while the page was open.")
	b.checkAccess("a deleted Instance")
}

// TestLost shows U10: a page whose stream is lost says so.
func TestLost(t *testing.T) {
	_, s, b := start(t, objects()...)
	b.expected = regexp.MustCompile(`ERR_|live`)
	s.stop()
	b.do(chromedp.WaitVisible(".lost"))
	b.checkAccess("a lost stream")
	b.shows("default/site")
}

// TestKeyboard shows U11: all can be reached by keys, and the first key leads past the navigation.
func TestKeyboard(t *testing.T) {
	_, _, b := start(t, objects()...)
	b.visit("/instances")
	var order []string
	for range 17 {
		b.do(chromedp.KeyEvent(kb.Tab))
		order = append(order, b.eval("document.activeElement.id || document.activeElement.name || document.activeElement.textContent"))
	}
	want := []string{"Skip to the content", "Instances", "Versions", "Catalog", "Shared", "Settings", "theme", "q", "ns", "state-filter", "Filter", "count-0", "count-1", "count-2", "instances-scroll", "i-default/site", "i-default/web"}
	if strings.Join(order, "|") != strings.Join(want, "|") {
		t.Errorf("the order of the keyboard is %v, want %v", order, want)
	}
	b.do(chromedp.SendKeys("#q", "pg"+kb.Enter), chromedp.WaitReady("#q[value=pg]"))
	b.shows("default/pg")
}

// TestTheme shows U11: the switch of the theme stays, and wins over what the system prefers.
func TestTheme(t *testing.T) {
	_, _, b := start(t, objects()...)
	ground := func() string { return b.eval("getComputedStyle(document.body).backgroundColor") }
	b.theme("light")
	light := ground()
	b.theme("dark")
	dark := ground()
	if light == dark {
		t.Fatalf("both themes have the ground %s", light)
	}
	b.do(chromedp.Click("#theme")) // from auto to light
	b.visit("/versions")
	if ground() != light {
		t.Error("the theme that the user has chosen is forgotten, or loses")
	}
	b.do(chromedp.Click("#theme"))
	b.theme("light")
	if ground() != dark {
		t.Error("the dark theme cannot be chosen")
	}
}

// TestWithoutScript shows U2: without a script, the session opens by a form, and pages and the filter work.
func TestWithoutScript(t *testing.T) {
	api := apitest.Start(t, objects()...)
	s, b := serve(t, api.Kubeconfig(t, "team-a"), "-A"), open(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	address, token, _ := strings.Cut(s.address(t), "#")
	b.do(chromedp.Navigate(address), chromedp.SendKeys("#token", token), chromedp.Click("#enter button"), chromedp.WaitVisible("#rows"))
	b.do(chromedp.WaitVisible("noscript"), chromedp.SendKeys("#q", "site"), chromedp.Click("form button"), chromedp.WaitReady(`#q[value="site"]`))
	text, err := chromedp.Run(b.ctx, chromedp.OuterHTML("#rows"))
	if err != nil || !strings.Contains(text, "default/site") || strings.Contains(text, "default/pg") {
		t.Errorf("the filter finds %s (%v)", text, err)
	}
}

// TestHostile shows U9: a script in any field that others write does not run, and nothing leaks.
func TestHostile(t *testing.T) {
	const hostile = `"><script>window.pwned=1</script><img src=x onerror="window.pwned=1">'><svg onload=window.pwned=1>`
	i := ready("default", "web", "web-1.0.0", func(i *v1beta1.Instance) {
		failed(i)
		run := i.Status.PlanStatus["report"]
		run.Message, run.Phases[0].Name, run.Phases[0].Steps[1].Tasks[0].Message, run.Phases[0].Steps[1].Tasks[0].Culprit.Message = hostile, hostile, hostile, hostile
		i.Status.PlanStatus[hostile] = run
		i.Spec.Parameters = map[string]string{"REPLICAS": hostile, hostile: hostile}
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: hostile, Cause: hostile, RequestedBy: hostile}}
		i.Labels = map[string]string{v1beta1.OperatorLabel: hostile}
	})
	ov := &v1beta1.OperatorVersion{}
	ov.Namespace, ov.Name = "default", "web-1.0.0"
	ov.Spec.Operator.Name, ov.Spec.Provenance = hostile, &v1beta1.Provenance{Source: "javascript:window.pwned=1"}
	ov.Spec.Parameters = []v1beta1.Parameter{{Name: "REPLICAS", Description: hostile, Default: new(hostile)}}
	api, _, b := start(t, i, ov)
	for _, path := range []string{"/instances", "/instances/default/web", "/versions", "/versions/default/web-1.0.0", "/instances?q=" + strings.ReplaceAll(hostile, "\"", "%22"), "/nothing"} {
		b.expected = regexp.MustCompile(`status of 404`)
		b.visit(path)
		i.Status.AggregatedStatus.Message += hostile
		api.Put(i) // the stream draws it again
		b.until("document.readyState === 'complete'")
		if got := b.eval("String(window.pwned) + document.querySelectorAll('img, script:not([src=\"/session/page.js\"]), iframe, object').length"); got != "undefined0" {
			t.Errorf("U9: on %s the text of others is HTML: %s", path, got)
		}
	}
}

// TestLog shows P22, U9 and U11: the last lines of what failed are there without a wait, as text, in both themes and at 320 pixels.
func TestLog(t *testing.T) {
	api, _, b := start(t, objects()...)
	answer := make(chan struct{})
	api.Before(func(r apitest.Request) (any, error) {
		if r.Subresource != "log" {
			return nil, nil
		}
		<-answer
		return strings.NewReader("psql: <script>window.pwned=1</script>\n" + strings.Repeat("wide", 200) + "\nFATAL: no database\n"), nil
	})
	b.visit("/instances/default/site")
	b.until("document.getElementById('logs').innerText.includes('Loading…')")
	b.checkAccess("a log that is read")
	b.eval("window.parts = []; new MutationObserver(all => all.forEach(m => window.parts.push(m.target.id))).observe(document.querySelector('main'), {childList: true, subtree: true}); 0")
	close(answer)
	b.shows("FATAL: no database")
	if got := b.eval("window.parts.filter(id => id !== '').join(' ')"); got != "logs" {
		t.Errorf("U3: with the log, %s are sent", got)
	}
	b.theme("dark")
	b.checkAccess("a log, dark")
	b.do(chromedp.EmulateViewport(320, 640))
	b.checkAccess("a log, narrow")
	if got := b.eval("document.documentElement.scrollWidth + String(window.pwned) + document.querySelectorAll('pre *:not(code)').length"); got != "320undefined0" {
		t.Errorf("U9, U11: the log is HTML, or wider than the page: %s", got)
	}
}

// TestForeign shows U7 and U8 against another web page: it frames nothing, posts nothing, reads nothing, and gets no cookie.
func TestForeign(t *testing.T) {
	_, _, b := start(t, objects()...)
	origin := b.eval("location.origin")
	cookies := make(chan string, 10)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies <- r.Header.Get("Cookie")
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<title>evil</title><iframe id="frame" src="%s/instances"></iframe>`, origin)
	}))
	defer evil.Close()
	b.expected = regexp.MustCompile(`Refused|frame|CORS|Failed to load|status of 40[13]|Content Security|favicon`)
	b.do(chromedp.Navigate(evil.URL), chromedp.WaitReady("#frame"))
	if got := <-cookies; got != "" {
		t.Errorf("U8: another port of the machine gets %s", got)
	}
	for _, attack := range []string{
		fmt.Sprintf(`fetch('%s/instances', {credentials: 'include'}).then(r => r.text(), e => 'refused')`, origin),
		fmt.Sprintf(`fetch('%s/session', {method: 'POST', mode: 'no-cors', credentials: 'include', body: 'token=x'}).then(r => r.status === 0 ? 'refused' : 'answered', e => 'refused')`, origin),
		fmt.Sprintf(`new Promise(done => { const s = new EventSource('%s/live/instances', {withCredentials: true}); s.onmessage = () => done('read'); s.onerror = () => { s.close(); done('refused'); }; })`, origin),
		`Promise.resolve(document.getElementById('frame').contentDocument === null ? 'refused' : document.getElementById('frame').contentDocument.body.innerText.includes('Instances') ? 'read' : 'refused')`,
	} {
		if got := b.eval(attack); got != "refused" {
			t.Errorf("U7: %s gives %s", attack, got)
		}
	}
}

// TestManyInstances shows the views of 1,000 and of 10,000 Instances, with search and paging. Benchmarks measure their time.
func TestManyInstances(t *testing.T) {
	for _, count := range []int{1000, 10000} {
		t.Run(strconv.Itoa(count), func(t *testing.T) { viewMany(t, count) })
	}
}

func viewMany(t *testing.T, count int) {
	_, _, b := startMany(t, count)
	b.view()
	if rows := b.eval("document.querySelectorAll('tbody tr').length"); rows != "100" {
		t.Errorf("the first page has %s rows", rows)
	}
	b.do(chromedp.Click("#next"), chromedp.WaitVisible("#previous"))
	b.shows(fmt.Sprintf("101 to 200 of %d", count))
	last := fmt.Sprintf("i-%05d", count-1)
	b.do(chromedp.SendKeys("#q", last), chromedp.Click("form button"), chromedp.WaitNotPresent("#previous"))
	b.shows("team-a/" + last)
	b.checkAccess("a page of many")
}

// refuseInstances is an API server whose user may not see Instances.
func refuseInstances(r apitest.Request) (any, error) {
	if r.Kind == "Instance" {
		return nil, forbidden
	}
	return nil, nil
}
