// Package plans is the plan engine as pure functions over values: what is ready to run, what an outcome does to the
// status, and what the status adds up to. It reads no clock and no cluster.
package plans

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Place is where a task stands in a plan. One task may stand at several places.
type Place struct{ Phase, Step, Task int }

// State is what came of running a task once.
type State int

const (
	// Waiting tasks have done their work and wait for the cluster.
	Waiting State = iota
	// Done tasks need nothing more.
	Done
	// Transient tasks met an error that may not occur at the next attempt.
	Transient
	// Fatal tasks have failed permanently.
	Fatal
)

// Outcome is the result of running a task once.
type Outcome struct {
	State State
	// Message says what is waited for, or what failed. It is stable: no times, no random order.
	Message string
	// Ready of Total objects are as they should be.
	Ready, Total int
	// Culprit is the object and what of it is the cause, or nil if that is not known.
	Culprit *v1beta1.Culprit
}

// Start returns the status of a run that has not done anything yet. Every phase, step and task is listed, PENDING.
func Start(name string, plan v1beta1.Plan, uid types.UID, revision int64, now time.Time) v1beta1.PlanStatus {
	started := metav1.NewMicroTime(now)
	return v1beta1.PlanStatus{
		Name: name, Status: v1beta1.Pending, UID: uid, Revision: revision,
		LastUpdatedTimestamp: stamp(now), StartedTimestamp: &started,
		Phases: phases(plan, v1beta1.Pending),
	}
}

// CompletedStatus returns the status of a run whose tasks count as done, although none was done.
func CompletedStatus(name string, plan v1beta1.Plan, uid types.UID, revision int64, now time.Time) v1beta1.PlanStatus {
	st := Start(name, plan, uid, revision, now)
	for i := range st.Phases {
		for j := range st.Phases[i].Steps {
			for k := range st.Phases[i].Steps[j].Tasks {
				st.Phases[i].Steps[j].Tasks[k].Status = v1beta1.Complete
			}
		}
	}
	Summarize(plan, &st, now)
	return st
}

// NotRunStatus returns the status of a plan that has not been run.
func NotRunStatus(name string, plan v1beta1.Plan) v1beta1.PlanStatus {
	return v1beta1.PlanStatus{Name: name, Status: v1beta1.NeverRun, Phases: phases(plan, v1beta1.NeverRun)}
}

func phases(plan v1beta1.Plan, status v1beta1.ExecutionStatus) []v1beta1.PhaseStatus {
	var out []v1beta1.PhaseStatus
	for _, phase := range plan.Phases {
		p := v1beta1.PhaseStatus{Name: phase.Name, Status: status}
		for _, step := range phase.Steps {
			s := v1beta1.StepStatus{Name: step.Name, Status: status}
			for _, task := range step.Tasks {
				s.Tasks = append(s.Tasks, v1beta1.TaskStatus{Name: task, Status: status})
			}
			p.Steps = append(p.Steps, s)
		}
		out = append(out, p)
	}
	return out
}

// RunOnce reports whether a task of this kind must not be run again in its run once it is done (engine rule 9).
func RunOnce(kind string) bool {
	return kind == v1beta1.DeleteTask || kind == v1beta1.PipeTask || kind == v1beta1.DummyTask
}

// Kinds maps the names of an OperatorVersion's tasks to their kinds. The first of a name counts.
func Kinds(tasks []v1beta1.Task) map[string]string {
	kinds := make(map[string]string, len(tasks))
	for _, t := range tasks {
		if _, known := kinds[t.Name]; !known {
			kinds[t.Name] = t.Kind
		}
	}
	return kinds
}

// Ready returns the places whose tasks may run now, in the order in which they are to be started.
//
//	plan serial:    the first phase that is not complete          else: all phases that are not complete
//	phase serial:   the first step that is not complete           else: all steps that are not complete
//	step:           its tasks, but those that are done and run once
func Ready(plan v1beta1.Plan, kinds map[string]string, st v1beta1.PlanStatus) []Place {
	if st.Status.IsTerminal() {
		return nil
	}
	var out []Place
	for i, phase := range plan.Phases {
		if st.Phases[i].Status == v1beta1.Complete {
			continue
		}
		steps := st.Phases[i].Steps
		for _, j := range openSteps(phase.Strategy, steps) {
			for k, task := range steps[j].Tasks {
				if task.Status != v1beta1.Complete || !RunOnce(kinds[task.Name]) {
					out = append(out, Place{i, j, k})
				}
			}
		}
		if plan.Strategy == v1beta1.Serial {
			break
		}
	}
	return out
}

