package plans

import "kudo.dev/kudo/apis/kudo/v1beta1"

// stopped is the status of the steps that were open when a user canceled the run, for people. The status of a plan never has it.
const stopped v1beta1.ExecutionStatus = "STOPPED"

// MarkStopped returns a canceled run with its open steps marked, and any other run unchanged.
func MarkStopped(st v1beta1.PlanStatus) v1beta1.PlanStatus {
	if !IsCanceled(st.Status, st.Message) {
		return st
	}
	mark := func(status *v1beta1.ExecutionStatus) {
		if status.IsRunning() {
			*status = stopped
		}
	}
	st = *st.DeepCopy()
	for i := range st.Phases {
		phase := &st.Phases[i]
		mark(&phase.Status)
		for j := range phase.Steps {
			step := &phase.Steps[j]
			mark(&step.Status)
			for k := range step.Tasks {
				mark(&step.Tasks[k].Status)
			}
		}
	}
	return st
}

// IsRetryRequested reports whether the annotations of an object ask to run a failed run again. Its next run has another uid, so that the
// annotation can stay.
func IsRetryRequested(annotations map[string]string, st v1beta1.PlanStatus) bool {
	return st.Status == v1beta1.FatalError && st.UID != "" && annotations[v1beta1.RetryAnnotation] == string(st.UID)
}

// DescribeCause returns the cause of a run and the user who asked for the run. It returns the cause alone if the user is not known.
func DescribeCause(cause, user string) string {
	if user == "" {
		return cause
	}
	return cause + "; by " + user
}
