package instance

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/test/gen"
)

// origin is a source of a tarball that has a name only.
type origin struct{ crdtarball.Source }

// Identity implements crdtarball.Source.
func (origin) Identity() string { return "https://example.org/crds.tgz" }

// TestReportDownload: the status and the message say which attempt is under way, and why the one before failed.
func TestReportDownload(t *testing.T) {
	for _, tc := range []struct {
		progress crdtarball.Progress
		want     string
		status   v1beta1.CRDDownloadStatus
	}{
		{crdtarball.Progress{}, "waits for the CustomResourceDefinitions of Instance ns/web: downloads https://example.org/crds.tgz, attempt 1", v1beta1.CRDDownloadStatus{Attempt: 1}},
		{crdtarball.Progress{Attempt: 3, Bytes: 10, Total: 20, Last: errors.New("timeout")},
			"waits for the CustomResourceDefinitions of Instance ns/web: downloads https://example.org/crds.tgz, attempt 3 (the one before failed: timeout)", v1beta1.CRDDownloadStatus{Attempt: 3, Bytes: 10, TotalBytes: 20}},
	} {
		a := pure(waited("", nil, nil))
		got := a.crds.reportDownload(fetch.Wanted{Source: origin{}}, tc.progress)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		if diff := cmp.Diff(&tc.status, a.Next.Status.CRDs.Download); diff != "" {
			t.Errorf("attempt %d: -want +got: %s", tc.progress.Attempt, diff)
		}
	}
}

// TestReportFetched: a new tarball and a source that cannot be asked are events once, and the status names the tarball.
func TestReportFetched(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	f := newFixture(t)
	a := f.action(t)
	a.Next.Status.CRDs = &v1beta1.CRDTarballStatus{Download: &v1beta1.CRDDownloadStatus{Attempt: 2}}
	for _, step := range []struct {
		reason  string
		fetched bool
		digest  string
		stale   error
		events  []string
	}{
		{"it comes from the cache", false, "sha256:1", nil, nil},
		{"it is fetched again, and is the same", true, "sha256:1", nil, nil},
		{"it is another one", true, "sha256:2", nil, []string{"Normal CRDsFetched Fetched https://example.org/crds.tgz (sha256:2)"}},
		{"the source does not answer", false, "sha256:2", errors.New("no route"),
			[]string{"Warning CRDsStale https://example.org/crds.tgz cannot be asked for a newer tarball, and the one fetched at 2026-01-02T03:04:05Z is used: no route"}},
		{"the source still does not answer", false, "sha256:2", errors.New("no route"), nil},
		{"the source answers", false, "sha256:2", nil, nil},
	} {
		r := &crdtarball.Resolved{Digest: step.digest, Names: []string{"sites.example.org"}, URL: "https://example.org/crds.tgz", CachedAt: at, Fetched: step.fetched, Stale: step.stale}
		a.crds.reportFetched(r)
		if diff := cmp.Diff(step.events, f.recorded()); diff != "" {
			t.Errorf("%s: events: -want +got: %s", step.reason, diff)
		}
		crds := a.Next.Status.CRDs
		if crds.Digest != step.digest || crds.Stale != (step.stale != nil) || (crds.StaleReason != "") != crds.Stale || crds.Download != nil || !crds.CachedAt.Time.Equal(at.Truncate(time.Second)) {
			t.Errorf("%s: status %+v", step.reason, crds)
		}
		r.Names[0] = "changed"
		if crds.CRDs[0] != "sites.example.org" {
			t.Errorf("%s: the status shares its list with the cache", step.reason)
		}
	}
}

