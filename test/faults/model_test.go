package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/gen"
)

// subject is something whose plans are judged, as it was stored.
type subject struct {
	name string
	// versions are the OperatorVersions whose plans its runs may be of.
	versions   []*v1beta1.OperatorVersionSpec
	plans      map[string]v1beta1.PlanStatus
	aggregated v1beta1.AggregatedStatus
	// newest is the number of the newest run, as far as it is noted apart from the runs.
	newest int64
}

// checkModel compares a state with the one before, which may lie some way back, or be nil, and returns what cannot be: the
// model of plans, as the property tests of package plans have it.
//
//	at any moment  at most one plan runs; steps add up their tasks, phases their steps, the plan its phases; where it is
//	               serial, nothing has begun before all that stands before it is done; who runs has something to do
//	of two states  a run that has ended is as it was; what runs once and is done stays done; what the tasks came to
//	               gives, by the pure engine, the status that was stored; runs have numbers that grow
func checkModel(before, after *subject) []string {
	out := overall(after)
	for _, name := range plans.Names(after.plans) {
		st := after.plans[name]
		if st.Status == v1beta1.NeverRun || st.Status == "" {
			continue
		}
		version := fitting(after, name)
		if version == nil {
			out = append(out, fmt.Sprintf("run %d of %s is of no plan that there is", st.Revision, name))
			continue
		}
		plan, kinds := version.Plans[name], plans.Kinds(version.Tasks)
		if st.Revision == 0 {
			out = append(out, unwritten(st)...)
			continue
		}
		out = append(out, sums(plan, kinds, st)...)
		out = append(out, order(plan, st)...)
		if before == nil {
			continue
		}
		if old := before.plans[name]; old.UID == st.UID && old.Revision == st.Revision {
			out = append(out, follows(plan, kinds, old, st)...)
		} else if st.Revision <= highest(before) {
			out = append(out, fmt.Sprintf("a new run of %s has number %d, and there was %d", name, st.Revision, highest(before)))
		}
	}
	if before != nil && after.newest < before.newest {
		out = append(out, fmt.Sprintf("the newest run was %d, and is %d", before.newest, after.newest))
	}
	for n := range out {
		out[n] = after.name + ": " + out[n]
	}
	return out
}

// fitting is a version that has the plan which a run is of.
func fitting(s *subject, name string) *v1beta1.OperatorVersionSpec {
	for _, v := range s.versions {
		if plan, defined := v.Plans[name]; defined && plans.Matches(plan, s.plans[name]) {
			return v
		}
	}
	return nil
}

// unwritten judges a plan that waits for what it needs before its run can be recorded, as for a tarball.
func unwritten(st v1beta1.PlanStatus) (out []string) {
	begun := st.Status != v1beta1.Pending
	for _, p := range st.Phases {
		for _, s := range p.Steps {
			begun = begun || s.Status != v1beta1.NeverRun && s.Status != v1beta1.Pending
		}
	}
	if begun {
		out = append(out, fmt.Sprintf("%s has begun, and is not recorded: %s", st.Name, drawn(st)))
	}
	return out
}

func highest(s *subject) int64 {
	n := s.newest
	for _, st := range s.plans {
		n = max(n, st.Revision)
	}
	return n
}

// overall judges the plans together.
func overall(s *subject) (out []string) {
	var running []string
	var last v1beta1.PlanStatus
	for _, name := range plans.Names(s.plans) {
		st := s.plans[name]
		if st.Status.IsRunning() {
			running = append(running, name)
		}
		if st.Revision > last.Revision {
			last = st
		}
	}
	active := ""
	switch len(running) {
	case 0:
	case 1:
		active, last = running[0], s.plans[running[0]]
	default:
		return []string{fmt.Sprintf("%v run at a time", running)}
	}
	if last.Revision == 0 {
		return nil
	}
	if s.aggregated.ActivePlanName != active || s.aggregated.Status != last.Status {
		out = append(out, fmt.Sprintf("in sum %s is active and %s; it should be %q and %s", s.aggregated.ActivePlanName, s.aggregated.Status, active, last.Status))
	}
	return out
}

