package plans

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// genPlan draws a plan, with tasks that are listed several times, and with phases and steps that are empty.
func genPlan(t *rapid.T) v1beta1.Plan {
	names := []string{"a", "a2", "d", "t", "n", "p", "k", "missing"}
	strategy := rapid.SampledFrom([]v1beta1.Strategy{v1beta1.Serial, v1beta1.Parallel, ""})
	plan := v1beta1.Plan{Strategy: strategy.Draw(t, "plan")}
	for i := range rapid.IntRange(0, 3).Draw(t, "phases") {
		p := phase(string(rune('A'+i)), strategy.Draw(t, "phase"))
		for j := range rapid.IntRange(0, 3).Draw(t, "steps") {
			p.Steps = append(p.Steps, step(string(rune('A'+j)), rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "tasks")...))
		}
		plan.Phases = append(plan.Phases, p)
	}
	return plan
}

// machine is a manager that runs a plan, with what it must hold to.
type machine struct {
	t      *rapid.T
	plan   v1beta1.Plan
	stored v1beta1.PlanStatus // what the apiserver has
	st     v1beta1.PlanStatus // what the manager has in memory
	now    time.Time
	// crashes reports whether the manager may die and lose what is not stored.
	crashes bool
	// outcome is what comes of a task.
	outcome func() State
}

func newMachine(t *rapid.T, crashes bool, outcome func() State) *machine {
	plan := genPlan(t)
	st := Start("deploy", plan, "run", 1, epoch)
	return &machine{t: t, plan: plan, stored: stored(t, st), st: st, now: epoch, crashes: crashes, outcome: outcome}
}

// perhaps stores, dies, or does neither. It returns whether it died.
func (m *machine) perhaps() bool {
	m.now = m.now.Add(time.Second)
	if !m.crashes {
		return false
	}
	switch rapid.IntRange(0, 5).Draw(m.t, "outcome") {
	case 0:
		return true
	case 1, 2:
		m.stored = stored(m.t, m.st)
	}
	return false
}

// pass is one reconcile, as the controller does it.
func (m *machine) pass() {
	m.st = stored(m.t, m.stored)
	if !Matches(m.plan, m.st) {
		m.t.Fatalf("a status that was stored fits: %s", format(m.st))
	}
	Summarize(m.plan, &m.st, m.now)
	tried := map[Place]bool{}
	for {
		m.consistent()
		batch := slices.DeleteFunc(Ready(m.plan, kinds, m.st), func(at Place) bool { return tried[at] })
		if m.perhaps() {
			return
		}
		if len(batch) == 0 {
			break
		}
		for _, at := range batch {
			tried[at] = true
			if m.st.Status.IsTerminal() {
				break
			}
			m.mayRun(at)
			MarkStepStarted(&m.st, at, m.now)
			before := m.st.DeepCopy()
			changed := Record(m.plan, &m.st, at, Outcome{State: m.outcome(), Message: "m"}, m.now)
			m.check(changed != equal(before, &m.st), "whether anything changed")
			m.consistent()
			if m.perhaps() {
				return
			}
		}
	}
	m.stored = stored(m.t, m.st)
}

// mayRun checks that all that a task waits for is done, and that it is not a second time.
func (m *machine) mayRun(at Place) {
	m.t.Helper()
	finished := func(s v1beta1.StepStatus) bool {
		return !slices.ContainsFunc(s.Tasks, func(t v1beta1.TaskStatus) bool { return t.Status != v1beta1.Complete })
	}
	for i, p := range m.st.Phases[:at.Phase+1] {
		before := m.plan.Strategy == v1beta1.Serial && i < at.Phase
		for j, s := range p.Steps {
			if i == at.Phase {
				before = m.plan.Phases[i].Strategy == v1beta1.Serial && j < at.Step
			}
			if before && !finished(s) {
				m.t.Fatalf("2.2: %v runs before step %s/%s is done: %s", at, p.Name, s.Name, format(m.st))
			}
		}
	}
	task := m.st.Phases[at.Phase].Steps[at.Step].Tasks[at.Task]
	if RunOnce(kinds[task.Name]) && task.Status == v1beta1.Complete {
		m.t.Fatalf("rule 9: %v (%s) was done in this run, and runs again: %s", at, task.Name, format(m.st))
	}
	if m.st.Status.IsTerminal() {
		m.t.Fatalf("2.2: %v runs after the end: %s", at, format(m.st))
	}
}