// openSteps returns the indexes of the steps of a phase that have their turn: of those that are not complete, the first or all.
func openSteps(strategy v1beta1.Strategy, steps []v1beta1.StepStatus) (open []int) {
	for i, step := range steps {
		if step.Status == v1beta1.Complete {
			continue
		}
		open = append(open, i)
		if strategy == v1beta1.Serial {
			break
		}
	}
	return open
}

// MarkStepStarted notes that the step of a task is being worked on.
func MarkStepStarted(st *v1beta1.PlanStatus, at Place, now time.Time) {
	if step := &st.Phases[at.Phase].Steps[at.Step]; step.StartedTimestamp == nil {
		started := metav1.NewMicroTime(now)
		step.StartedTimestamp = &started
	}
}

// Record writes the outcome of the task at a place into the status, and sums up. It returns whether anything changed.
// Nothing is recorded in a run that has ended.
func Record(plan v1beta1.Plan, st *v1beta1.PlanStatus, at Place, o Outcome, now time.Time) bool {
	if st.Status.IsTerminal() {
		return false
	}
	updated := st.LastUpdatedTimestamp
	step := &st.Phases[at.Phase].Steps[at.Step]
	task := &step.Tasks[at.Task]
	before, began := *task, step.StartedTimestamp == nil
	MarkStepStarted(st, at, now)
	task.Message, task.Ready, task.Total, task.Culprit = text.Truncate(o.Message, maxMessage), int32(o.Ready), int32(o.Total), o.Culprit
	switch o.State {
	case Done:
		task.Status, task.Message, task.Culprit = v1beta1.Complete, "", nil
	case Waiting:
		task.Status = v1beta1.InProgress
	case Transient:
		task.Status = v1beta1.TransientError
	case Fatal:
		task.Status = v1beta1.FatalError
	}
	changed := summarize(plan, st, now) || began || !equality.Semantic.DeepEqual(before, *task)
	if st.LastUpdatedTimestamp = updated; changed {
		st.LastUpdatedTimestamp = stamp(now)
	}
	return changed
}

// maxMessage is the length in bytes of a task's message in the status. A task may speak of thousands of objects, and the
// status of all tasks has to fit into one object of the API.
const maxMessage = 2048

// Summarize derives the status of steps, phases and plan from the tasks'. Only steps show transient errors, as in KUDO.
// What has not been reached stays as it is: a step without tasks is done when its turn comes.
func Summarize(plan v1beta1.Plan, st *v1beta1.PlanStatus, now time.Time) { summarize(plan, st, now) }

// summarize is Summarize, and reports whether anything changed. It copies no more of the status than the part that it works on: plans may
// have many steps, and each outcome is summed up.
func summarize(plan v1beta1.Plan, st *v1beta1.PlanStatus, now time.Time) (changed bool) {
	if st.Status.IsTerminal() {
		return false
	}
	status, message := st.Status, st.Message
	complete, reached, fatal := true, true, ""
	for i := range st.Phases {
		phase := &st.Phases[i]
		if reached {
			changed = summarizePhase(st.Name, plan.Phases[i].Strategy, phase, now) || changed
		}
		complete = complete && phase.Status == v1beta1.Complete
		reached = reached && admitsNext(plan.Strategy, phase.Status)
		if phase.Status == v1beta1.FatalError && fatal == "" {
			fatal = phase.Message
		}
	}
	st.Message = ""
	switch {
	case fatal != "":
		finish(st, v1beta1.FatalError, fatal, now)
	case complete:
		finish(st, v1beta1.Complete, "", now)
	default:
		st.Status, st.Message = v1beta1.InProgress, withLate(waitMessage(plan, *st), st.Late)
	}
	return changed || st.Status != status || st.Message != message
}

// admitsNext reports whether what stands behind something with this status has its turn.
func admitsNext(strategy v1beta1.Strategy, s v1beta1.ExecutionStatus) bool {
	return s == v1beta1.Complete || strategy != v1beta1.Serial && s != v1beta1.FatalError
}

