package instance

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans/trigger"
	"kudo.dev/kudo/test/gen"
)

// waited returns an Instance whose condition Ready has a reason, with plans.
func waited(reason string, plans map[string]v1beta1.PlanStatus, base *v1beta1.Baseline) *v1beta1.Instance {
	i := gen.Instance("web", webVersion("web-1.0"), nil)
	i.Generation = 2
	i.Status = v1beta1.InstanceStatus{PlanStatus: plans, Baseline: base}
	if reason != "" {
		i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "old"}}
	}
	return i
}

// statuses returns the statuses of plans in short.
func statuses(plans map[string]v1beta1.PlanStatus) texts {
	out := texts{}
	for name, st := range plans {
		out[name] = string(st.Status)
		if st.Message != "" {
			out[name] += " " + st.Message
		}
	}
	return out
}

// TestClearPending: the marker of a wait is cleared, a run that has not begun is none, and an Instance that never ran has no plans.
func TestClearPending(t *testing.T) {
	marked := func() map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Pending, Message: "waits"}, "backup": {Status: v1beta1.NeverRun}}
	}
	for _, tc := range []struct {
		reason string
		i      *v1beta1.Instance
		want   texts
	}{
		{"it is new", waited("", nil, nil), texts{}},
		{"it waited, and never ran", waited(v1beta1.ReasonWaitingForInstallPlan, marked(), nil), texts{}},
		{"it waited for CRDs, and never ran", waited(v1beta1.ReasonWaitingForCRDs, marked(), nil), texts{}},
		{"it waited, and has run before", waited(v1beta1.ReasonWaitingForInstallPlan, marked(), &v1beta1.Baseline{}), texts{"deploy": "NEVER_RUN", "backup": "NEVER_RUN"}},
		{"a run of it has not begun", waited("", map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Pending, UID: "run"}}, &v1beta1.Baseline{}), texts{"deploy": "PENDING"}},
		{"it comes from KUDO", waited("", map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}, "backup": {Status: v1beta1.NeverRun}}, nil), texts{"deploy": "COMPLETE", "backup": "NEVER_RUN"}},
	} {
		before := tc.i.DeepCopy()
		a := pure(tc.i)
		for range 2 {
			a.clearPending()
			if diff := cmp.Diff(tc.want, statuses(a.Next.Status.PlanStatus)); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		}
		if diff := cmp.Diff(before.Status, a.Committed.Status); diff != "" {
			t.Errorf("%s: what is committed was changed: %s", tc.reason, diff)
		}
	}
}

// TestSetPending: a plan that waits is shown, and nothing else of what the reconcile has decided is kept.
func TestSetPending(t *testing.T) {
	for _, tc := range []struct {
		reason string
		i      *v1beta1.Instance
		plan   string
		want   texts
	}{
		{"it never ran", waited("", nil, nil), "deploy", texts{"deploy": "PENDING waits", "backup": "NEVER_RUN"}},
		{"it waited for another cause", waited(v1beta1.ReasonWaitingForCRDs, map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Pending, Message: "old"}}, nil), "deploy",
			texts{"deploy": "PENDING waits", "backup": "NEVER_RUN"}},
		{"another plan waited", waited(v1beta1.ReasonWaitingForCRDs, map[string]v1beta1.PlanStatus{"backup": {Status: v1beta1.Pending, Message: "old"}, "deploy": {Status: v1beta1.Complete}}, &v1beta1.Baseline{}), "upgrade",
			texts{"deploy": "COMPLETE", "backup": "NEVER_RUN"}},
		{"the last run of the plan stays", waited("", map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.FatalError, Message: "failed", UID: "run"}}, &v1beta1.Baseline{}), "deploy",
			texts{"deploy": "FATAL_ERROR failed", "backup": "NEVER_RUN"}},
	} {
		a := pure(tc.i)
		a.content = &runner.ParsedVersion{Spec: &webVersion("web-1.0", gen.Serial("backup", "app")).Spec}
		a.Summarize = a.summarize
		a.Next.Status.Queue, a.Next.Status.Resources = []v1beta1.QueuedPlan{{PlanName: "backup"}}, []v1beta1.ResourceStatus{{Kind: "ConfigMap"}}
		a.setPending(tc.plan, v1beta1.ReasonWaitingForInstallPlan, "waits")
		status := a.Next.Status
		if diff := cmp.Diff(tc.want, statuses(status.PlanStatus)); diff != "" {
			t.Errorf("%s: plans: -want +got: %s", tc.reason, diff)
		}
		if status.AggregatedStatus != (v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: "waits"}) || status.ObservedGeneration != 2 || a.Summarize != nil {
			t.Errorf("%s: status %+v, generation %d", tc.reason, status.AggregatedStatus, status.ObservedGeneration)
		}
		if status.Queue != nil || status.Resources != nil || !cmp.Equal(tc.i.Status.Baseline, status.Baseline) {
			t.Errorf("%s: what was decided is kept: %+v", tc.reason, status)
		}
		if got := conditionText(a.Next, v1beta1.ReadyCondition); got != "False WaitingForInstallPlan waits" {
			t.Errorf("%s: Ready is %q", tc.reason, got)
		}
	}
}

