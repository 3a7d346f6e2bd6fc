package ui

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestCatalog walks from the list of packages to the command that installs one, and to another version.
func TestCatalog(t *testing.T) {
	_, _, b := start(t, objects()...)
	b.do(chromedp.Click("nav a[href='/catalog']"), chromedp.WaitVisible("#repository"))
	b.shows("An example of the documentation")
	b.do(chromedp.SetValue("#name", "we"), chromedp.Click("form button"), chromedp.WaitVisible("#name[value=we]"))
	if got := b.eval("document.querySelectorAll('tbody th a').length + location.search"); got != "1?repository=examples&name=we" {
		t.Errorf("a part of a name finds %s", got)
	}
	b.do(chromedp.Click("tbody th a"), chromedp.WaitVisible(".command"))
	b.shows("kubectl kudo install web --repo examples --operator-version 0.1.0 --app-version 1.27.4 --dry-run")
	b.shows("deployments.apps: get, patch, delete")
	b.checkAccess("a package")
}

// TestDrift shows the drift of an Instance with a diff, and leads to the preview of the run that sets it back.
func TestDrift(t *testing.T) {
	_, _, b := start(t, objects()...)
	b.visit("/instances/team-a/book")
	b.shows("mallory")
	b.do(chromedp.Click("#drift-link"), chromedp.WaitVisible("form[action$='/preview'] button"))
	if got := b.eval("document.querySelector('tbody tr').innerText.split('\\t').join(' ')"); got != `.data["redis.conf"] appendonly no appendonly yes` {
		t.Errorf("the difference is %s", got)
	}
	b.do(chromedp.Click("form button"), chromedp.WaitVisible("pre.preview"))
	b.shows("plan trigger --instance book -n team-a --name deploy")
}