// consistent checks that what is above adds up what is below.
func (m *machine) consistent() {
	m.t.Helper()
	st := m.st
	want := map[v1beta1.ExecutionStatus]int{}
	for _, p := range st.Phases {
		want[p.Status]++
		steps := map[v1beta1.ExecutionStatus]int{}
		for _, s := range p.Steps {
			steps[s.Status]++
			m.check(s.Status == stepOf(s) || len(s.Tasks) == 0 && s.Status == v1beta1.Pending, "step "+p.Name+"/"+s.Name)
		}
		m.check(p.Status != v1beta1.TransientError, "2.2: only steps are ERROR: phase "+p.Name)
		m.check((p.Status == v1beta1.FatalError) == (steps[v1beta1.FatalError] > 0), "fatal phase "+p.Name)
		m.check(p.Status != v1beta1.Complete || steps[v1beta1.Complete] == len(p.Steps), "complete phase "+p.Name)
		m.check(p.Status != v1beta1.Pending || steps[v1beta1.Pending] == len(p.Steps), "pending phase "+p.Name)
		m.check(p.Status != v1beta1.InProgress || steps[v1beta1.Complete] < len(p.Steps), "phase in progress "+p.Name)
	}
	m.check((st.Status == v1beta1.FatalError) == (want[v1beta1.FatalError] > 0), "fatal plan")
	m.check((st.Status == v1beta1.Complete) == (want[v1beta1.Complete] == len(st.Phases)), "complete plan")
	m.check(st.Status.IsTerminal() || st.Status == v1beta1.InProgress, "a plan that has begun is IN_PROGRESS")
	m.check(st.Status.IsTerminal() == (st.FinishedTimestamp != nil), "end of the run")
	m.check(st.Status.IsTerminal() || len(Ready(m.plan, kinds, st)) > 0, "a plan that is running has something to do")
}

func (m *machine) check(holds bool, what string) {
	m.t.Helper()
	if !holds {
		m.t.Fatalf("%s is not what adds up: %s", what, format(m.st))
	}
}

// stepOf is the status that a step's tasks add up to.
func stepOf(s v1beta1.StepStatus) v1beta1.ExecutionStatus {
	n := map[v1beta1.ExecutionStatus]int{}
	for _, t := range s.Tasks {
		n[t.Status]++
	}
	switch {
	case n[v1beta1.FatalError] > 0:
		return v1beta1.FatalError
	case n[v1beta1.Complete] == len(s.Tasks):
		return v1beta1.Complete
	case n[v1beta1.TransientError] > 0:
		return v1beta1.TransientError
	case n[v1beta1.Pending] == len(s.Tasks):
		return v1beta1.Pending
	}
	return v1beta1.InProgress
}

func (m *machine) tasks() int {
	n := 0
	for _, p := range m.plan.Phases {
		for _, s := range p.Steps {
			n += len(s.Tasks)
		}
	}
	return n
}

// A plan whose tasks get done in the end gets done, whatever happens before, and never runs what must wait.
func TestPropertyPlansFinish(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		healthy := false
		m := newMachine(t, true, nil)
		m.outcome = func() State {
			if healthy {
				return Done
			}
			return rapid.SampledFrom([]State{Done, Done, Waiting, Transient}).Draw(t, "outcome")
		}
		for range rapid.IntRange(0, 6).Draw(t, "passes") {
			m.pass()
		}
		healthy, m.crashes = true, false
		m.pass()
		if m.stored.Status != v1beta1.Complete {
			t.Fatalf("once all is well, one pass is enough: %s", format(m.stored))
		}
	})
}

// A crash at any moment loses what was not stored, and nothing else: each pass without a crash gets on.
func TestPropertyCrashesLoseNothingStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, true, func() State { return Done })
		runs := map[Place]int{}
		for range 4 {
			before := m.stored
			m.pass()
			for i, p := range before.Phases {
				for j, s := range p.Steps {
					for k, task := range s.Tasks {
						if at := (Place{i, j, k}); task.Status == v1beta1.Complete && m.stored.Phases[i].Steps[j].Tasks[k].Status != v1beta1.Complete {
							t.Fatalf("%v was stored as done, and is not any more: %s", at, format(m.stored))
						} else if task.Status == v1beta1.Complete {
							runs[at]++
						}
					}
				}
			}
		}
		if len(runs) > m.tasks() {
			t.Fatalf("%d places of %d", len(runs), m.tasks())
		}
	})
}

// After a fatal outcome nothing runs any more; before it, the plan is as consistent as ever.
func TestPropertyFatalEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failed := false
		m := newMachine(t, false, nil)
		m.outcome = func() State {
			if failed {
				t.Fatalf("rule 9: something runs after a fatal outcome")
			}
			s := rapid.SampledFrom([]State{Done, Done, Waiting, Transient, Fatal}).Draw(t, "outcome")
			failed = s == Fatal
			return s
		}
		for range 4 {
			m.pass()
		}
		if failed != (m.stored.Status == v1beta1.FatalError) {
			t.Fatalf("failed %v: %s", failed, format(m.stored))
		}
		if failed && m.stored.Message == "" {
			t.Fatalf("a failed run says why: %+v", m.stored)
		}
	})
}
