package conditions

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// instance is one with these runs, queue and conditions; conditions are written as in text.
func instance(plans map[string]v1beta1.ExecutionStatus, queue []string, before ...metav1.Condition) *v1beta1.Instance {
	i := &v1beta1.Instance{}
	i.Namespace, i.Name, i.Generation = "ns", "i", 7
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
	for name, status := range plans {
		i.Status.PlanStatus[name] = v1beta1.PlanStatus{Status: status, Message: "m"}
	}
	for _, name := range queue {
		i.Status.Queue = append(i.Status.Queue, v1beta1.QueuedPlan{PlanName: name})
	}
	i.Status.Conditions = before
	return i
}

// formatConditions lists conditions as `type=status reason: message`.
func formatConditions(i *v1beta1.Instance) []string {
	out := []string{}
	for _, c := range i.Status.Conditions {
		line := c.Type + "=" + string(c.Status) + " " + c.Reason
		if c.Message != "" {
			line += ": " + c.Message
		}
		out = append(out, line)
	}
	return out
}

// TestDeriveFailed (C62): an object that has failed while no plan runs has a reason of its own; a plan that runs or failed comes first.
func TestDeriveFailed(t *testing.T) {
	type runs = map[string]v1beta1.ExecutionStatus
	for status, want := range map[v1beta1.ExecutionStatus]string{
		v1beta1.Complete:   "Ready=False ResourceFailed: Workflow a: Error: no such image",
		v1beta1.InProgress: "Ready=Unknown PlanInProgress: plan deploy is running",
		v1beta1.FatalError: "Ready=False PlanInFatalError: plan deploy failed: m",
	} {
		in := instance(runs{"deploy": status}, nil)
		Derive(in, []string{"Workflow a: Error: no such image"}, true)
		if got := formatConditions(in)[0]; got != want {
			t.Errorf("deploy is %s: got %q, want %q", status, got, want)
		}
	}
}