// sums judges whether what is above adds up what is below.
func sums(plan v1beta1.Plan, kinds map[string]string, st v1beta1.PlanStatus) (out []string) {
	holds := func(holds bool, what string) {
		if !holds {
			out = append(out, fmt.Sprintf("%s is not what adds up in run %d of %s: %s", what, st.Revision, st.Name, drawn(st)))
		}
	}
	phases := map[v1beta1.ExecutionStatus]int{}
	for _, p := range st.Phases {
		phases[p.Status]++
		steps := map[v1beta1.ExecutionStatus]int{}
		for _, s := range p.Steps {
			steps[s.Status]++
			holds(slices.Contains(stepMay(s), s.Status), "step "+p.Name+"/"+s.Name)
		}
		holds(p.Status != v1beta1.TransientError, "phase "+p.Name)
		holds((p.Status == v1beta1.FatalError) == (steps[v1beta1.FatalError] > 0), "phase "+p.Name)
		holds(p.Status != v1beta1.Complete || steps[v1beta1.Complete] == len(p.Steps), "phase "+p.Name)
		holds(p.Status != v1beta1.Pending || steps[v1beta1.Pending] == len(p.Steps), "phase "+p.Name)
	}
	ended := st.Status.IsTerminal()
	holds(ended || phases[v1beta1.FatalError] == 0, "a plan that continues after a failure")
	holds(st.Status != v1beta1.FatalError || st.Message != "", "a failure without a cause")
	holds((st.Status == v1beta1.Complete) == (phases[v1beta1.Complete] == len(st.Phases) && ended), "the plan")
	holds(ended == (st.FinishedTimestamp != nil), "the end of the run")
	holds(ended || len(plans.Ready(plan, kinds, st)) > 0 || st.Status == v1beta1.Pending, "a plan that has nothing to do")
	return out
}

// stepMay is what a step's tasks can add up to.
func stepMay(s v1beta1.StepStatus) []v1beta1.ExecutionStatus {
	n := map[v1beta1.ExecutionStatus]int{}
	for _, t := range s.Tasks {
		n[t.Status]++
	}
	switch {
	case n[v1beta1.FatalError] > 0:
		return []v1beta1.ExecutionStatus{v1beta1.FatalError}
	case n[v1beta1.Pending] == len(s.Tasks): // it may have been entered, and nothing has come of it yet; or be empty
		may := []v1beta1.ExecutionStatus{v1beta1.Pending, v1beta1.InProgress}
		if len(s.Tasks) == 0 {
			may = append(may, v1beta1.Complete)
		}
		return may
	case n[v1beta1.Complete] == len(s.Tasks):
		return []v1beta1.ExecutionStatus{v1beta1.Complete}
	case n[v1beta1.TransientError] > 0:
		return []v1beta1.ExecutionStatus{v1beta1.TransientError}
	}
	return []v1beta1.ExecutionStatus{v1beta1.InProgress}
}

// order judges whether what had to wait has waited.
func order(plan v1beta1.Plan, st v1beta1.PlanStatus) (out []string) {
	begun := func(s v1beta1.StepStatus) bool {
		return slices.ContainsFunc(s.Tasks, func(t v1beta1.TaskStatus) bool { return t.Status != v1beta1.Pending })
	}
	open := "" // what is not done, and holds up all that stands behind
	for i, p := range st.Phases {
		within := open
		for _, s := range p.Steps {
			if within != "" && begun(s) {
				out = append(out, fmt.Sprintf("run %d of %s: %s/%s has begun before %s is done: %s", st.Revision, st.Name, p.Name, s.Name, within, drawn(st)))
			}
			if plan.Phases[i].Strategy == v1beta1.Serial && s.Status != v1beta1.Complete {
				within = p.Name + "/" + s.Name
			}
		}
		if plan.Strategy == v1beta1.Serial && p.Status != v1beta1.Complete {
			open = p.Name
		}
	}
	return out
}

// follows judges whether a state of a run can come after another.
func follows(plan v1beta1.Plan, kinds map[string]string, before, after v1beta1.PlanStatus) (out []string) {
	objection := func(what string) {
		out = append(out, fmt.Sprintf("run %d of %s: %s: %s, and was %s", after.Revision, after.Name, what, drawn(after), drawn(before)))
	}
	if before.Status.IsTerminal() {
		if before.Status != after.Status || !equality.Semantic.DeepEqual(before.Phases, after.Phases) {
			objection("it had ended, and has changed")
		}
		return out
	}
	if !plans.Matches(plan, before) {
		objection("its places have changed")
		return out
	}
	model := *before.DeepCopy()
	for i, p := range after.Phases {
		for j, s := range p.Steps {
			step := &model.Phases[i].Steps[j]
			for k, t := range s.Tasks {
				if old := step.Tasks[k].Status; old == v1beta1.Complete && t.Status != v1beta1.Complete && plans.RunOnce(kinds[t.Name]) {
					objection(fmt.Sprintf("%s/%s/%s is run once, and was done", p.Name, s.Name, t.Name))
				}
			}
			step.Tasks, step.StartedTimestamp = s.Tasks, s.StartedTimestamp
		}
	}
	plans.Summarize(plan, &model, time.Time{})
	if after.Status == v1beta1.FatalError && model.Status != v1beta1.FatalError {
		return out // it was ended from outside, and says why
	}
	if after.Status != v1beta1.Pending && drawn(model) != drawn(after) {
		objection("by its tasks it should be " + drawn(model))
	}
	return out
}

