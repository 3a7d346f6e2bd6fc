package plans

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// latePlan has two steps, one after the other.
var latePlan = v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{phase("p", v1beta1.Serial, step("s1", "a"), step("s2", "a"))}}

// TestMarkLate: P19, the words of a passed deadline are in the messages, go with the deadline, and change nothing when they are set again.
func TestMarkLate(t *testing.T) {
	st := Start("deploy", latePlan, "run", 1, epoch)
	Record(latePlan, &st, Place{}, Outcome{State: Waiting, Message: "Pod x"}, epoch)
	late := Late{}
	late.Add("p/s1", "past the deadline of 1m")
	late.Add("p/s2", "past the deadline of 1m")
	for _, tc := range []struct {
		reason            string
		late              Late
		added             int
		plan, step, field string
	}{
		{"in time", Late{}, 0, "step p/s1: Pod x", "Pod x", ""},
		{"a started step is late, and one that is not started is not", late, 1, "step p/s1: Pod x (past the deadline of 1m)", "Pod x (past the deadline of 1m)",
			"past the deadline of 1m"},
		{"again", late, 0, "step p/s1: Pod x (past the deadline of 1m)", "Pod x (past the deadline of 1m)", "past the deadline of 1m"},
		{"and slow: no event tells of that", Late{Steps: late.Steps, Slow: map[string]string{"p/s1": "longer than usual"}}, 0,
			"step p/s1: Pod x (past the deadline of 1m, longer than usual)", "Pod x (past the deadline of 1m, longer than usual)",
			"past the deadline of 1m, longer than usual"},
		{"slow only", Late{Slow: map[string]string{"p/s1": "longer than usual"}}, 0, "step p/s1: Pod x (longer than usual)", "Pod x (longer than usual)",
			"longer than usual"},
		{"the plan", Late{Plan: "too late"}, 1, "step p/s1: Pod x (too late)", "Pod x", ""},
		{"the deadline is removed", Late{}, 0, "step p/s1: Pod x", "Pod x", ""},
	} {
		added := MarkLate(latePlan, &st, tc.late, epoch)
		s := st.Phases[0].Steps[0]
		if len(added) != tc.added || st.Message != tc.plan || s.Message != tc.step || s.Late != tc.field || st.Phases[0].Steps[1].Late != "" {
			t.Errorf("%s: added %v; plan %q, step %q, late %q", tc.reason, added, st.Message, s.Message, s.Late)
		}
		before := st.DeepCopy()
		MarkLate(latePlan, &st, tc.late, epoch.Add(time.Hour))
		Record(latePlan, &st, Place{}, Outcome{State: Waiting, Message: "Pod x"}, epoch.Add(time.Hour))
		if diff := cmp.Diff(before, &st); diff != "" {
			t.Errorf("%s: the same again changes the status: %s", tc.reason, diff)
		}
	}
	MarkLate(latePlan, &st, Late{Plan: "x", Steps: late.Steps}, epoch)
	Record(latePlan, &st, Place{}, Outcome{State: Done}, epoch)
	Record(latePlan, &st, Place{Step: 1}, Outcome{State: Done}, epoch)
	if st.Status != v1beta1.Complete || st.Late != "" || st.Message != "" || st.Phases[0].Steps[0].Late != "" {
		t.Errorf("a complete run is late: %+v", st)
	}
	if added := MarkLate(latePlan, &st, late, epoch); added != nil || st.Phases[0].Steps[0].Late != "" {
		t.Errorf("a run that has ended was marked: %v", added)
	}
}

// TestFailStep: P19, a step fails permanently, and the run with it; a run that has ended stays as it was.
func TestFailStep(t *testing.T) {
	st := Start("deploy", latePlan, "run", 1, epoch)
	Record(latePlan, &st, Place{}, Outcome{State: Waiting}, epoch)
	FailStep(&st, Place{}, "too slow", epoch)
	p := st.Phases[0]
	for what, got := range map[string][2]string{
		"plan": {string(st.Status), st.Message}, "phase": {string(p.Status), p.Message}, "step": {string(p.Steps[0].Status), p.Steps[0].Message},
	} {
		if got != [2]string{"FATAL_ERROR", "too slow"} {
			t.Errorf("%s: %v", what, got)
		}
	}
	if Record(latePlan, &st, Place{}, Outcome{State: Done}, epoch) {
		t.Error("the step was completed after it had failed")
	}
	before := st.DeepCopy()
	FailStep(&st, Place{Step: 1}, "again", epoch.Add(time.Hour))
	if diff := cmp.Diff(before, &st); diff != "" {
		t.Errorf("a run that has ended has changed: %s", diff)
	}
}

// TestLateOfPhases (P19): of steps with one name in two phases, the one of the key is late, and nothing else of the status changes.
func TestLateOfPhases(t *testing.T) {
	plan := v1beta1.Plan{Strategy: v1beta1.Parallel, Phases: []v1beta1.Phase{phase("a", v1beta1.Serial, step("s", "a")), phase("b", v1beta1.Serial, step("s", "a"))}}
	for _, tc := range []struct {
		reason, key string
		want        [2]string
	}{
		{"the first phase", "a/s", [2]string{"late", ""}},
		{"the second phase", "b/s", [2]string{"", "late"}},
		{"no phase", "s", [2]string{}},
		{"a phase that does not exist", "c/s", [2]string{}},
	} {
		st := Start("deploy", plan, "run", 1, epoch)
		for i := range plan.Phases {
			Record(plan, &st, Place{Phase: i}, Outcome{State: Transient, Message: "no rights"}, epoch)
		}
		before := st.DeepCopy()
		MarkLate(plan, &st, Late{Steps: map[string]string{tc.key: "late"}}, epoch)
		for i, want := range tc.want {
			s := st.Phases[i].Steps[0]
			if s.Late != want || (want != "") != strings.HasSuffix(s.Message, " (late)") || s.Status != v1beta1.TransientError {
				t.Errorf("%s: step of phase %d is late %q, %q, want %q", tc.reason, i, s.Late, s.Message, want)
			}
		}
		MarkLate(plan, &st, Late{}, epoch)
		if diff := cmp.Diff(before, &st); diff != "" {
			t.Errorf("%s: setting it back leaves %s", tc.reason, diff)
		}
	}
}

// TestWithLate (P19): the beginning of a message stays as it is.
func TestWithLate(t *testing.T) {
	for _, tc := range []struct{ reason, message, late, want string }{
		{"in time", "Pod x", "", "Pod x"},
		{"late", "Pod x", "too late", "Pod x (too late)"},
		{"without a message", "", "too late", "too late"},
		{"nothing", "", "", ""},
	} {
		if got := withLate(tc.message, tc.late); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
