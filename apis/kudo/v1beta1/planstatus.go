package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ExecutionStatus is the state of a plan, phase, step or task.
// +kubebuilder:validation:Enum="";NEVER_RUN;PENDING;IN_PROGRESS;ERROR;FATAL_ERROR;COMPLETE
type ExecutionStatus string

const (
	// NeverRun has not been started.
	NeverRun ExecutionStatus = "NEVER_RUN"
	// Pending is about to be started, or waits for something outside the plan.
	Pending ExecutionStatus = "PENDING"
	// InProgress has been started and is not done.
	InProgress ExecutionStatus = "IN_PROGRESS"
	// TransientError has met an error that may not occur at the next attempt.
	TransientError ExecutionStatus = "ERROR"
	// FatalError has failed permanently.
	FatalError ExecutionStatus = "FATAL_ERROR"
	// Complete is done.
	Complete ExecutionStatus = "COMPLETE"
)

// IsTerminal reports whether the state is final for this run.
func (s ExecutionStatus) IsTerminal() bool { return s == Complete || s == FatalError }

// IsRunning reports whether the state is between the start and the end of a run.
func (s ExecutionStatus) IsRunning() bool {
	return s == InProgress || s == Pending || s == TransientError
}

// PlanStatus is the last run of a plan.
type PlanStatus struct {
	// Name of the plan.
	// +optional
	Name string `json:"name,omitempty"`
	// Status of the run.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says what is waited for, or what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// LastUpdatedTimestamp is when the status changed last.
	// +optional
	// +nullable
	LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp,omitempty"`
	// StartedTimestamp is when the run started.
	// +optional
	// +nullable
	StartedTimestamp *metav1.MicroTime `json:"startedTimestamp,omitempty"`
	// FinishedTimestamp is when the run ended.
	// +optional
	// +nullable
	FinishedTimestamp *metav1.MicroTime `json:"finishedTimestamp,omitempty"`
	// UID of the run.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Revision is the number of the run; the ControllerRevision `<instance>-<revision>` holds its parameters and cause.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Scheduled is set if only schedules have asked for the run. Such a run does not count for the conditions Ready and Stalled.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`
	// Counted is set in a run that does not count for the conditions Ready and Stalled. It is the last run of the plan before it that counts,
	// or empty if no run counts.
	// +optional
	Counted *CountedRun `json:"counted,omitempty"`
	// Late says which deadline the run has passed; the message has it, too. Empty once the run has ended.
	// +optional
	Late string `json:"late,omitempty"`
	// Phases of the plan.
	// +optional
	// +listType=atomic
	Phases []PhaseStatus `json:"phases,omitempty"`
}

// Counts reports whether the run counts for the conditions Ready and Stalled of its object. See Scheduled and Counted.
func (s PlanStatus) Counts() bool { return !s.Scheduled && s.Counted == nil }

// CountedRun is a run of a plan that counts for the conditions, although a later run of the plan has taken its place in the status.
type CountedRun struct {
	// Revision is the number of the run.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Status of the run at its end.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// LastUpdatedTimestamp is when the run ended. Runs without numbers are compared by it.
	// +optional
	LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp,omitempty"`
}

// PhaseStatus is the state of a phase.
type PhaseStatus struct {
	// Name of the phase.
	// +optional
	Name string `json:"name,omitempty"`
	// Status of the phase.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// Steps of the phase.
	// +optional
	// +listType=atomic
	Steps []StepStatus `json:"steps,omitempty"`
}

// StepStatus is the state of a step.
type StepStatus struct {
	// Name of the step.
	// +optional
	Name string `json:"name,omitempty"`
	// Status of the step.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says what is waited for, or what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// StartedTimestamp is when the step started.
	// +optional
	// +nullable
	StartedTimestamp *metav1.MicroTime `json:"startedTimestamp,omitempty"`
	// FinishedTimestamp is when the step ended.
	// +optional
	// +nullable
	FinishedTimestamp *metav1.MicroTime `json:"finishedTimestamp,omitempty"`
	// Late says which deadline the step has passed, and whether it takes longer than usual: more than twice as long as in the last runs of
	// the plan, and more than a minute. The message has it, too. Empty once the step is complete.
	// +optional
	Late string `json:"late,omitempty"`
	// Tasks of the step, by place: a task may be listed more than once.
	// +optional
	// +listType=atomic
	Tasks []TaskStatus `json:"tasks,omitempty"`
}

// TaskStatus is the state of a task at one place of a plan.
type TaskStatus struct {
	// Name of the task.
	// +optional
	Name string `json:"name,omitempty"`
	// Status of the task.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says what is waited for, or what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// Ready is how many of the task's objects are as they should be.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// Total is how many objects the task has.
	// +optional
	Total int32 `json:"total,omitempty"`
	// Culprit is what has made the task fail, or what it waits for, once it has waited for ten seconds.
	// +optional
	Culprit *Culprit `json:"culprit,omitempty"`
}