// summarizePhase reports whether anything changed.
func summarizePhase(plan string, strategy v1beta1.Strategy, phase *v1beta1.PhaseStatus, now time.Time) (changed bool) {
	status, message := phase.Status, phase.Message
	complete, started, reached := true, false, true
	phase.Message = ""
	for i := range phase.Steps {
		step := &phase.Steps[i]
		if reached {
			before := *step
			summarizeStep([2]string{plan, phase.Name}, step, now)
			changed = changed || !sameSummary(before, *step)
		}
		complete = complete && step.Status == v1beta1.Complete
		started = started || step.Status != v1beta1.Pending
		reached = reached && admitsNext(strategy, step.Status)
		if step.Status == v1beta1.FatalError && phase.Message == "" {
			phase.Message = step.Message
		}
	}
	switch {
	case phase.Message != "":
		phase.Status = v1beta1.FatalError
	case complete:
		phase.Status = v1beta1.Complete
	case started:
		phase.Status = v1beta1.InProgress
	}
	return changed || phase.Status != status || phase.Message != message
}

// sameSummary reports whether two states of a step add up its tasks to the same. The times are replaced, and never changed.
func sameSummary(a, b v1beta1.StepStatus) bool {
	return a.Status == b.Status && a.Message == b.Message && a.Late == b.Late && a.StartedTimestamp == b.StartedTimestamp &&
		a.FinishedTimestamp == b.FinishedTimestamp
}

// summarizeStep goes by the tasks alone. A step that is complete opens again if one of its tasks was checked again
// in the same round, and is not done any more. The names of its plan and phase are for messages.
func summarizeStep(in [2]string, step *v1beta1.StepStatus, now time.Time) {
	complete, started := true, step.StartedTimestamp != nil
	message, transient, fatal := "", "", ""
	path := func() string { return in[0] + "." + in[1] + "." + step.Name }
	for _, task := range step.Tasks {
		complete = complete && task.Status == v1beta1.Complete
		switch task.Status {
		case v1beta1.FatalError:
			fatal = first(fatal, fmt.Sprintf("task %s.%s failed: %s", path(), task.Name, first(Explain(task), "no reason given")))
		case v1beta1.TransientError:
			transient = first(transient, fmt.Sprintf("A transient error when executing task %s.%s. Will retry. %s", path(), task.Name,
				Explain(task)))
		default:
			message = first(message, Explain(task))
		}
	}
	if complete {
		completeStep(step, now)
		return
	}
	step.FinishedTimestamp = nil
	switch {
	case fatal != "":
		step.Status, step.Message, step.Late = v1beta1.FatalError, fatal, ""
	case transient != "":
		step.Status, step.Message = v1beta1.TransientError, withLate(transient, step.Late)
	case started:
		step.Status, step.Message = v1beta1.InProgress, withLate(message, step.Late)
	}
}

func completeStep(step *v1beta1.StepStatus, now time.Time) {
	if step.Status == v1beta1.Complete {
		return
	}
	end := metav1.NewMicroTime(now)
	if step.StartedTimestamp == nil {
		step.StartedTimestamp = &end
	}
	step.Status, step.Message, step.Late, step.FinishedTimestamp = v1beta1.Complete, "", "", &end
}

// waitMessage is the message of the first open step that has one, with its place.
func waitMessage(plan v1beta1.Plan, st v1beta1.PlanStatus) string {
	for i := range plan.Phases {
		for _, step := range st.Phases[i].Steps {
			if step.Status != v1beta1.Complete && step.Message != "" {
				if step.Status == v1beta1.TransientError {
					return step.Message
				}
				return fmt.Sprintf("step %s/%s: %s", st.Phases[i].Name, step.Name, step.Message)
			}
		}
	}
	return ""
}

// CancelMessage is the message of a run that a user has canceled. The message of a failed run names the task, and so is never equal to it.
const CancelMessage = "cancelled"

// IsCanceled reports whether a user has canceled a run.
func IsCanceled(status v1beta1.ExecutionStatus, message string) bool {
	return status == v1beta1.FatalError && message == CancelMessage
}

// Fail fails a run, with a message.
func Fail(st *v1beta1.PlanStatus, message string, now time.Time) {
	if !st.Status.IsTerminal() {
		finish(st, v1beta1.FatalError, message, now)
	}
}

func finish(st *v1beta1.PlanStatus, status v1beta1.ExecutionStatus, message string, now time.Time) {
	end := metav1.NewMicroTime(now)
	st.Status, st.Message, st.Late, st.FinishedTimestamp, st.LastUpdatedTimestamp = status, message, "", &end, stamp(now)
}

// stampChange stamps a status that has changed.
func stampChange(before, st *v1beta1.PlanStatus, now time.Time) bool {
	st.LastUpdatedTimestamp = before.LastUpdatedTimestamp
	if equal(before, st) {
		return false
	}
	st.LastUpdatedTimestamp = stamp(now)
	return true
}

func stamp(now time.Time) *metav1.Time {
	t := metav1.NewTime(now).Rfc3339Copy()
	return &t
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