// TestBlockedEvents: what blocks an Instance is an event when it comes, when it changes, and when it comes again.
func TestBlockedEvents(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.recorded()
	missing := "Warning InvalidOperatorVersion waits for OperatorVersion ns/web-%s, which does not exist: install the package or correct spec.operatorVersion"
	for n, step := range []struct {
		version string
		events  []string
	}{
		{"2.0", []string{fmt.Sprintf(missing, "2.0")}}, {"2.0", nil}, {"3.0", []string{fmt.Sprintf(missing, "3.0")}}, {"1.0", nil}, {"3.0", []string{fmt.Sprintf(missing, "3.0")}},
	} {
		f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-" + step.version })
		f.settle(t)
		if diff := cmp.Diff(step.events, f.recorded()); diff != "" {
			t.Errorf("step %d, version %s: -want +got: %s", n, step.version, diff)
		}
	}
}

// TestAdoptDecision: a decision replaces the baseline, except the fields that plans/trigger does not know.
func TestAdoptDecision(t *testing.T) {
	old := &v1beta1.Baseline{
		OperatorVersion: "ns/web-0.9", Parameters: texts{"A": "old"}, PlanName: "backup", Revision: 7, Snapshot: "web-5", ContentHash: "1.hash", Suspended: true, RunAs: "ns/kudo", Sensitive: true,
	}
	decided := v1beta1.Baseline{OperatorVersion: "ns/web-1.0", Parameters: texts{"A": "new"}}
	both := v1beta1.Baseline{
		OperatorVersion: "ns/web-1.0", Parameters: texts{"A": "new"}, Revision: 7, Snapshot: "web-5", ContentHash: "1.hash", Suspended: true, RunAs: "ns/kudo", Sensitive: true,
	}
	first := decided
	first.Generation = waited("", nil, nil).Generation
	queue := []v1beta1.QueuedPlan{{PlanName: "backup"}}
	for _, tc := range []struct {
		reason   string
		old      *v1beta1.Baseline
		decision trigger.Decision
		want     *v1beta1.Baseline
		queue    []v1beta1.QueuedPlan
	}{
		{"there was none", nil, trigger.Decision{Baseline: decided.DeepCopy()}, &first, nil},
		{"there was one", old, trigger.Decision{Baseline: decided.DeepCopy(), Queue: queue}, &both, queue},
		{"it does not change, and the queue is empty again", old, trigger.Decision{}, old, nil},
	} {
		i := waited("", nil, tc.old.DeepCopy())
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "update"}}
		a := pure(i)
		a.adoptDecision(tc.decision)
		if diff := cmp.Diff(tc.want, a.Next.Status.Baseline); diff != "" {
			t.Errorf("%s: baseline: -want +got: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.queue, a.Next.Status.Queue); diff != "" {
			t.Errorf("%s: queue: -want +got: %s", tc.reason, diff)
		}
	}
}