// drawn is a run as a line: its status, and those of phases, steps and tasks.
func drawn(st v1beta1.PlanStatus) string {
	out := string(st.Status)
	for _, p := range st.Phases {
		out += fmt.Sprintf(" %s=%s(", p.Name, p.Status)
		for _, s := range p.Steps {
			out += fmt.Sprintf(" %s=%s", s.Name, s.Status)
			for _, t := range s.Tasks {
				out += fmt.Sprintf("/%s", t.Status)
			}
		}
		out += " )"
	}
	return out
}

// changed is a changed copy of a run.
func changed(st v1beta1.PlanStatus, change func(*v1beta1.PlanStatus)) v1beta1.PlanStatus {
	st = *st.DeepCopy()
	change(&st)
	return st
}

// checkModel objects to each of these, and not to what the engine does.
func TestJudge(t *testing.T) {
	ov := gen.Version("ns", "v", gen.Task("one", v1beta1.DeleteTask, v1beta1.TaskSpec{}), gen.Task("two", v1beta1.ApplyTask, v1beta1.TaskSpec{}),
		gen.Serial("deploy", "one", "two"), gen.Serial("update", "two"))
	plan, now := ov.Spec.Plans["deploy"], time.Unix(1, 0)
	run := func(done ...plans.Outcome) v1beta1.PlanStatus {
		st := plans.Start("deploy", plan, "uid", 3, now)
		plans.Summarize(plan, &st, now)
		for n, o := range done {
			plans.MarkStepStarted(&st, plans.Place{Step: n}, now)
			plans.Record(plan, &st, plans.Place{Step: n}, o, now)
		}
		return st
	}
	state := func(all ...v1beta1.PlanStatus) *subject {
		s := &subject{name: "i", versions: []*v1beta1.OperatorVersionSpec{&ov.Spec}, plans: map[string]v1beta1.PlanStatus{}}
		for _, st := range all {
			s.plans[st.Name] = st
			s.newest = max(s.newest, st.Revision)
		}
		s.aggregated = plans.Aggregate(s.plans)
		return s
	}
	done, waits, fails := plans.Outcome{State: plans.Done}, plans.Outcome{State: plans.Waiting, Message: "m"}, plans.Outcome{State: plans.Fatal, Message: "m"}
	other := plans.Start("update", ov.Spec.Plans["update"], "other", 2, now)
	for _, tc := range []struct {
		reason        string
		before, after *subject
		objects       bool
	}{
		{"a run begins", nil, state(run()), false},
		{"it waits for a tarball", nil, state(changed(plans.NotRunStatus("deploy", plan), func(st *v1beta1.PlanStatus) { st.Status = v1beta1.Pending })), false},
		{"it has begun, and has no number", nil, state(changed(run(done), func(st *v1beta1.PlanStatus) { st.Revision = 0 })), true},
		{"it goes on", state(run()), state(run(done)), false},
		{"it goes on, and something was not seen", state(run()), state(run(done, done)), false},
		{"it fails", state(run(done, waits)), state(run(done, fails)), false},
		{"it is ended from outside", state(run(waits)), state(changed(run(waits), func(st *v1beta1.PlanStatus) { plans.Fail(st, "cancelled", now) })), false},
		{"two run", nil, state(run(), other), true},
		{"a number comes again", state(run(done, done)), state(run(done, done), other), true},
		{"it ended, and goes on", state(run(done, fails)), state(run(done, waits)), true},
		{"a Delete is undone", state(run(done)), state(run(waits)), true},
		{"the second step before the first is done", nil, state(changed(run(waits), func(st *v1beta1.PlanStatus) {
			step := &st.Phases[0].Steps[1]
			step.Status, step.Tasks[0].Status = v1beta1.InProgress, v1beta1.InProgress
		})), true},
		{"complete, and a task is not", state(run(done)), state(changed(run(done, done), func(st *v1beta1.PlanStatus) { st.Phases[0].Steps[1].Tasks[0].Status = v1beta1.InProgress })), true},
		{"a failure that goes on", nil, state(changed(run(done, fails), func(st *v1beta1.PlanStatus) { st.Status, st.FinishedTimestamp = v1beta1.InProgress, nil })), true},
		{"no cause", nil, state(changed(run(done, fails), func(st *v1beta1.PlanStatus) { st.Message = "" })), true},
		{"a plan that no version has", nil, state(changed(run(), func(st *v1beta1.PlanStatus) { st.Phases = st.Phases[:0] })), true},
		{"done, and nothing above says so", state(run(done)), state(changed(run(done), func(st *v1beta1.PlanStatus) {
			st.Phases[0].Steps[1].Tasks[0].Status, st.Phases[0].Steps[1].Status = v1beta1.Complete, v1beta1.Complete
		})), true},
	} {
		if got := checkModel(tc.before, tc.after); (len(got) > 0) != tc.objects {
			t.Errorf("%s: checkModel says %q", tc.reason, got)
		}
	}
}
