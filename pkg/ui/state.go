package ui

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// state is how an object is, as a sign and a word. The class colors it.
type state struct {
	Word, Sign, Class string
	// rank orders lists: what needs a user comes first.
	rank int
}

// The states of Instances.
var (
	stateFailed   = state{"failed", "✗", "bad", 0}
	stateBlocked  = state{"blocked", "⏸", "warn", 1}
	stateNotReady = state{"not ready", "!", "warn", 2}
	stateRunning  = state{"running", "↻", "busy", 3}
	stateDeleting = state{"deleting", "⌫", "busy", 4}
	stateDrifted  = state{"drifted", "≠", "warn", 5}
	stateWaiting  = state{"waiting", "○", "idle", 6}
	stateNew      = state{"new", "○", "idle", 6}
	stateReady    = state{"ready", "✓", "good", 7}
)

// instanceStates are the states of Instances in the order of lists.
var instanceStates = []state{stateFailed, stateBlocked, stateNotReady, stateRunning, stateDeleting, stateDrifted, stateWaiting, stateNew,
	stateReady}

// stateOf returns the state of an Instance, by its conditions and plans:
//
//	a run has failed             failed
//	deletion timestamp           deleting
//	a plan waits to start        blocked
//	a plan runs or is queued     running
//	spec is not looked at yet    waiting
//	Ready is false               not ready
//	other clients changed it     drifted
//	Ready is true                ready
//	no condition                 new
func stateOf(i *v1beta1.Instance) state {
	status := i.Status
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ReadyCondition)
	switch {
	case meta.IsStatusConditionTrue(status.Conditions, v1beta1.StalledCondition):
		return stateFailed
	case i.DeletionTimestamp != nil:
		return stateDeleting
	case status.AggregatedStatus.Status == v1beta1.Pending:
		return stateBlocked
	case plans.Running(status.PlanStatus) != "", len(status.Queue) > 0:
		return stateRunning
	case ready == nil:
		return stateNew
	case status.ObservedGeneration < i.Generation:
		return stateWaiting
	case ready.Status != "True":
		return stateNotReady
	case len(status.Drift) > 0:
		return stateDrifted
	}
	return stateReady
}

// sinceOf returns since when an Instance is in its state, as far as the status has it.
func sinceOf(i *v1beta1.Instance, s state) time.Time {
	_, run := plans.LatestRun(i.Status.PlanStatus)
	switch s {
	case stateFailed:
		if run.FinishedTimestamp != nil {
			return run.FinishedTimestamp.Time
		}
	case stateRunning, stateBlocked:
		if run.StartedTimestamp != nil && run.FinishedTimestamp == nil {
			return run.StartedTimestamp.Time
		}
	case stateDeleting:
		return i.DeletionTimestamp.Time
	case stateDrifted:
		if since := i.Status.Drift[0].Since; since != nil {
			return since.Time
		}
	}
	if ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return i.CreationTimestamp.Time
}

// wrongOf returns in a line what is wrong with an Instance: the culprit of its last run, else what the status says; empty if nothing is.
func wrongOf(i *v1beta1.Instance, s state) string {
	switch s {
	case stateReady, stateNew:
		return ""
	case stateDrifted:
		return i.Status.Drift[0].Message
	}
	if _, run := plans.LatestRun(i.Status.PlanStatus); run.Status != v1beta1.Complete {
		if culprits := plans.Culprits(run); len(culprits) > 0 {
			task := culprits[0].Task
			object := strings.TrimSpace(task.Culprit.Kind + " " + task.Culprit.Name)
			if words := plans.DescribeCulprit(*task.Culprit); object != "" && words != "" {
				return object + ": " + words
			}
			return plans.Explain(task)
		}
	}
	if message := i.Status.AggregatedStatus.Message; message != "" {
		return message
	}
	if ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition); ready != nil && ready.Status != "True" {
		return ready.Message
	}
	return ""
}

// planOf returns the running plan, how many of its steps are done, and how many it has, which a page shows as `update 1/3`. If no plan
// runs, it returns the last plan if that has failed, and nothing otherwise.
func planOf(i *v1beta1.Instance) (name string, done, total int) {
	name, run := plans.LatestRun(i.Status.PlanStatus)
	if running := plans.Running(i.Status.PlanStatus); running != "" {
		name, run = running, i.Status.PlanStatus[running]
	} else if run.Status != v1beta1.FatalError {
		return "", 0, 0
	}
	for _, phase := range run.Phases {
		for _, step := range phase.Steps {
			total++
			if step.Status == v1beta1.Complete {
				done++
			}
		}
	}
	return name, done, total
}

// executionState returns the state of a plan, phase, step or task.
func executionState(status v1beta1.ExecutionStatus) state {
	switch status {
	case v1beta1.Complete:
		return state{"complete", "✓", "good", 0}
	case v1beta1.InProgress:
		return state{"running", "↻", "busy", 0}
	case v1beta1.TransientError:
		return state{"trying again", "!", "warn", 0}
	case v1beta1.FatalError:
		return state{"failed", "✗", "bad", 0}
	case v1beta1.Pending:
		return state{"pending", "○", "idle", 0}
	case v1beta1.NeverRun, "":
		return state{"not run", "○", "idle", 0}
	}
	return state{strings.ToLower(string(status)), "–", "idle", 0}
}