// TestBlockedCRD: what keeps a definition from being installed is the message, and a mismatch, which a user mends, an event, too.
func TestBlockedCRD(t *testing.T) {
	crd := idOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "sites.example.org")
	for _, tc := range []struct {
		reason  string
		changes apply.ChangeSet
		want    string
		events  int
	}{
		{"a definition is awaited", apply.ChangeSet{{ID: crd}, {ID: crd, Action: apply.Awaited, Err: errors.New("it is not established")}}, "waits for the CustomResourceDefinitions of Instance ns/web: it is not established", 0},
		{"a definition does not match", apply.ChangeSet{{ID: crd, Action: apply.Failed, Err: &share.MismatchError{}}}, "waits for the CustomResourceDefinitions of Instance ns/web: ", 1},
		{"all are there", apply.ChangeSet{{ID: crd}}, "", 0},
	} {
		f := newFixture(t)
		a := f.action(t)
		got := a.crds.blockedMessage(tc.changes)
		if len(got) < len(tc.want) || got[:len(tc.want)] != tc.want || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
		if events := f.recorded(); len(events) != tc.events || !a.result.Transient {
			t.Errorf("%s: events %q, transient %t", tc.reason, events, a.result.Transient)
		}
	}
}

// TestReportFetchError: why a tarball could not be had is an event once for each reason.
func TestReportFetchError(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("no route ", 1000)
	for _, step := range []struct {
		message string
		events  []string
	}{
		{long, []string{"Warning CRDsNotInstalled " + long}}, {long, nil},
		{"no route", []string{"Warning CRDsNotInstalled no route"}}, {"no route", nil}, {"denied", []string{"Warning CRDsNotInstalled denied"}},
	} {
		a := f.action(t)
		a.crds.reportFetchError(errors.New(step.message))
		a.waitForCRDs("deploy", a.crds.waitMessage(step.message))
		if err := a.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.events, f.recorded()); diff != "" {
			t.Errorf("%s: -want +got: %s", step.message, diff)
		}
		message := text.Truncate(a.crds.waitMessage(step.message), conditions.MaxMessage)
		if got := conditionText(f.instance(), v1beta1.CRDsReadyCondition); got != "False WaitingForCRDs "+message {
			t.Errorf("CRDsReady is %q", got)
		}
	}
}

// TestFetchBegun: a fetch that has just begun is not shown, so that a manager that dies after each write does not write it after each start.
// What the status said before stays.
func TestFetchBegun(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	f := newFixture(t, gen.Param("OTHER", "1", ""), func(ov *v1beta1.OperatorVersion) {
		ov.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: server.URL + "/crds.tgz", SHA256: strings.Repeat("0", 64)}}
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // before the server is closed
	start := func() {
		f.r.Tarballs = fetch.New(ctx, fetch.Options{Clock: f.clock, Cache: crdtarball.Options{Dir: t.TempDir(), Clock: f.clock},
			Policy: func() fetch.Policy { return fetch.Policy{Hosts: []string{strings.TrimPrefix(server.URL, "http://")}} }}, func(types.NamespacedName) {})
	}
	written := func() int {
		return len(slices.DeleteFunc(f.Requests(), func(r string) bool { return !strings.HasSuffix(r, "/status") }))
	}
	start()
	f.change(func(i *v1beta1.Instance) {
		i.Spec.Parameters = map[string]string{"UNKNOWN": "1"}
		i.Spec.Deadlines = []v1beta1.Deadline{{Plan: "none", After: "soon"}}
	})
	written()
	if result := f.reconcile(t); result.RequeueAfter != fetchPatience || written() != 0 {
		t.Errorf("the first reconcile is followed by one after %s, or writes a status", result.RequeueAfter)
	}
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		t.Fatalf("the source was not asked; Ready is %q", f.ready())
	}
	if events := f.recorded(); len(events) != 0 {
		t.Errorf("events %q before there is a status", events)
	}
	f.clock.Step(fetchPatience)
	f.reconcile(t)
	shown := f.ready()
	if !strings.Contains(shown, "downloads "+server.URL) || written() != 1 {
		t.Errorf("Ready is %q", shown)
	}
	if events := strings.Join(f.recorded(), "\n"); strings.Count(events, v1beta1.EventUnknownParameter) != 1 || strings.Count(events, v1beta1.EventDeadlineIgnored) != 1 {
		t.Errorf("events %q", events)
	}
	start()
	if result := f.reconcile(t); result.RequeueAfter != fetchPatience || written() != 0 || f.ready() != shown {
		t.Errorf("after a restart, the first reconcile is followed by one after %s, or writes a status: Ready is %q", result.RequeueAfter, f.ready())
	}
}
