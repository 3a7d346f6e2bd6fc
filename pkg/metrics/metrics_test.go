package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestTable checks R29: names and labels follow the rules of Prometheus, and no label but those of metrics with few series names an Instance.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Table {
		if seen[m.Name] {
			t.Errorf("%s is in the table twice", m.Name)
		}
		seen[m.Name] = true
		if !regexp.MustCompile(`^kudo_[a-z_]+$`).MatchString(m.Name) {
			t.Errorf("%s is no name of a metric of kudo", m.Name)
		}
		if total := strings.HasSuffix(m.Name, "_total"); total != (m.Type == Counter) {
			t.Errorf("%s is a %s: counters end in _total, and nothing else does", m.Name, m.Type)
		}
		if (m.Type == Histogram) != (len(m.Buckets) > 0) || m.Type == Histogram && !strings.HasSuffix(m.Name, "_seconds") {
			t.Errorf("%s: histograms have buckets and are in seconds", m.Name)
		}
		if !strings.HasSuffix(m.Help, ".") || len(m.Help) < 20 {
			t.Errorf("%s: its help %q is no sentence", m.Name, m.Help)
		}
		if named := slices.Contains(m.Labels, "instance") || slices.Contains(m.Labels, "namespace"); named != slices.Contains([]string{InstanceStuck, ScheduleLastSuccess}, m.Name) {
			t.Errorf("%s has the labels %v", m.Name, m.Labels)
		}
		if Find(m.Name).Help != m.Help {
			t.Errorf("Find returns another metric for %s", m.Name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Find takes a name that is not in the table")
		}
	}()
	Find("kudo_none")
}

