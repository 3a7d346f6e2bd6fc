package ui

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// startMany serves the page for many Instances, and opens it.
func startMany(t testing.TB, count int) (*apitest.Server, *served, *tab) {
	t.Helper()
	var list []client.Object
	for n := range count {
		change := func(*v1beta1.Instance) {}
		if n%50 == 0 {
			change = failed
		}
		list = append(list, ready("team-a", fmt.Sprintf("i-%05d", n), "web-1.0.0", change))
	}
	api, s, b := start(t, list...)
	b.shows(fmt.Sprintf("%d Instances", count))
	return api, s, b
}

// view loads the list of Instances, and returns the time until its document is there.
func (b *tab) view() time.Duration {
	b.t.Helper()
	b.visit("/instances")
	return b.milliseconds("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
}

// milliseconds returns the value of an expression, a number of milliseconds.
func (b *tab) milliseconds(expression string) time.Duration {
	b.t.Helper()
	value := b.eval(expression)
	ms, err := strconv.ParseFloat(value, 64)
	if err != nil {
		b.t.Fatalf("%s is %q", expression, value)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// BenchmarkBrowserView measures the first view of 1,000 Instances in the browser, until the document is there.
func BenchmarkBrowserView(b *testing.B) {
	_, _, page := startMany(b, 1000)
	var took time.Duration
	for b.Loop() {
		took += page.view()
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/view")
}

// BenchmarkBrowserUpdate measures how long a change of one of 1,000 Instances takes to reach the page, and how many messages it needs.
func BenchmarkBrowserUpdate(b *testing.B) {
	api, _, page := startMany(b, 1000)
	page.visit("/instances")
	received := func() int {
		page.mu.Lock()
		defer page.mu.Unlock()
		return page.messages
	}
	var took time.Duration
	before := received()
	n := 0
	for b.Loop() {
		n++
		took += page.update(func() { api.Put(ready("team-a", "i-00000", fmt.Sprintf("web-2.0.%d", n), failed)) }, fmt.Sprintf("2.0.%d", n))
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/update")
	b.ReportMetric(float64(received()-before)/float64(b.N), "messages/update")
}

// update changes an object, and returns the time until the page has a text.
func (b *tab) update(change func(), text string) time.Duration {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.eval(`window.seen = new Promise(done => new MutationObserver(() => { if (document.body.innerText.includes(` + string(quoted) + `)) done(performance.timeOrigin + performance.now()); }).observe(document.body, {childList: true, subtree: true})); 0`)
	begun := time.Now()
	change()
	return b.milliseconds("window.seen.then(at => at - " + strconv.FormatFloat(float64(begun.UnixMicro())/1000, 'f', 3, 64) + ")")
}
