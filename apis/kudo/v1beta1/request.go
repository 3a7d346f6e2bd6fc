package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PlanExecution is a request for a run of a plan.
type PlanExecution struct {
	// PlanName is the plan to run. It cannot be `cleanup`.
	// +optional
	PlanName string `json:"planName,omitempty"`
	// UID of the request. One that was not seen before is a new request; so a plan can be asked for again.
	// Without it, each change of planName is a request.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Status is ignored; it is here for clients of older versions. See status.planStatus.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
}

// Schedule runs a plan at times.
type Schedule struct {
	// Name of the schedule.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Plan to run. It cannot be `deploy`, `upgrade` or `cleanup`.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Plan string `json:"plan"`
	// Cron says when the plan is due, in the five fields of cron: minute, hour, day of the month, month and day of the week.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Cron string `json:"cron"`
	// TimeZone of cron, by its name in the IANA database, such as Europe/Vienna; default is UTC. A time that the clock skips, because it is
	// set forward, is due at the moment of the change. A time that the clock shows twice is due the first time, unless the hour is `*`.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// Suspend drops the times that pass while it is set.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// DeadlineAction is what happens when a deadline has passed.
// +kubebuilder:validation:Enum=Warn;Fail;Cancel
type DeadlineAction string

const (
	// DeadlineWarn records an event, and adds words to the message of the plan or step.
	DeadlineWarn DeadlineAction = "Warn"
	// DeadlineFail fails the plan or step permanently.
	DeadlineFail DeadlineAction = "Fail"
	// DeadlineCancel ends the run as plan cancel does, as soon as a plan is queued behind it.
	DeadlineCancel DeadlineAction = "Cancel"
)

// Deadline bounds how long a plan or a step of it may take.
type Deadline struct {
	// Plan that is bounded.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Plan string `json:"plan"`
	// Step that is bounded, as `<phase>/<step>`; default is the whole plan.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Step string `json:"step,omitempty"`
	// After is the time that the plan or step may take, such as `15m` or `1h30m`. It is counted from startedTimestamp of its status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	After string `json:"after"`
	// Then says what happens after that time. `Warn` records an event and says so in the message. `Fail` fails the step or the plan
	// permanently. `Cancel` ends the run as `plan cancel` does, but only while another plan is queued behind it; the plan `cleanup` cannot be
	// ended so.
	Then DeadlineAction `json:"then"`
}

// ScheduleStatus is what the controller knows of a schedule.
type ScheduleStatus struct {
	// Name of the schedule.
	Name string `json:"name"`
	// Last is the latest time that the last run was started for.
	// +optional
	Last *metav1.Time `json:"last,omitempty"`
	// LastRun is the number of the last run.
	// +optional
	LastRun int64 `json:"lastRun,omitempty"`
	// LastResult is the state of the last run.
	// +optional
	LastResult ExecutionStatus `json:"lastResult,omitempty"`
	// LastSuccess is when a run of the plan was complete last, also one that a user has asked for.
	// +optional
	LastSuccess *metav1.Time `json:"lastSuccess,omitempty"`
	// Message says why the last run failed. It stays until the plan has been complete.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is the time of the next run. A time in the past means that the run waits for its start. Next is empty while the schedule or the
	// Instance is suspended, or cannot run.
	// +optional
	Next *metav1.Time `json:"next,omitempty"`
}

// QueuedPlan waits for the running plan.
type QueuedPlan struct {
	// PlanName is the plan that waits.
	// +optional
	PlanName string `json:"planName,omitempty"`
	// Cause says what asked for it.
	// +optional
	Cause string `json:"cause,omitempty"`
	// Requested is set if spec.planExecution asked for it. Such an entry stays though planExecution changes.
	// +optional
	Requested bool `json:"requested,omitempty"`
	// RequestedBy is the user who asked for it, and those who have written spec while it waits, each with the client by its own account, as in
	// `ann with kubectl kudo update`; empty if no user is known, or if no write of the Instance asked for it.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}