// TestDerive is the truth table of engine rule 19.
func TestDerive(t *testing.T) {
	type runs = map[string]v1beta1.ExecutionStatus
	ready := metav1.Condition{Type: v1beta1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonResourcesReady, ObservedGeneration: 6}
	reconciling := metav1.Condition{Type: v1beta1.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonPlanInProgress}
	stalled := metav1.Condition{Type: v1beta1.StalledCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonPlanInFatalError}
	invalid := metav1.Condition{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonInvalidSpec, Message: "x"}
	for name, tc := range map[string]struct {
		reason  string
		in      *v1beta1.Instance
		unready []string
		want    []string
	}{
		"Nothing":     {"nothing ever ran: no condition", instance(nil, nil), nil, []string{}},
		"NeverRun":    {"NEVER_RUN is not run", instance(runs{"deploy": v1beta1.NeverRun}, nil), nil, []string{}},
		"Refused":     {"what was said of a spec that cannot be acted upon stays", instance(nil, nil, invalid), nil, []string{"Ready=False InvalidSpec: x"}},
		"Deploy":      {"1.3: unknown while deploy runs", instance(runs{"deploy": v1beta1.InProgress}, nil), nil, []string{"Ready=Unknown PlanInProgress: plan deploy is running", "Reconciling=True PlanInProgress: plan deploy is running"}},
		"Update":      {"1.3: so with update", instance(runs{"update": v1beta1.Pending, "deploy": v1beta1.Complete}, nil, ready), nil, []string{"Ready=Unknown PlanInProgress: plan update is running", "Reconciling=True PlanInProgress: plan update is running"}},
		"Upgrade":     {"1.3: and upgrade", instance(runs{"upgrade": v1beta1.InProgress}, nil, ready), nil, []string{"Ready=Unknown PlanInProgress: plan upgrade is running", "Reconciling=True PlanInProgress: plan upgrade is running"}},
		"Other":       {"1.3: other plans leave Ready", instance(runs{"backup": v1beta1.InProgress, "deploy": v1beta1.Complete}, nil, ready), []string{"ignored"}, []string{"Ready=True ResourcesReady", "Reconciling=True PlanInProgress: plan backup is running"}},
		"Retry":       {"the failure before is over once a plan runs", instance(runs{"deploy": v1beta1.InProgress}, nil, stalled), nil, []string{"Ready=Unknown PlanInProgress: plan deploy is running", "Reconciling=True PlanInProgress: plan deploy is running"}},
		"RunAndQueue": {"what waits is named, in order", instance(runs{"deploy": v1beta1.InProgress}, []string{"b", "a"}), nil, []string{"Ready=Unknown PlanInProgress: plan deploy is running", "Reconciling=True PlanInProgress: plans b, a are queued behind plan deploy (kubectl kudo plan cancel --instance i -n ns ends it), which waits for: m"}},
		"Complete":    {"idle: exactly one condition", instance(runs{"deploy": v1beta1.Complete}, nil, reconciling, stalled), nil, []string{"Ready=True ResourcesReady"}},
		"Unready":     {"idle: False with the reason", instance(runs{"deploy": v1beta1.Complete}, nil, ready), []string{"Deployment a: 0 of 1", "Pod b is missing"}, []string{"Ready=False ResourceNotReady: Deployment a: 0 of 1, Pod b is missing"}},
		"Corrected":   {"a spec that was refused is forgotten when the Instance is idle", instance(runs{"deploy": v1beta1.Complete}, nil, invalid), nil, []string{"Ready=True ResourcesReady"}},
		"Between":     {"a queue without a running plan says what waits, not that the last one runs", instance(runs{"deploy": v1beta1.Complete}, []string{"backup", "x"}), nil, []string{"Ready=True ResourcesReady", "Reconciling=True PlanInProgress: queued: backup, x"}},
		"Fatal":       {"the last run failed: not ready, and stalled", instance(runs{"deploy": v1beta1.FatalError}, nil, reconciling), []string{"ignored"}, []string{"Ready=False PlanInFatalError: plan deploy failed: m", "Stalled=True PlanInFatalError: plan deploy failed: m"}},
		"FatalOther":  {"1.3: any plan's failure", instance(runs{"backup": v1beta1.FatalError}, nil, ready), nil, []string{"Ready=False PlanInFatalError: plan backup failed: m", "Stalled=True PlanInFatalError: plan backup failed: m"}},
		"FatalQueue":  {"a failed run with others behind it", instance(runs{"backup": v1beta1.FatalError}, []string{"x"}), nil, []string{"Ready=False PlanInFatalError: plan backup failed: m", "Reconciling=True PlanInProgress: queued: x", "Stalled=True PlanInFatalError: plan backup failed: m"}},
	} {
		t.Run(name, func(t *testing.T) {
			Derive(tc.in, tc.unready, false)
			if diff := cmp.Diff(tc.want, formatConditions(tc.in)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			again := tc.in.DeepCopy()
			Derive(again, tc.unready, false)
			if diff := cmp.Diff(tc.in, again); diff != "" {
				t.Errorf("%s: a condition never flaps: -first +second:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObservedGeneration(t *testing.T) {
	in := instance(map[string]v1beta1.ExecutionStatus{"deploy": v1beta1.FatalError}, []string{"x"})
	Derive(in, nil, false)
	for _, c := range in.Status.Conditions {
		if c.ObservedGeneration != 7 {
			t.Errorf("condition %s speaks of generation %d, not 7", c.Type, c.ObservedGeneration)
		}
	}
}

func TestRefused(t *testing.T) {
	type runs = map[string]v1beta1.ExecutionStatus
	reconciling := metav1.Condition{Type: v1beta1.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonPlanInProgress}
	for name, tc := range map[string]struct {
		reason string
		in     *v1beta1.Instance
		want   []string
	}{
		"New":     {"rule 5: an Instance waits for its OperatorVersion with a condition", instance(nil, nil), []string{"Ready=False OperatorVersionNotFound: m"}},
		"Rest":    {"rule 19: idle: one condition", instance(runs{"deploy": v1beta1.Complete}, nil, reconciling), []string{"Ready=False OperatorVersionNotFound: m"}},
		"Running": {"what runs continues", instance(runs{"deploy": v1beta1.InProgress}, nil, reconciling), []string{"Reconciling=True PlanInProgress", "Ready=False OperatorVersionNotFound: m"}},
		"Queued":  {"what is queued still is", instance(runs{"deploy": v1beta1.Complete}, []string{"x"}, reconciling), []string{"Reconciling=True PlanInProgress", "Ready=False OperatorVersionNotFound: m"}},
	} {
		t.Run(name, func(t *testing.T) {
			SetRefused(tc.in, v1beta1.ReasonOperatorVersionNotFound, "m")
			if diff := cmp.Diff(tc.want, formatConditions(tc.in)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLongMessages(t *testing.T) {
	for offset := range 3 { // so that the cut falls into a character
		in := instance(map[string]v1beta1.ExecutionStatus{"deploy": v1beta1.Complete}, nil)
		Derive(in, []string{strings.Repeat("x", offset) + strings.Repeat("€", 10_000)}, false)
		message := in.Status.Conditions[0].Message
		if !utf8.ValidString(message) || len(message) > MaxMessage || !strings.HasSuffix(message, "…") {
			t.Errorf("a long message is cut between characters, since JSON would change a broken one: %d bytes, ends in %q", len(message), message[len(message)-6:])
		}
	}
}

// TestScheduledRun: G1, a run of a schedule changes neither Ready nor Stalled, whether it is running, fails or is complete.
func TestScheduledRun(t *testing.T) {
	for _, tc := range []struct {
		reason string
		last   v1beta1.ExecutionStatus
		status v1beta1.ExecutionStatus
		// afterFailure is set if the run of the same plan by hand before it has failed.
		afterFailure bool
		plan         string
		ready        metav1.ConditionStatus
		stalls       bool
	}{
		{"it is running, all is well", v1beta1.Complete, v1beta1.InProgress, false, "backup", metav1.ConditionTrue, false},
		{"it has failed, all is well", v1beta1.Complete, v1beta1.FatalError, false, "backup", metav1.ConditionTrue, false},
		{"it is running, an upgrade has failed", v1beta1.FatalError, v1beta1.InProgress, false, "backup", metav1.ConditionFalse, true},
		{"it is complete, an upgrade has failed", v1beta1.FatalError, v1beta1.Complete, false, "backup", metav1.ConditionFalse, true},
		{"it runs update", v1beta1.Complete, v1beta1.InProgress, false, "update", metav1.ConditionTrue, false},
		{"the plan had failed by hand, and has failed again", v1beta1.Complete, v1beta1.FatalError, true, "backup", metav1.ConditionFalse, true},
		{"the plan had failed by hand, and is complete", v1beta1.FatalError, v1beta1.Complete, true, "backup", metav1.ConditionTrue, false},
	} {
		i := &v1beta1.Instance{}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"upgrade": {Name: "upgrade", Status: tc.last, Revision: 1}}
		Derive(i, nil, false)
		st := v1beta1.PlanStatus{Name: tc.plan, Status: tc.status, Revision: 3, Scheduled: true}
		if tc.afterFailure {
			st.Counted = &v1beta1.CountedRun{Revision: 2, Status: v1beta1.FatalError}
		}
		i.Status.PlanStatus[tc.plan] = st
		Derive(i, nil, false)
		if got := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition); got.Status != tc.ready {
			t.Errorf("%s: ready is %+v", tc.reason, got)
		}
		if got := meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.StalledCondition); got != tc.stalls {
			t.Errorf("%s: stalled is %t", tc.reason, got)
		}
		if got := meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.ReconcilingCondition); got != (tc.status == v1beta1.InProgress) {
			t.Errorf("%s: reconciling is %t", tc.reason, got)
		}
	}
}

// TestSetScheduleFailed: the condition is there while a schedule has failed only.
func TestSetScheduleFailed(t *testing.T) {
	i := &v1beta1.Instance{}
	SetScheduleFailed(i, v1beta1.ReasonScheduledRunFailed, []string{"a", "b"})
	if c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ScheduleFailedCondition); c == nil || c.Message != "a; b" || c.Reason != "ScheduledRunFailed" {
		t.Errorf("the condition is %+v", c)
	}
	SetScheduleFailed(i, v1beta1.ReasonScheduledRunFailed, nil)
	if len(i.Status.Conditions) != 0 {
		t.Errorf("conditions: %+v", i.Status.Conditions)
	}
}

// TestReconcilingCulprit (P21): while a step waits for longer than a moment, the condition Reconciling has the cause; Ready does not change.
func TestReconcilingCulprit(t *testing.T) {
	in := instance(map[string]v1beta1.ExecutionStatus{"deploy": v1beta1.InProgress}, nil)
	run := in.Status.PlanStatus["deploy"]
	run.Phases = []v1beta1.PhaseStatus{{Steps: []v1beta1.StepStatus{{Tasks: []v1beta1.TaskStatus{{Culprit: &v1beta1.Culprit{Pod: "p"}}}}}}}
	in.Status.PlanStatus["deploy"] = run
	Derive(in, nil, false)
	want := []string{"Ready=Unknown PlanInProgress: plan deploy is running", "Reconciling=True PlanInProgress: plan deploy is running, and waits for: m"}
	if diff := cmp.Diff(want, formatConditions(in)); diff != "" {
		t.Error(diff)
	}
}
