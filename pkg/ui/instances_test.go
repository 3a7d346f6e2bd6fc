package ui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestInstances shows the page of Instances: state by word and sign, culprit, plan, version, drift, and those first that need a user.
func TestInstances(t *testing.T) {
	r := begin(t, "", instance("a", "ready", nil), instance("b", "failed", fail),
		instance("a", "drifted", func(i *v1beta1.Instance) {
			i.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "store", Message: "ConfigMap store: .data.x by mallory"}}
		}),
		instance("a", "running", func(i *v1beta1.Instance) {
			i.Status.PlanStatus["update"] = v1beta1.PlanStatus{Name: "update", Status: v1beta1.InProgress, Revision: 2, Phases: []v1beta1.PhaseStatus{
				{Name: "p", Steps: []v1beta1.StepStatus{{Name: "one", Status: v1beta1.Complete}, {Name: "two", Status: v1beta1.InProgress}}}}}
		}))
	status, body := r.get(t, "/instances")
	if status != http.StatusOK {
		t.Fatalf("%d\n%s", status, body)
	}
	at := 0
	for _, want := range []string{"4 Instances", `href="/instances?state=failed">1 failed`, "✗", "failed", "b/failed", "web-1.0.0", "report 1/2",
		"Job report: container main of pod report-x ended with exit code 7", "↻", "a/running", "update 1/2", "≠", "a/drifted", "ConfigMap store: .data.x by mallory",
		"✓", "ready", "a/ready"} {
		n := strings.Index(body[at:], want)
		if n < 0 {
			t.Fatalf("%q is not there, or not behind what comes before it:\n%s", want, body)
		}
		at += n
	}
}

// TestFilter: filter, namespace, state and page are in the address, so that it can be kept, and a wrong address finds nothing.
func TestFilter(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil), instance("b", "two", fail), instance("b", "three", nil))
	for _, tc := range []struct {
		reason, query string
		found, absent []string
	}{
		{"no filter", "", []string{"a/one", "b/two", "b/three"}, nil},
		{"a part of a name", "q=tw", []string{"b/two"}, []string{"a/one", "b/three"}},
		{"any case, several words", "q=B%2F+WEB", []string{"b/two", "b/three"}, []string{"a/one"}},
		{"a state as a word", "q=failed", []string{"b/two"}, []string{"b/three"}},
		{"a namespace", "ns=a", []string{"a/one"}, []string{"b/two"}},
		{"a state", "state=failed", []string{"b/two"}, []string{"a/one"}},
		{"nothing", "q=zzz", []string{"None of 3 Instances matches"}, []string{"b/two"}},
		{"a page that is not there is the last one", "page=9", []string{"a/one"}, nil},
		{"no number", "page=x", []string{"a/one"}, nil},
		{"a negative number", "page=-3", []string{"a/one"}, nil},
		{"a long text", "q=" + strings.Repeat("x", 5000), []string{"None of 3 Instances matches"}, []string{strings.Repeat("x", 300)}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			status, body := r.get(t, "/instances?"+tc.query)
			if status != http.StatusOK {
				t.Fatalf("%d", status)
			}
			for _, want := range tc.found {
				if !strings.Contains(body, want) {
					t.Errorf("%q is not there", want)
				}
			}
			for _, not := range tc.absent {
				if strings.Contains(body, not) {
					t.Errorf("%q is there", not)
				}
			}
		})
	}
}

// TestPaging: 1,000 Instances are shown by a hundred, and the filter stays in the addresses of other pages.
func TestPaging(t *testing.T) {
	rows := make([]instanceRow, 1000)
	for n := range rows {
		rows[n] = instanceRow{State: stateReady, Namespace: "a", Name: fmt.Sprintf("i-%03d", n), Operator: "web"}
	}
	r := begin(t, "")
	list := r.listInstances(rows, listQuery{Text: "web", Page: 3})
	if len(list.Rows) != pageSize || list.From != 201 || list.To != 300 || list.Previous != "/instances?page=2&q=web" || list.Next != "/instances?page=4&q=web" {
		t.Errorf("%d rows, %d to %d, %s, %s", len(list.Rows), list.From, list.To, list.Previous, list.Next)
	}
	if list := r.listInstances(rows, listQuery{Page: 10}); list.Next != "" || list.To != 1000 {
		t.Errorf("behind the last page is %q", list.Next)
	}
}

// TestStates: an Instance has one state, and the worst counts.
func TestStates(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.Instance)
		want   state
	}{
		{"it is ready", nil, stateReady},
		{"the manager has not seen it", func(i *v1beta1.Instance) { i.Status = v1beta1.InstanceStatus{} }, stateNew},
		{"its run has failed", fail, stateFailed},
		{"its run has failed, and others have changed it", func(i *v1beta1.Instance) { fail(i); i.Status.Drift = make([]v1beta1.ObjectDrift, 1) }, stateFailed},
		{"it is being deleted", func(i *v1beta1.Instance) { i.DeletionTimestamp = &now }, stateDeleting},
		{"it waits for a Secret", func(i *v1beta1.Instance) { i.Status.AggregatedStatus.Status = v1beta1.Pending }, stateBlocked},
		{"a plan is queued", func(i *v1beta1.Instance) { i.Status.Queue = make([]v1beta1.QueuedPlan, 1) }, stateRunning},
		{"the manager has not looked at spec", func(i *v1beta1.Instance) { i.Generation = i.Status.ObservedGeneration + 1 }, stateWaiting},
		{"it is not ready", func(i *v1beta1.Instance) { i.Status.Conditions[0].Status = "False" }, stateNotReady},
		{"others have changed it", func(i *v1beta1.Instance) { i.Status.Drift = make([]v1beta1.ObjectDrift, 1) }, stateDrifted},
	} {
		i := instance("a", "x", tc.change)
		if got := stateOf(i); got != tc.want {
			t.Errorf("%s: it is %s, want %s", tc.reason, got.Word, tc.want.Word)
		}
		_, _ = sinceOf(i, stateOf(i)), wrongOf(i, stateOf(i)) // none of them needs what a status may lack
	}
}