// TestPage checks R29: docs/metrics.md has the table. UPDATE_METRICS=1 writes it.
func TestPage(t *testing.T) {
	var table strings.Builder
	const header = "| metric | type | labels | |\n|---|---|---|---|\n"
	table.WriteString(header)
	for _, m := range Table {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	page := filepath.Join("..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), header)
	rows, after, foundEnd := strings.Cut(rest, "\n\n")
	if !found || !foundEnd {
		t.Fatalf("%s has no table", page)
	}
	old := header + rows + "\n"
	if old == table.String() {
		return
	}
	if os.Getenv("UPDATE_METRICS") != "" {
		if err := os.WriteFile(page, []byte(before+table.String()+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the table of docs/metrics.md is old; run UPDATE_METRICS=1 go test ./pkg/metrics:\n%s", cmp.Diff(old, table.String()))
}

// TestValues: packages cannot make series without end.
func TestValues(t *testing.T) {
	v := NewValues(2)
	for _, tc := range []struct{ reason, value, want string }{
		{"the first", "a", "a"},
		{"the second, which is empty", "", ""},
		{"one too many", "b", Other},
		{"a known one", "a", "a"},
		{"a known one", "", ""},
	} {
		if got := v.Bound(tc.value); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
	wide := NewValues(10)
	for _, value := range []string{strings.Repeat("x", 101), "a\xff"} {
		if got := wide.Bound(value); got != Other {
			t.Errorf("%q is a label", got)
		}
	}
	if got := wide.Bound(strings.Repeat("x", 100)); len(got) != 100 {
		t.Errorf("%q, want a name of 100 characters", got)
	}
	for text, want := range map[string]bool{"": true, strings.Repeat("x", 100): true, strings.Repeat("x", 101): false, "a\xff": false} {
		if got := IsLabelValue(text); got != want {
			t.Errorf("%q may be the value of a label: %t, want %t", text, got, want)
		}
	}
	if got := new(Values).Bound("a"); got != Other {
		t.Errorf("the zero value allows %q", got)
	}
}

// TestValuesConcurrently is for -race, and checks that the bound holds.
func TestValuesConcurrently(t *testing.T) {
	v := NewValues(5)
	var all sync.Map
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				all.Store(v.Bound(fmt.Sprint((i+j)%20)), true)
			}
		})
	}
	group.Wait()
	count := 0
	all.Range(func(any, any) bool { count++; return true })
	if count != 6 {
		t.Errorf("%d values, want 5 and %s", count, Other)
	}
}

// TestRuns counts runs and errors.
func TestRuns(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	r, err := NewRuns(registry)
	if err != nil {
		t.Fatal(err)
	}
	r.End(Run{Operator: "redis", Plan: "deploy", Outcome: OutcomeComplete, Cause: "created", Duration: 2 * time.Second})
	r.End(Run{Operator: "redis", Plan: "deploy", Outcome: OutcomeFatal, Cause: "created"})
	r.TaskError("Apply", ClassTransient)
	r.TaskError("Apply", ClassTransient)
	want := `
# HELP kudo_plan_runs_total ` + Find(PlanRuns).Help + `
# TYPE kudo_plan_runs_total counter
kudo_plan_runs_total{cause="created",operator="redis",outcome="complete",plan="deploy"} 1
kudo_plan_runs_total{cause="created",operator="redis",outcome="fatal",plan="deploy"} 1
# HELP kudo_task_errors_total ` + Find(TaskErrors).Help + `
# TYPE kudo_task_errors_total counter
kudo_task_errors_total{class="transient",kind="Apply"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), PlanRuns, TaskErrors); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, PlanRunDuration); err != nil || n != 1 {
		t.Errorf("%d durations, want that of the run whose start is known (%v)", n, err)
	}
	if _, err := NewRuns(registry); err == nil {
		t.Error("the metrics can be registered twice")
	}
	for i := range 2 * MaxOperators {
		r.End(Run{Operator: fmt.Sprint("operator-", i), Plan: fmt.Sprint("plan-", i), Outcome: OutcomeComplete, Cause: "created"})
	}
	if n, err := testutil.GatherAndCount(registry, PlanRuns); err != nil || n > MaxOperators+3 {
		t.Errorf("%d series of runs, want at most one for each of %d operators (%v)", n, MaxOperators, err)
	}
	var none *Runs
	none.End(Run{Operator: "redis"})
	none.TaskError("Apply", ClassFatal)
}

const installer = "system:serviceaccount:kudo-system:kudo-installer"

func newRequest(t *testing.T, method, path, contentType, user string) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if user != "" {
		request.Header.Set("Impersonate-User", user)
	}
	return request
}

// TestRequests names what a request is counted as.
func TestRequests(t *testing.T) {
	const applied = "application/apply-patch+yaml"
	for _, tc := range []struct {
		reason, method, path, contentType, user string
		code                                    int
		request, write, conflict                string
		body                                    string
	}{
		{"a read", "GET", "/api/v1/namespaces/a/pods/b", "", "", 200, "get 200 ", "", "", ""},
		{"a write at an API server below another path", "PATCH", "/k8s/clusters/c-1/apis/kudo.dev/v1beta1/namespaces/a/instances/b/status", "application/merge-patch+json", "", 200, "patch 200 kudo.dev", "patch own", "", ""},
		{"a list", "GET", "/api/v1/namespaces/a/pods", "", "", 200, "list 200 ", "", "", ""},
		{"a list of all namespaces", "GET", "/apis/apps/v1/deployments", "", "", 200, "list 200 apps", "", "", ""},
		{"a watch", "GET", "/apis/apps/v1/deployments?watch=true", "", "", 200, "watch 200 apps", "", "", ""},
		{"a namespace", "GET", "/api/v1/namespaces/a", "", "", 404, "get 404 ", "", "", ""},
		{"discovery", "GET", "/apis/apps/v1", "", "", 200, "get 200 apps", "", "", ""},
		{"another path", "GET", "/version", "", "", 200, "get 200 ", "", "", ""},
		{"no answer", "GET", "/version", "", "", 0, "get error ", "", "", ""},
		{"an object of an Instance", "PATCH", "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=kudo", applied, "system:serviceaccount:a:kudo", 201, "apply 201 apps", "apply instance", "", ""},
		{"a shared object", "PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/b", applied, installer, 200, "apply 200 rbac.authorization.k8s.io", "apply installer", "", ""},
		{"a status of kudo", "PATCH", "/apis/kudo.dev/v1beta1/namespaces/a/instances/b/status", "application/merge-patch+json", "", 200, "patch 200 kudo.dev", "patch own", "", ""},
		{"a record", "POST", "/apis/apps/v1/namespaces/a/controllerrevisions", "", "", 201, "create 201 apps", "create own", "", ""},
		{"an event", "POST", "/api/v1/namespaces/a/events", "", "", 201, "create 201 ", "create own", "", ""},
		{"the namespace of an install plan", "DELETE", "/api/v1/namespaces/b", "", installer, 200, "delete 200 ", "delete installer", "", ""},
		{"a dry run", "PATCH", "/api/v1/namespaces/a/services/b?dryRun=All", applied, "", 409, "apply 409 ", "", "", ""},
		{"a review", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", "", 201, "create 201 authorization.k8s.io", "", "", ""},
		{"a token", "POST", "/api/v1/namespaces/a/serviceaccounts/b/token", "", "", 201, "create 201 ", "", "", ""},
		{"an older version", "PUT", "/apis/kudo.dev/v1beta1/namespaces/a/instances/b", "", "", 409, "update 409 kudo.dev", "", "version", ""},
		{"fields of another client", "PATCH", "/apis/apps/v1/namespaces/a/deployments/b", applied, "", 409, "apply 409 apps", "", "fields", `{"kind":"Status","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","field":".spec.replicas"}]}}`},
		{"an apply that is bound to an older version", "PATCH", "/apis/apps/v1/namespaces/a/deployments/b", applied, "", 409, "apply 409 apps", "", "version", `{"kind":"Status","reason":"Conflict"}`},
		{"an apply whose answer has no body", "PATCH", "/apis/apps/v1/namespaces/a/deployments/b", applied, "", 409, "apply 409 apps", "", "version", ""},
		{"a name that is taken", "POST", "/api/v1/namespaces/a/secrets", "", "", 409, "create 409 ", "", "exists", ""},
		{"an event of an account", "POST", "/api/v1/namespaces/a/events", "", "system:serviceaccount:a:kudo", 201, "create 201 ", "create instance", "", ""},
		{"a write that is refused", "POST", "/api/v1/namespaces/a/secrets", "", "", 403, "create 403 ", "", "", ""},
		{"a connection of another kind", "OPTIONS", "/api/v1/namespaces/a/secrets", "", "", 200, "other 200 ", "", "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			r, err := NewRequests(registry, installer)
			if err != nil {
				t.Fatal(err)
			}
			var answer *http.Response
			if tc.code != 0 {
				answer = &http.Response{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body))}
			}
			r.count(newRequest(t, tc.method, tc.path, tc.contentType, tc.user), answer)
			if answer != nil {
				if left, err := io.ReadAll(answer.Body); err != nil || string(left) != tc.body {
					t.Errorf("the body of the answer is %q (%v)", left, err)
				}
			}
			got := map[string]string{}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				values := map[string]string{}
				for _, label := range family.GetMetric()[0].GetLabel() {
					values[label.GetName()] = label.GetValue()
				}
				switch family.GetName() {
				case APIRequests:
					got["request"] = values["verb"] + " " + values["code"] + " " + values["group"]
				case Writes:
					got["write"] = values["verb"] + " " + values["class"]
				case WriteConflicts:
					got["conflict"] = values["reason"]
				}
			}
			want := map[string]string{"request": tc.request}
			if tc.write != "" {
				want["write"] = tc.write
			}
			if tc.conflict != "" {
				want["conflict"] = tc.conflict
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransport: answers and errors are passed on as they are, and a request that was cancelled is not counted.
func TestTransport(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	r, err := NewRequests(registry, installer)
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no connection")
	next := roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.URL.Path == "/version" {
			return &http.Response{StatusCode: http.StatusTeapot}, nil
		}
		return nil, failure
	})
	wrapped := r.Wrap(next)
	answer, err := wrapped.RoundTrip(newRequest(t, "GET", "/version", "", ""))
	if err != nil || answer.StatusCode != http.StatusTeapot {
		t.Errorf("the answer is %v, %v", answer, err)
	}
	if _, err := wrapped.RoundTrip(newRequest(t, "GET", "/api/v1/pods", "", "")); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	gone, cancel := newCancelled(t)
	cancel()
	if _, err := wrapped.RoundTrip(gone); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	want := `
