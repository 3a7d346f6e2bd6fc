package runner

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// TestExplain (P21) checks when culprits are looked for: not before a step has waited, and then only when the answer may have changed.
func TestExplain(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &Runner{searchResults: lru.New(8), accounts: &apply.Accounts{}}
	run := run(nil)
	run.Account = apply.Account{} // without an account, nothing is read: the culprit is in the status of the object
	live := func(version, message string) *unstructured.Unstructured {
		obj := named("a")
		obj.SetResourceVersion(version)
		obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Broken", "message": message}}}
		return obj
	}
	for n, tc := range []struct {
		reason  string
		after   time.Duration
		state   plans.State
		version string
		message string
		// want is the message of the culprit, and next the time of the next search.
		want string
		next time.Duration
	}{
		{"a step that has just begun", 0, plans.Waiting, "1", "one", "", 10 * time.Second},
		{"the first search", 10 * time.Second, plans.Waiting, "1", "one", "one", 20 * time.Second},
		{"nothing has changed", 15 * time.Second, plans.Waiting, "1", "other", "one", 20 * time.Second},
		{"the time has come", 20 * time.Second, plans.Waiting, "1", "two", "two", 40 * time.Second},
		{"the object has changed a moment after the search", 21 * time.Second, plans.Waiting, "2", "three", "two", 30 * time.Second},
		{"and a while after it", 31 * time.Second, plans.Waiting, "2", "three", "three", 41 * time.Second},
		{"a failure is looked at at once", 32 * time.Second, plans.Fatal, "2", "four", "four", 52 * time.Second},
		{"a task that is done", 33 * time.Second, plans.Done, "2", "five", "", 0},
	} {
		w := &PreparedTask{run: run, started: begun, now: begun.Add(tc.after), suspect: &suspect{id: apply.IDOf(named("a")), live: live(tc.version, tc.message)}}
		run.searches = 0
		outcome := plans.Outcome{State: tc.state}
		next := r.explain(t.Context(), run, w, &outcome, Effects{}, nil)
		got := ""
		if outcome.Culprit != nil {
			got = outcome.Culprit.Message
		}
		if due := next.Sub(begun); got != tc.want || next.IsZero() != (tc.next == 0) || tc.next != 0 && due != tc.next {
			t.Errorf("%d, %s: culprit %q, next search after %s; want %q after %s", n, tc.reason, got, due, tc.want, tc.next)
		}
	}
}

// TestExplainBounded: one Execute searches for the culprits of a few tasks, and the others keep what they had.
func TestExplainBounded(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r, run, before := &Runner{searchResults: lru.New(8)}, run(nil), &v1beta1.Culprit{Message: "before"}
	run.searches = maxCulprits
	w := &PreparedTask{run: run, started: begun, now: begun.Add(time.Minute), suspect: &suspect{id: apply.IDOf(named("a")), live: named("a")}}
	outcome := plans.Outcome{State: plans.Waiting}
	if next := r.explain(t.Context(), run, w, &outcome, Effects{}, before); outcome.Culprit != before || !next.After(w.now) {
		t.Errorf("culprit %+v, next search %s", outcome.Culprit, next)
	}
}

// TestRefused (P21): what could not be written is the culprit, in the words of the API server and without sensitive values.
func TestRefused(t *testing.T) {
	r, run := &Runner{searchResults: lru.New(8)}, run(nil)
	run.Sensitive, run.Parameters = []string{"PASSWORD"}, map[string]string{"PASSWORD": "hunter2"}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errNoQuota)
	w := &PreparedTask{run: run, started: begun, now: begun.Add(time.Minute)}
	outcome := plans.Outcome{State: plans.Transient}
	r.explain(t.Context(), run, w, &outcome, Effects{Failed: []apply.Change{{ID: apply.IDOf(named("a")), Err: err}}}, nil)
	c := outcome.Culprit
	if c == nil || c.Kind != "ConfigMap" || c.Name != "a" || c.Reason != "Forbidden" || c.Message != `pods "a" is forbidden: exceeded quota of (sensitive)` || c.Since == nil {
		t.Errorf("the culprit is %+v", c)
	}
}

type quotaError struct{}

func (quotaError) Error() string { return "exceeded quota of hunter2" }

var errNoQuota = quotaError{}
