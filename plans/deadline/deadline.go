// Package deadline decides what the deadlines of an Instance do to its run.
package deadline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// Max is how many deadlines of an Instance count, as in the schema.
const Max = 32

// maxAwaited bounds the part of a message that says what was awaited, in bytes.
const maxAwaited = 1024

// Problem says why a deadline has no effect.
type Problem struct {
	// Field is the path of the deadline or of a field of it.
	Field string
	// Message says what is wrong and the remedy.
	Message string
}

func (p Problem) String() string { return p.Field + ": " + p.Message }

// id is what no two deadlines of an Instance have in common.
type id struct {
	plan, step string
	then       v1beta1.DeadlineAction
}

// Check returns what is wrong with deadlines, by their index, or nil if nothing is. Plans and steps are not checked without a version.
func Check(all []v1beta1.Deadline, version *v1beta1.OperatorVersionSpec) map[int]Problem {
	out := map[int]Problem{}
	seen := map[id]int{}
	for n, d := range all {
		field := fmt.Sprintf("spec.deadlines[%d]", n)
		first, known := seen[id{d.Plan, d.Step, d.Then}]
		switch {
		case n >= Max:
			out[n] = Problem{"spec.deadlines", fmt.Sprintf("there are %d, and %d are allowed: remove some", len(all), Max)}
			return out
		case known:
			out[n] = Problem{field, fmt.Sprintf("plan, step and then are those of spec.deadlines[%d]: remove one of the two", first)}
		default:
			p, ok := check(d, version)
			if !ok {
				out[n] = Problem{field + "." + p.Field, p.Message}
				continue // an invalid deadline does not stand in the way of another one
			}
			seen[id{d.Plan, d.Step, d.Then}] = n
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// check returns the field of a deadline that is wrong; ok if none is.
func check(d v1beta1.Deadline, version *v1beta1.OperatorVersionSpec) (p Problem, ok bool) {
	after, err := time.ParseDuration(d.After)
	switch {
	case err != nil:
		return Problem{"after", fmt.Sprintf("%.40q is no duration: write it as 90s, 15m or 1h30m", d.After)}, false
	case after <= 0:
		return Problem{"after", fmt.Sprintf("%q is not positive: write a duration such as 15m", d.After)}, false
	case d.Then != v1beta1.DeadlineWarn && d.Then != v1beta1.DeadlineFail && d.Then != v1beta1.DeadlineCancel:
		return Problem{"then", fmt.Sprintf("%.40q is unknown: write Warn, Fail or Cancel", d.Then)}, false
	case d.Then == v1beta1.DeadlineCancel && d.Plan == v1beta1.CleanupPlan:
		return Problem{"then", "plan cleanup cannot be ended by a deadline, since that gives the cleanup up: write Warn or Fail"}, false
	case version == nil:
		return Problem{}, true
	}
	defined := version.InstancePlans()
	plan, exists := defined[d.Plan]
	if !exists {
		return Problem{"plan", fmt.Sprintf("plan %.80q does not exist in the OperatorVersion (plans: %s): name one of them, or remove the "+
			"deadline", d.Plan, text.List(plans.Names(defined), maxNames))}, false
	}
	steps := stepKeys(plan)
	if d.Step == "" || slices.Contains(steps, d.Step) {
		return Problem{}, true
	}
	return Problem{"step", fmt.Sprintf("step %.80q does not exist in plan %s (steps: %s): name one of them as <phase>/<step>, or remove the "+
		"deadline", d.Step, d.Plan, text.List(steps, maxNames))}, false
}

// maxNames is how many plans or steps a message lists.
const maxNames = 20

func stepKeys(plan v1beta1.Plan) (keys []string) {
	for _, phase := range plan.Phases {
		for _, step := range phase.Steps {
			keys = append(keys, plans.StepKey(phase.Name, step.Name))
		}
	}
	return keys
}

// Input holds all inputs of Decide.
type Input struct {
	Deadlines []v1beta1.Deadline
	// Name is the plan that runs, Plan its definition, and Run its status.
	Name string
	Plan v1beta1.Plan
	Run  v1beta1.PlanStatus
	// Waiting is the first plan that is queued behind the run; empty if none is.
	Waiting string
	// Usual is how long each step, by its key, took at most in former runs that were complete, or nil if that was not read yet.
	Usual map[string]time.Duration
	Now   time.Time
}

// Decision is what deadlines do to a run.
type Decision struct {
	// Late says what has passed its deadline.
	Late plans.Late
	// Fail is the failure of the run, or nil if it continues.
	Fail *Failure
	// Cancel says why the run ends as by plan cancel; empty if it continues. Fail comes first.
	Cancel string
	// Next is when the next deadline passes, or when a step begins to be slow; zero if neither happens.
	Next time.Time
	// NeedsUsual is set if a step lasts so long that Usual decides whether it is slow, and Usual was not read yet.
	NeedsUsual bool
}

// Failure is the end of a run by a deadline.
type Failure struct {
	// Step that fails; nil if the whole plan does.
	Step *plans.Place
	// Message names the plan, the step, the deadline and what was awaited.
	Message string
}

// target is what a deadline bounds: a run or a step of it.
type target struct {
	name    string
	start   time.Time
	awaited string
	step    *plans.Place
}

// Decide determines what the deadlines do to a run. A deadline counts from the start in the status, so that a new manager counts on:
//
//	not started, complete, or the start is not known    nothing
//	not passed                                          Next
//	passed, Warn                                        the texts of Late
//	passed, Cancel, and no plan waits                   the texts of Late
//	passed, Cancel, and a plan waits                    Cancel
//	passed, Fail                                        Fail: of several, the first in spec
//
// Of several passed deadlines of one step, the texts name the longest. Deadlines that are invalid do nothing. A step that takes more than
// twice its usual time, and more than a minute, is slow: that is said, and nothing else follows.
func Decide(in Input) Decision {
	var d Decision
	if in.Run.Status.IsTerminal() {
		return d
	}
	run := *in.Run.DeepCopy() // what was awaited is said without the deadlines that had passed before
	plans.MarkLate(in.Plan, &run, plans.Late{}, in.Now)
	invalid := Check(in.Deadlines[:min(len(in.Deadlines), Max)], nil)
	longest := map[string]time.Duration{}
	for n, deadline := range in.Deadlines[:min(len(in.Deadlines), Max)] {
		if _, wrong := invalid[n]; wrong || deadline.Plan != in.Name {
			continue
		}
		t, open := find(run, deadline.Step)
		after, _ := time.ParseDuration(deadline.After)
		if !open {
			continue
		}
		if end := t.start.Add(after); end.After(in.Now) {
			d.await(end)
			continue
		}
		d.pass(in, deadline, t)
		if after > longest[deadline.Step] {
			longest[deadline.Step] = after
			d.Late.Add(deadline.Step, "past the deadline of "+deadline.After)
		}
	}
	d.findSlow(in)
	return d
}

// slowFactor is how many times its usual time a slow step takes, and slowAfter how long it takes at least.
const (
	slowFactor = 2
	slowAfter  = time.Minute
)

// findSlow adds the steps that take longer than usual. A step that has no usual time is not slow.
func (d *Decision) findSlow(in Input) {
	for _, phase := range in.Run.Phases {
		for _, step := range phase.Steps {
			key := plans.StepKey(phase.Name, step.Name)
			usual, known := in.Usual[key]
			if step.StartedTimestamp == nil || step.Status.IsTerminal() || in.Usual != nil && !known {
				continue
			}
			begins := step.StartedTimestamp.Add(max(slowAfter, slowFactor*usual))
			switch {
			case begins.After(in.Now):
				d.await(begins)
			case !known:
				d.NeedsUsual = true
			default:
				d.Late.AddSlow(key, fmt.Sprintf("longer than usual: at most %s before", usual.Round(time.Second)))
			}
		}
	}
}

// await sets the time of the next decision, unless an earlier one is set.
func (d *Decision) await(at time.Time) {
	if d.Next.IsZero() || at.Before(d.Next) {
		d.Next = at
	}
}

// pass adds the action of a deadline that has passed.
func (d *Decision) pass(in Input, deadline v1beta1.Deadline, t target) {
	switch {
	case deadline.Then == v1beta1.DeadlineFail && d.Fail == nil:
		d.Fail = &Failure{t.step, fmt.Sprintf("%s of plan %s was not complete by its deadline of %s (spec.deadlines); it waited for: %s",
			t.name, in.Name, deadline.After, text.Truncate(cmp.Or(t.awaited, "no object in particular"), maxAwaited))}
	case deadline.Then == v1beta1.DeadlineCancel && in.Waiting != "" && d.Cancel == "":
		d.Cancel = fmt.Sprintf("%s was past its deadline of %s and plan %s waited for it", t.name, deadline.After, in.Waiting)
	}
}

// find returns the run, or the step of the key, and reports whether it has been started and is not complete.
func find(run v1beta1.PlanStatus, key string) (target, bool) {
	if key == "" {
		if run.StartedTimestamp == nil {
			return target{}, false
		}
		return target{"the run", run.StartedTimestamp.Time, run.Message, nil}, true
	}
	for i, phase := range run.Phases {
		if !strings.HasPrefix(key, phase.Name+"/") {
			continue
		}
		for j, step := range phase.Steps {
			if plans.StepKey(phase.Name, step.Name) != key {
				continue
			}
			if step.StartedTimestamp == nil || step.Status.IsTerminal() {
				return target{}, false
			}
			return target{"step " + key, step.StartedTimestamp.Time, step.Message, &plans.Place{Phase: i, Step: j}}, true
		}
	}
	return target{}, false
}