# HELP kudo_api_requests_total ` + Find(APIRequests).Help + `
# TYPE kudo_api_requests_total counter
kudo_api_requests_total{code="418",group="",verb="get"} 1
kudo_api_requests_total{code="error",group="",verb="list"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), APIRequests); err != nil {
		t.Error(err)
	}
	if unwrapped, ok := wrapped.(interface{ WrappedRoundTripper() http.RoundTripper }); !ok || unwrapped.WrappedRoundTripper() == nil {
		t.Error("client-go cannot reach the transport below")
	}
}

func newCancelled(t *testing.T) (*http.Request, func()) {
	t.Helper()
	request := newRequest(t, "GET", "/api/v1/pods", "", "")
	ctx, cancel := context.WithCancel(t.Context())
	return request.WithContext(ctx), cancel
}

// FuzzTarget: paths that templates choose the parts of are read without a panic, and give no label of any length.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/api/v1/namespaces/a/pods/b", "/apis/a.example.org/v1", "/apis", "//", "/api/v1/namespaces/a/status", "/apis/\xff/v1/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		registry := prometheus.NewRegistry()
		r, err := NewRequests(registry, installer)
		if err != nil {
			t.Fatal(err)
		}
		request := newRequest(t, "POST", "/", "", "")
		request.URL.Path = path
		r.count(request, &http.Response{StatusCode: http.StatusOK})
		if _, err := registry.Gather(); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	})
}
