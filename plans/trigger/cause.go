package trigger

import "strings"

// Causes of runs, for people and for the history. Some are followed by names.
const (
	CauseCreated         = "instance created"
	CauseVersionCreated  = "OperatorVersion created"
	CauseVersionChanged  = "OperatorVersion changed"
	CauseInstallChanged  = "installPlan or installParameters changed"
	CauseUpgrade         = "operator version changed"
	CauseParameters      = "parameters changed"
	CauseRequest         = "asked for by spec.planExecution"
	CauseRetry           = "retry of"
	CauseSuspend         = "spec.suspend set"
	CauseResume          = "spec.suspend taken back"
	CauseDeletion        = "instance deleted"
	CauseRestoreOfShared = "to restore"
	CauseRestored        = "restored"
	CauseSchedule        = "schedule"
	UnknownCause         = "unknown"
	otherCause           = "other"
)

// causeClasses are the classes of causes, by how the cause begins.
var causeClasses = []struct{ cause, class string }{
	{CauseCreated, "created"}, {CauseVersionCreated, "created"}, {CauseUpgrade, "upgrade"}, {CauseVersionChanged, "changed"},
	{CauseInstallChanged, "changed"}, {CauseParameters, "changed"}, {CauseRequest, "request"}, {CauseRetry, "retry"},
	{CauseSuspend, "suspend"}, {CauseResume, "suspend"}, {CauseDeletion, "deleted"}, {CauseRestoreOfShared, "drift"},
	{CauseRestored, "restored"}, {CauseSchedule, "schedule"},
}

// IsScheduled reports whether only schedules have asked for a run with this cause.
func IsScheduled(cause string) bool { return strings.HasPrefix(cause, CauseSchedule+" ") }

// CauseClass returns the class of the cause of a run, for metrics: one of few words, whatever the names in the cause.
func CauseClass(cause string) string {
	if cause == "" {
		return UnknownCause
	}
	for _, c := range causeClasses {
		if strings.HasPrefix(cause, c.cause) {
			return c.class
		}
	}
	return otherCause
}
