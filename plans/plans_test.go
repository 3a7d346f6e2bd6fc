package plans

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func serial(phases ...v1beta1.Phase) v1beta1.Plan {
	return v1beta1.Plan{Strategy: v1beta1.Serial, Phases: phases}
}

func parallel(phases ...v1beta1.Phase) v1beta1.Plan { return v1beta1.Plan{Phases: phases} }

func phase(name string, strategy v1beta1.Strategy, steps ...v1beta1.Step) v1beta1.Phase {
	return v1beta1.Phase{Name: name, Strategy: strategy, Steps: steps}
}

func step(name string, tasks ...string) v1beta1.Step { return v1beta1.Step{Name: name, Tasks: tasks} }

// kinds of the tasks of tests: the first letter tells.
var kinds = map[string]string{
	"a": v1beta1.ApplyTask, "a2": v1beta1.ApplyTask, "a3": v1beta1.ApplyTask, "d": v1beta1.DeleteTask, "t": v1beta1.ToggleTask,
	"n": v1beta1.DummyTask, "p": v1beta1.PipeTask, "k": v1beta1.KudoOperatorTask,
}

var (
	done  = Outcome{State: Done}
	waits = Outcome{State: Waiting, Message: "Deployment x: 0 of 1 ready", Total: 1}
	retry = Outcome{State: Transient, Message: "forbidden"}
	fatal = Outcome{State: Fatal, Message: "invalid"}
)

// event is the outcome of the task at a place.
type event struct {
	at Place
	o  Outcome
}

// format writes a status on one line: plan, then phases, steps and tasks.
func format(st v1beta1.PlanStatus) string {
	short := map[v1beta1.ExecutionStatus]string{
		v1beta1.NeverRun: "never", v1beta1.Pending: "pending", v1beta1.InProgress: "going", v1beta1.TransientError: "error",
		v1beta1.FatalError: "fatal", v1beta1.Complete: "done",
	}
	var b strings.Builder
	b.WriteString(short[st.Status])
	for _, p := range st.Phases {
		fmt.Fprintf(&b, " %s=%s", p.Name, short[p.Status])
		for _, s := range p.Steps {
			var tasks []string
			for _, t := range s.Tasks {
				tasks = append(tasks, t.Name+"="+short[t.Status])
			}
			fmt.Fprintf(&b, " %s/%s=%s(%s)", p.Name, s.Name, short[s.Status], strings.Join(tasks, " "))
		}
	}
	return b.String()
}

// play starts a run and records events. The status goes through JSON before each, as through a restart.
func play(t *testing.T, plan v1beta1.Plan, events []event) v1beta1.PlanStatus {
	t.Helper()
	st := Start("deploy", plan, "run-1", 1, epoch)
	Summarize(plan, &st, epoch)
	for i, e := range events {
		st = stored(t, st)
		Record(plan, &st, e.at, e.o, epoch.Add(time.Duration(i+1)*time.Second))
	}
	return st
}

// stored is a status that was written to the apiserver and read back.
func stored(t interface {
	Helper()
	Fatalf(string, ...any)
}, st v1beta1.PlanStatus) v1beta1.PlanStatus {
	t.Helper()
	raw, err := json.Marshal(st)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var out v1beta1.PlanStatus
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return out
}

