// Package conditions derives the conditions of an Instance from its plans and its objects, and lists drift in a status.
package conditions

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// MaxMessage bounds a condition's message, in bytes; the API allows 32 KiB.
const MaxMessage = 2048

// Derive puts the conditions that hold now into the status (engine rule 19). unready lists what is not as it should be
// while no plan runs; it is not asked for while one runs.
//
//	nothing ever ran                     Ready absent
//	deploy, update, upgrade runs         Ready Unknown PlanInProgress     Reconciling True
//	another plan runs                    Ready as before                  Reconciling True
//	last run COMPLETE                    Ready True or False, ResourceFailed if an object has failed
//	last run FATAL_ERROR                 Ready False PlanInFatalError     Stalled True
//	a schedule runs a plan               Ready and Stalled as before      Reconciling True
func Derive(instance *v1beta1.Instance, unready []string, failed bool) {
	status := &instance.Status
	meta.RemoveStatusCondition(&status.Conditions, v1beta1.CRDsReadyCondition)
	last, run := plans.LatestRun(status.PlanStatus)
	if last == "" {
		return
	}
	running, fatal := run.Status.IsRunning(), run.Status == v1beta1.FatalError
	switch {
	case running && !run.Counts():
	case running && plans.AppliesSpec(last):
		set(instance, v1beta1.ReadyCondition, metav1.ConditionUnknown, v1beta1.ReasonPlanInProgress, "plan "+last+" is running")
	case running:
	case fatal:
		set(instance, v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonPlanInFatalError, "plan "+last+" failed: "+run.Message)
	case failed:
		set(instance, v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonResourceFailed, strings.Join(unready, ", "))
	case len(unready) > 0:
		set(instance, v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonResourceNotReady, strings.Join(unready, ", "))
	default:
		set(instance, v1beta1.ReadyCondition, metav1.ConditionTrue, v1beta1.ReasonResourcesReady, "")
	}
	if running || len(status.Queue) > 0 {
		set(instance, v1beta1.ReconcilingCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInProgress, reconciling(instance))
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.ReconcilingCondition)
	}
	switch {
	case fatal:
		set(instance, v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInFatalError, "plan "+last+" failed: "+run.Message)
	case !running || run.Counts():
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.StalledCondition)
	}
}

// SetScheduleFailed says which schedules have failed, or cannot run their plans; none takes the condition away.
func SetScheduleFailed(instance *v1beta1.Instance, reason string, failed []string) {
	if len(failed) == 0 {
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1beta1.ScheduleFailedCondition)
		return
	}
	set(instance, v1beta1.ScheduleFailedCondition, metav1.ConditionTrue, reason, strings.Join(failed, "; "))
}

// SetDeadlineIgnored says which deadlines have no effect, and why; none takes the condition away.
func SetDeadlineIgnored(instance *v1beta1.Instance, ignored []string) {
	if len(ignored) == 0 {
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1beta1.DeadlineIgnoredCondition)
		return
	}
	set(instance, v1beta1.DeadlineIgnoredCondition, metav1.ConditionTrue, v1beta1.ReasonInvalidDeadline, strings.Join(ignored, "; "))
}

// SetCRDsReady says that a plan waits for the CustomResourceDefinitions of the Instance.
func SetCRDsReady(instance *v1beta1.Instance, message string) {
	set(instance, v1beta1.CRDsReadyCondition, metav1.ConditionFalse, v1beta1.ReasonWaitingForCRDs, message)
}

// SetPlaced puts the conditions of an Instance on a hub into its status: Ready, and Reconciling and Stalled only if they hold.
func SetPlaced(instance *v1beta1.Instance, ready metav1.Condition, reconciling, stalled bool) {
	instance.Status.ObservedGeneration = instance.Generation
	put := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: ready.Reason,
			Message: text.Truncate(ready.Message, MaxMessage), ObservedGeneration: instance.Generation})
	}
	put(v1beta1.ReadyCondition, ready.Status)
	putIf := func(kind string, holds bool) {
		if holds {
			put(kind, metav1.ConditionTrue)
		} else {
			meta.RemoveStatusCondition(&instance.Status.Conditions, kind)
		}
	}
	putIf(v1beta1.ReconcilingCondition, reconciling)
	putIf(v1beta1.StalledCondition, stalled)
}

// SetHeld says whether a hub has placed the Instance and has not released it (C5).
func SetHeld(instance *v1beta1.Instance) {
	if !instance.IsHeld() {
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1beta1.HeldCondition)
		return
	}
	message := "a hub has placed the Instance, and has not released this change for this cluster"
	if instance.PlacedTemplate() == "" {
		message = "spec.placement is for a hub, and no hub has placed this Instance: create it on a hub, or release it by kubectl kudo " +
			"placement free"
	}
	meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{Type: v1beta1.HeldCondition, Status: metav1.ConditionTrue,
		Reason: v1beta1.ReasonWaitingForRelease, Message: message, ObservedGeneration: instance.Generation})
}

// SetRefused says that the spec cannot be acted upon, and why.
func SetRefused(instance *v1beta1.Instance, reason, message string) {
	set(instance, v1beta1.ReadyCondition, metav1.ConditionFalse, reason, message)
	if plans.Running(instance.Status.PlanStatus) == "" && len(instance.Status.Queue) == 0 {
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1beta1.ReconcilingCondition)
	}
}

// reconciling says what runs and what is queued, and the cause if a step of the run waits for longer than a moment.
func reconciling(instance *v1beta1.Instance) string {
	if queued := plans.Queued(instance); queued != "" {
		return queued
	}
	if running := plans.Running(instance.Status.PlanStatus); running != "" {
		run, message := instance.Status.PlanStatus[running], "plan "+running+" is running"
		if len(plans.Culprits(run)) > 0 && run.Message != "" {
			message += ", and waits for: " + run.Message
		}
		return message
	}
	var queued []string
	for _, q := range instance.Status.Queue {
		queued = append(queued, q.PlanName)
	}
	return "queued: " + strings.Join(queued, ", ")
}

func set(instance *v1beta1.Instance, kind string, status metav1.ConditionStatus, reason, message string) {
	message = text.Truncate(message, MaxMessage)
	generation := instance.Generation
	if instance.IsHeld() { // the plans have not acted upon this generation
		generation = instance.Status.ObservedGeneration
	}
	meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}