// TestRun is the loop of docs/design/engine.md, rule 9.
func TestRun(t *testing.T) {
	two := func(strategy v1beta1.Strategy) v1beta1.Phase {
		return phase("p", strategy, step("s", "a"), step("r", "a2"))
	}
	for name, tc := range map[string]struct {
		reason string
		plan   v1beta1.Plan
		events []event
		ready  []Place
		want   string
	}{
		"Empty":             {"2.2: an empty plan {} completes at once", v1beta1.Plan{}, nil, nil, "done"},
		"PhaseWithoutSteps": {"2.2: a phase without steps completes at once", serial(phase("p", "")), nil, nil, "done p=done"},
		"StepWithoutTasks":  {"2.2: a step without tasks completes at once", serial(phase("p", v1beta1.Serial, step("s"))), nil, nil, "done p=done p/s=done()"},
		"SerialPhase": {"2.2: a serial phase starts its first step only", parallel(two(v1beta1.Serial)), nil, []Place{{0, 0, 0}},
			"going p=pending p/s=pending(a=pending) p/r=pending(a2=pending)"},
		"SerialPhaseNext": {"2.2: the next step comes once the first is complete", parallel(two(v1beta1.Serial)), []event{{Place{0, 0, 0}, done}}, []Place{{0, 1, 0}},
			"going p=going p/s=done(a=done) p/r=pending(a2=pending)"},
		"SerialPhaseWaits": {"2.2: a step that is not done stops a serial phase", parallel(two(v1beta1.Serial)), []event{{Place{0, 0, 0}, waits}}, []Place{{0, 0, 0}},
			"going p=going p/s=going(a=going) p/r=pending(a2=pending)"},
		"ParallelPhase": {"2.2: the steps of a parallel phase are started in order, without waiting", parallel(two(v1beta1.Parallel)), []event{{Place{0, 0, 0}, waits}}, []Place{{0, 0, 0}, {0, 1, 0}},
			"going p=going p/s=going(a=going) p/r=pending(a2=pending)"},
		"OmittedStrategy": {"1.2: an omitted strategy is parallel", parallel(two("")), nil, []Place{{0, 0, 0}, {0, 1, 0}},
			"going p=pending p/s=pending(a=pending) p/r=pending(a2=pending)"},
		"MisspeltStrategy": {"1.2: only the word serial is serial", v1beta1.Plan{Strategy: "Serial", Phases: []v1beta1.Phase{phase("p", "", step("s", "a")), phase("q", "", step("s", "a"))}}, nil,
			[]Place{{0, 0, 0}, {1, 0, 0}}, "going p=pending p/s=pending(a=pending) q=pending q/s=pending(a=pending)"},
		"SerialPlan": {"2.2: a phase that is not done stops a serial plan", serial(two(""), phase("q", "", step("s", "a"))), []event{{Place{0, 0, 0}, done}}, []Place{{0, 1, 0}},
			"going p=going p/s=done(a=done) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)"},
		"SerialPlanNext": {"2.2: the next phase comes once the first is complete", serial(two(""), phase("q", "", step("s", "a"))), []event{{Place{0, 0, 0}, done}, {Place{0, 1, 0}, done}}, []Place{{1, 0, 0}},
			"going p=done p/s=done(a=done) p/r=done(a2=done) q=pending q/s=pending(a=pending)"},
		"ParallelPlan": {"2.2: the phases of a parallel plan do not wait", parallel(two(v1beta1.Serial), phase("q", v1beta1.Serial, step("s", "a"))), []event{{Place{1, 0, 0}, done}}, []Place{{0, 0, 0}},
			"going p=pending p/s=pending(a=pending) p/r=pending(a2=pending) q=done q/s=done(a=done)"},
		"EmptyPhaseBehind": {"2.2: a phase without steps is done when its turn comes, not before", serial(phase("p", "", step("s", "a")), phase("q", "")), []event{{Place{0, 0, 0}, waits}}, []Place{{0, 0, 0}},
			"going p=going p/s=going(a=going) q=pending"},
		"EmptyStepBehind": {"2.2: a step without tasks is done when its turn comes, not before", serial(phase("p", v1beta1.Serial, step("s", "a"), step("r"))), []event{{Place{0, 0, 0}, waits}}, []Place{{0, 0, 0}},
			"going p=going p/s=going(a=going) p/r=pending()"},
		"EmptyStepBetween": {"2.2: a step without tasks does not hold up those behind it", serial(phase("p", v1beta1.Serial, step("s", "a"), step("e"), step("r", "a"))), []event{{Place{0, 0, 0}, done}}, []Place{{0, 2, 0}},
			"going p=going p/s=done(a=done) p/e=done() p/r=pending(a=pending)"},
		"EmptyStepsOnly": {"2.2: what needs nothing is done at once, through the whole plan", serial(phase("p", v1beta1.Serial, step("s"), step("r")), phase("q", v1beta1.Serial, step("s"))), nil, nil,
			"done p=done p/s=done() p/r=done() q=done q/s=done()"},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, tc.plan, tc.events)
			if diff := cmp.Diff(tc.want, format(st)); diff != "" {
				t.Errorf("%s: status: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ready, Ready(tc.plan, kinds, st)); diff != "" {
				t.Errorf("%s: ready: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStep is engine rule 9: what happens within a step.
func TestStep(t *testing.T) {
	at := func(task int) Place { return Place{0, 0, task} }
	for name, tc := range map[string]struct {
		reason string
		tasks  []string
		events []event
		ready  []Place
		want   string
	}{
		"InOrder":   {"rule 9: tasks are started in order, all of them", []string{"a", "d", "k"}, nil, []Place{at(0), at(1), at(2)}, "pending(a=pending d=pending k=pending)"},
		"Waiting":   {"rule 9: a task that is not done does not hold back the next", []string{"a", "a2"}, []event{{at(0), waits}}, []Place{at(0), at(1)}, "going(a=going a2=pending)"},
		"Transient": {"rule 9: nor does a transient error; only the step shows it", []string{"a", "a2"}, []event{{at(0), retry}, {at(1), done}}, []Place{at(0), at(1)}, "error(a=error a2=done)"},
		"Passed":    {"2.2: a transient error goes when the task gets on", []string{"a", "a2"}, []event{{at(0), retry}, {at(0), waits}}, []Place{at(0), at(1)}, "going(a=going a2=pending)"},
		"Fatal":     {"rule 9: a fatal one holds back everything", []string{"a", "a2"}, []event{{at(0), fatal}}, nil, "fatal(a=fatal a2=pending)"},
		"FatalWins": {"2.2: fatal over transient", []string{"a", "a2"}, []event{{at(0), retry}, {at(1), fatal}}, nil, "fatal(a=error a2=fatal)"},
		"Again": {"2.2: Apply, Toggle and KudoOperator that are done are checked again while the step is in progress", []string{"a", "t", "k", "a2"},
			[]event{{at(0), done}, {at(1), done}, {at(2), done}, {at(3), waits}}, []Place{at(0), at(1), at(2), at(3)}, "going(a=done t=done k=done a2=going)"},
		"Relapse": {"2.2: an Apply that is no longer healthy is not done any more", []string{"a", "a2"}, []event{{at(0), done}, {at(0), waits}}, []Place{at(0), at(1)}, "going(a=going a2=pending)"},
		"Once": {"rule 9: Delete, Pipe and Dummy that are done are not run again in the run", []string{"d", "p", "n", "a"},
			[]event{{at(0), done}, {at(1), done}, {at(2), done}, {at(3), waits}}, []Place{at(3)}, "going(d=done p=done n=done a=going)"},
		"OnceNotYet": {"rule 9: those that are not done are run again", []string{"d", "p", "n"}, []event{{at(0), waits}, {at(1), retry}, {at(2), waits}}, []Place{at(0), at(1), at(2)}, "error(d=going p=error n=going)"},
		"Twice": {"rule 9: status is kept by place: one task listed twice runs twice", []string{"d", "a", "d"},
			[]event{{at(0), done}, {at(1), done}}, []Place{at(1), at(2)}, "going(d=done a=done d=pending)"},
		"Complete": {"2.2: the step is done when all tasks are", []string{"a", "d"}, []event{{at(0), done}, {at(1), done}}, nil, "done(a=done d=done)"},
		"Reopened": {"2.2: a step is done when all tasks are, at their last look: a look that was still to come counts", []string{"a", "a2", "d"},
			[]event{{at(0), waits}, {at(1), done}, {at(2), done}, {at(0), done}, {at(1), waits}}, []Place{at(0), at(1)}, "going(a=done a2=going d=done)"},
		"ReopenedFatal": {"rule 9: and a failure is never lost", []string{"a", "a2"},
			[]event{{at(0), waits}, {at(1), done}, {at(0), done}, {at(1), fatal}}, nil, "fatal(a=done a2=fatal)"},
		"DummyStays": {"rule 10: a Dummy with done false stays in progress", []string{"n"}, []event{{at(0), Outcome{}}, {at(0), Outcome{}}}, []Place{at(0)}, "going(n=going)"},
		"UnknownTask": {"2.2: a task that no definition names is tried (and fails where it is run)", []string{"missing"}, nil, []Place{at(0)},
			"pending(missing=pending)"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := serial(phase("p", v1beta1.Serial, step("s", tc.tasks...)), phase("behind", ""))
			if strings.HasPrefix(name, "Reopened") {
				plan.Phases[1].Steps = []v1beta1.Step{step("s", "a")}
			}
			st := play(t, plan, tc.events)
			_, got, _ := strings.Cut(format(st), "p/s=")
			got, _, _ = strings.Cut(got, " behind")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ready, Ready(plan, kinds, st)); diff != "" {
				t.Errorf("%s: ready: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMessages is what people read at each level.
func TestMessages(t *testing.T) {
	plan := parallel(phase("p", "", step("s", "a", "a2"), step("r", "a3")))
	for name, tc := range map[string]struct {
		reason            string
		events            []event
		plan, phase, step string
		planS, phaseS     v1beta1.ExecutionStatus
	}{
		"Transient": {"2.2: KUDO's words for a transient error; phase and plan never are ERROR", []event{{Place{0, 0, 0}, retry}},
			"A transient error when executing task deploy.p.s.a. Will retry. forbidden", "", "A transient error when executing task deploy.p.s.a. Will retry. forbidden",
			v1beta1.InProgress, v1beta1.InProgress},
		"Fatal": {"a failed run says what failed, at each level", []event{{Place{0, 0, 1}, fatal}},
			"task deploy.p.s.a2 failed: invalid", "task deploy.p.s.a2 failed: invalid", "task deploy.p.s.a2 failed: invalid", v1beta1.FatalError, v1beta1.FatalError},
		"FatalSilent": {"a failure without a reason is a failure all the same", []event{{Place{0, 0, 1}, Outcome{State: Fatal}}},
			"task deploy.p.s.a2 failed: no reason given", "task deploy.p.s.a2 failed: no reason given", "task deploy.p.s.a2 failed: no reason given", v1beta1.FatalError, v1beta1.FatalError},
		"Waiting": {"the plan names the step that waits", []event{{Place{0, 0, 0}, waits}},
			"step p/s: Deployment x: 0 of 1 ready", "", "Deployment x: 0 of 1 ready", v1beta1.InProgress, v1beta1.InProgress},
		"FirstOfTwo": {"the first in order, not in time", []event{{Place{0, 0, 1}, Outcome{State: Waiting, Message: "second"}}, {Place{0, 0, 0}, Outcome{State: Waiting, Message: "first"}}},
			"step p/s: first", "", "first", v1beta1.InProgress, v1beta1.InProgress},
		"Gone": {"what is done has no message any more", []event{{Place{0, 0, 0}, waits}, {Place{0, 0, 0}, Outcome{State: Done, Message: "left over"}}},
			"", "", "", v1beta1.InProgress, v1beta1.InProgress},
		"Complete": {"nor has a complete run", []event{{Place{0, 0, 0}, waits}, {Place{0, 0, 0}, done}, {Place{0, 0, 1}, done}, {Place{0, 1, 0}, done}},
			"", "", "", v1beta1.Complete, v1beta1.Complete},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, plan, tc.events)
			p := st.Phases[0]
			want := []any{tc.planS, tc.plan, tc.phaseS, tc.phase, tc.step}
			if diff := cmp.Diff(want, []any{st.Status, st.Message, p.Status, p.Message, p.Steps[0].Message}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRecordTellsChanges(t *testing.T) {
	plan := serial(phase("p", v1beta1.Serial, step("s", "a"), step("r", "a2")))
	st := Start("deploy", plan, "u", 3, epoch)
	at, later := Place{0, 0, 0}, epoch.Add(time.Hour)
	if !Record(plan, &st, at, waits, epoch.Add(time.Second)) {
		t.Error("the first outcome is a change")
	}
	before := stored(t, st)
	if Record(plan, &st, at, waits, later) || !cmp.Equal(before, stored(t, st)) {
		t.Errorf("the same outcome again changes nothing, so that no status is written (12: hot loop): %s", cmp.Diff(before, stored(t, st)))
	}
	if !Record(plan, &st, at, Outcome{State: Waiting, Message: waits.Message, Ready: 1, Total: 1}, later) || !st.LastUpdatedTimestamp.Time.Equal(later) {
		t.Error("a change of counts is a change, and is stamped")
	}
	Record(plan, &st, at, done, later)
	s := st.Phases[0].Steps[0]
	if s.StartedTimestamp == nil || !s.StartedTimestamp.Time.Equal(epoch.Add(time.Second)) || s.FinishedTimestamp == nil || !s.FinishedTimestamp.Time.Equal(later) {
		t.Errorf("a step keeps when it started and ended: %v, %v", s.StartedTimestamp, s.FinishedTimestamp)
	}
	if st.Phases[0].Steps[1].StartedTimestamp != nil || st.FinishedTimestamp != nil {
		t.Error("what has not started has no times")
	}
	Record(plan, &st, Place{0, 1, 0}, done, later)
	if st.Status != v1beta1.Complete || st.FinishedTimestamp == nil {
		t.Errorf("the run is over: %s", format(st))
	}
}

func TestEnter(t *testing.T) {
	plan := serial(phase("p", v1beta1.Serial, step("s", "a")))
	st := Start("deploy", plan, "u", 1, epoch)
	MarkStepStarted(&st, Place{0, 0, 0}, epoch.Add(time.Second))
	MarkStepStarted(&st, Place{0, 0, 0}, epoch.Add(time.Hour))
	Record(plan, &st, Place{0, 0, 0}, done, epoch.Add(2*time.Second))
	s := st.Phases[0].Steps[0]
	if s.StartedTimestamp == nil || !s.StartedTimestamp.Time.Equal(epoch.Add(time.Second)) || !s.FinishedTimestamp.Time.Equal(epoch.Add(2*time.Second)) {
		t.Errorf("a step lasts from the first work on it to the last: %v to %v", s.StartedTimestamp, s.FinishedTimestamp)
	}
}

func TestTerminalRunsDoNotChange(t *testing.T) {
	plan := serial(phase("p", "", step("s", "a", "a2")))
	for _, end := range []event{{Place{0, 0, 0}, fatal}, {Place{0, 0, 1}, done}} {
		st := play(t, plan, []event{{Place{0, 0, 0}, done}, end})
		before := stored(t, st)
		if Record(plan, &st, Place{0, 0, 0}, waits, epoch.Add(time.Hour)) {
			t.Errorf("2.2: nothing is recorded in a run that is %s", st.Status)
		}
		Summarize(plan, &st, epoch.Add(time.Hour))
		Fail(&st, "cancelled", epoch.Add(time.Hour))
		if diff := cmp.Diff(before, stored(t, st)); diff != "" || Ready(plan, kinds, st) != nil {
			t.Errorf("2.2: a run that is %s stays as it is, and nothing of it is ready: -want +got:\n%s", st.Status, diff)
		}
	}
}

func TestFail(t *testing.T) {
	st := play(t, serial(phase("p", "", step("s", "n"))), []event{{Place{0, 0, 0}, Outcome{}}})
	Fail(&st, "cancelled", epoch.Add(time.Minute))
	if st.Status != v1beta1.FatalError || st.Message != "cancelled" || st.FinishedTimestamp == nil || !st.LastUpdatedTimestamp.Time.Equal(epoch.Add(time.Minute)) {
		t.Errorf("rule 10: a plan that never ends is ended with a message: %+v", st)
	}
}

// TestIsCanceled: no task can fail in a way that looks as if a user had ended the run, since its failure names the task.
func TestIsCanceled(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		status  v1beta1.ExecutionStatus
		message string
		want    bool
	}{
		{"a user has ended it", v1beta1.FatalError, CancelMessage, true},
		{"it runs", v1beta1.InProgress, CancelMessage, false},
		{"it is complete", v1beta1.Complete, CancelMessage, false},
		{"a task has failed", v1beta1.FatalError, "task deploy.a.a.a failed: " + CancelMessage, false},
		{"a longer message", v1beta1.FatalError, CancelMessage + " by the operator", false},
		{"none", v1beta1.FatalError, "", false},
	} {
		if got := IsCanceled(tc.status, tc.message); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
	plan := serial(phase("p", "", step("s", "", "a")))
	st := Start("deploy", plan, "u", 1, epoch)
	Record(plan, &st, Place{}, Outcome{State: Fatal, Message: CancelMessage}, epoch)
	if IsCanceled(st.Status, st.Message) {
		t.Errorf("a task that fails with the message of a cancelled run passes for one: %q", st.Message)
	}
}

func TestRestart(t *testing.T) {
	plan := serial(phase("p", "", step("s", "d", "a")))
	old := play(t, plan, []event{{Place{0, 0, 0}, done}, {Place{0, 0, 1}, waits}})
	again := Start("deploy", plan, "run-2", 2, epoch.Add(time.Hour))
	if diff := cmp.Diff("pending p=pending p/s=pending(d=pending a=pending)", format(again)); diff != "" {
		t.Errorf("1.3: a new uid resets the whole plan, run-once tasks too: -want +got:\n%s", diff)
	}
	if again.UID == old.UID || again.Revision != 2 || again.Message != "" || again.FinishedTimestamp != nil || again.StartedTimestamp == nil {
		t.Errorf("a run has its own uid, number and times: %+v", again)
	}
	if diff := cmp.Diff([]Place{{0, 0, 0}, {0, 0, 1}}, Ready(plan, kinds, again)); diff != "" {
		t.Errorf("rule 9: not run again within its run, but in the next: -want +got:\n%s", diff)
	}
}

func TestKinds(t *testing.T) {
	got := Kinds([]v1beta1.Task{{Name: "x", Kind: v1beta1.DeleteTask}, {Name: "y", Kind: v1beta1.ApplyTask}, {Name: "x", Kind: v1beta1.ApplyTask}})
	if diff := cmp.Diff(map[string]string{"x": v1beta1.DeleteTask, "y": v1beta1.ApplyTask}, got); diff != "" {
		t.Errorf("the first definition of a name counts, as where tasks are run: -want +got:\n%s", diff)
	}
	for kind, want := range map[string]bool{
		v1beta1.DeleteTask: true, v1beta1.PipeTask: true, v1beta1.DummyTask: true,
		v1beta1.ApplyTask: false, v1beta1.ToggleTask: false, v1beta1.KudoOperatorTask: false, "": false,
	} {
		if RunOnce(kind) != want {
			t.Errorf("rule 9: RunOnce(%q) is %v", kind, !want)
		}
	}
}

// A message of any length fits into the status, and is cut between characters.
func TestRecordLongMessage(t *testing.T) {
	plan := v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"t"}}}}}}
	for name, tc := range map[string]struct{ reason, message, want string }{
		"Short": {"what fits stays", strings.Repeat("a", maxMessage), strings.Repeat("a", maxMessage)},
		"Long":  {"the end is cut", strings.Repeat("a", maxMessage+7), strings.Repeat("a", maxMessage-3) + "…"},
		"Rune":  {"no character is cut in two", strings.Repeat("a", maxMessage-4) + "ä!!!", strings.Repeat("a", maxMessage-4) + "…"},
	} {
		st := Start("deploy", plan, "uid", 1, time.Now())
		Record(plan, &st, Place{}, Outcome{State: Waiting, Message: tc.message}, time.Now())
		if got := st.Phases[0].Steps[0].Tasks[0].Message; got != tc.want {
			t.Errorf("%s: %s: %d bytes, want %d", name, tc.reason, len(got), len(tc.want))
		}
	}
}

// TestCompletedStatus: R32: a run that stands for what a restore has created is complete in all its parts.
func TestCompletedStatus(t *testing.T) {
	plan := v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "a", Steps: []v1beta1.Step{{Name: "b", Tasks: []string{"c", "d"}}, {Name: "empty"}}}, {Name: "none"}}}
	st := CompletedStatus("deploy", plan, "uid", 4, time.Unix(1, 0))
	if st.Status != v1beta1.Complete || st.UID != "uid" || st.Revision != 4 || st.FinishedTimestamp == nil {
		t.Errorf("the plan is %+v", st)
	}
	for _, phase := range st.Phases {
		if phase.Status != v1beta1.Complete {
			t.Errorf("phase %s is %s", phase.Name, phase.Status)
		}
		for _, step := range phase.Steps {
			if step.Status != v1beta1.Complete {
				t.Errorf("step %s is %s", step.Name, step.Status)
			}
		}
	}
}

// TestLatestRunOfSchedules: G1, a run of a schedule that has ended is not the last one. The last run by hand of its plan may be.
func TestLatestRunOfSchedules(t *testing.T) {
	deploy := v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.Complete, Revision: 1}
	for _, tc := range []struct {
		reason string
		backup v1beta1.PlanStatus
		want   string
	}{
		{"it has failed", v1beta1.PlanStatus{Status: v1beta1.FatalError, Revision: 2, Scheduled: true}, "deploy"},
		{"it is complete", v1beta1.PlanStatus{Status: v1beta1.Complete, Revision: 2, Scheduled: true}, "deploy"},
		{"it continues", v1beta1.PlanStatus{Status: v1beta1.InProgress, Revision: 2, Scheduled: true}, "backup"},
		{"a run by hand was before it", v1beta1.PlanStatus{Status: v1beta1.FatalError, Revision: 3, Scheduled: true,
			Counted: &v1beta1.CountedRun{Revision: 2, Status: v1beta1.Complete}}, "backup"},
		{"a run by hand was before the last deploy", v1beta1.PlanStatus{Status: v1beta1.Complete, Revision: 3, Scheduled: true,
			Counted: &v1beta1.CountedRun{Status: v1beta1.FatalError}}, "deploy"},
		{"it was ended for a schedule", v1beta1.PlanStatus{Status: v1beta1.FatalError, Revision: 2, Counted: &v1beta1.CountedRun{}}, "deploy"},
		{"a user has asked for it", v1beta1.PlanStatus{Status: v1beta1.FatalError, Revision: 2}, "backup"},
	} {
		if got, _ := LatestRun(map[string]v1beta1.PlanStatus{"deploy": deploy, "backup": tc.backup}); got != tc.want {
			t.Errorf("%s: the last plan is %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestCountedRun: G1, what counts of a plan whose last run is one of a schedule.
func TestCountedRun(t *testing.T) {
	run := func(status v1beta1.ExecutionStatus, message string, counted *v1beta1.CountedRun) v1beta1.PlanStatus {
		return v1beta1.PlanStatus{Name: "backup", Status: status, Message: message, Revision: 9, Scheduled: true, Counted: counted}
	}
	failed, complete := &v1beta1.CountedRun{Revision: 3, Status: v1beta1.FatalError, Message: "no space left"}, &v1beta1.CountedRun{Revision: 3, Status: v1beta1.Complete}
	byHand := v1beta1.PlanStatus{Name: "backup", Status: v1beta1.FatalError, Message: "no space left", Revision: 3}
	for _, tc := range []struct {
		reason string
		st     v1beta1.PlanStatus
		want   *v1beta1.CountedRun
	}{
		{"a user has asked for it", byHand, failed},
		{"no user has ever asked for the plan", run(v1beta1.Complete, "", nil), nil},
		{"the run by hand was complete, the schedule fails", run(v1beta1.FatalError, "away", complete), complete},
		{"the run by hand has failed, the schedule fails, too", run(v1beta1.FatalError, "away", failed), failed},
		{"the run by hand has failed, the schedule continues", run(v1beta1.InProgress, "away", failed), failed},
		{"the run by hand has failed, the schedule is complete", run(v1beta1.Complete, "", failed), complete},
		{"never run", v1beta1.PlanStatus{Name: "backup", Status: v1beta1.NeverRun}, nil},
	} {
		if diff := cmp.Diff(tc.want, NewCounted(tc.st)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestHasArrived: the last run of deploy, update and upgrade says whether an Instance is what its spec says.
func TestHasArrived(t *testing.T) {
	type all = map[string]v1beta1.PlanStatus
	at := metav1.NewTime(time.Unix(1000, 0))
	for _, tc := range []struct {
		reason string
		all    all
		want   bool
	}{
		{"nothing ran", nil, false},
		{"deploy is complete", all{"deploy": {Status: v1beta1.Complete, Revision: 1}}, true},
		{"deploy runs", all{"deploy": {Status: v1beta1.InProgress, Revision: 1}}, false},
		{"only another plan is complete", all{"deploy": {Status: v1beta1.NeverRun}, "backup": {Status: v1beta1.Complete, Revision: 2}}, false},
		{"deploy has failed, update has mended it", all{"deploy": {Status: v1beta1.FatalError, Revision: 1}, "update": {Status: v1beta1.Complete, Revision: 2}}, true},
		{"upgrade has failed", all{"deploy": {Status: v1beta1.Complete, Revision: 1}, "upgrade": {Status: v1beta1.FatalError, Revision: 2}}, false},
		{"another plan has failed", all{"deploy": {Status: v1beta1.Complete, Revision: 1}, "backup": {Status: v1beta1.FatalError, Revision: 2}}, true},
		{"a run of KUDO, which has no number", all{"deploy": {Status: v1beta1.Complete, LastUpdatedTimestamp: &at}}, true},
	} {
		if got := HasArrived(tc.all); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
