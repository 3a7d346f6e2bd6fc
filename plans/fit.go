package plans

import (
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Matches reports whether the status of a run lists every place of the plan.
func Matches(plan v1beta1.Plan, st v1beta1.PlanStatus) bool {
	if len(plan.Phases) != len(st.Phases) {
		return false
	}
	for i, phase := range plan.Phases {
		if st.Phases[i].Name != phase.Name || len(st.Phases[i].Steps) != len(phase.Steps) {
			return false
		}
		for j, step := range phase.Steps {
			if !fitsStep(step, st.Phases[i].Steps[j]) {
				return false
			}
		}
	}
	return true
}

func fitsStep(step v1beta1.Step, st v1beta1.StepStatus) bool {
	return st.Name == step.Name &&
		slices.EqualFunc(step.Tasks, st.Tasks, func(name string, t v1beta1.TaskStatus) bool { return t.Name == name })
}

// AlignStatus completes the status of a run that another engine began, so that it lists every place of the plan. Phases and
// steps are matched by name, tasks by name and place. What is not in the plan goes; what is known stays.
func AlignStatus(plan v1beta1.Plan, st *v1beta1.PlanStatus) {
	want := phases(plan, v1beta1.Pending)
	for i := range want {
		for _, old := range st.Phases {
			if old.Name == want[i].Name {
				fitPhase(&want[i], old)
			}
		}
	}
	st.Phases = want
}

func fitPhase(phase *v1beta1.PhaseStatus, old v1beta1.PhaseStatus) {
	if isUnstarted(old.Status) {
		return
	}
	phase.Status, phase.Message = old.Status, old.Message
	for i := range phase.Steps {
		step := &phase.Steps[i]
		for _, o := range old.Steps {
			if o.Name == step.Name {
				fitStep(step, o)
			}
		}
		if step.Status != v1beta1.Complete {
			phase.Status = reopen(phase.Status)
		}
	}
}

// fitStep: KUDO kept no tasks, so they take the step's status. A task that is known is taken over; one that is not has
// still to run.
func fitStep(step *v1beta1.StepStatus, old v1beta1.StepStatus) {
	if isUnstarted(old.Status) {
		return
	}
	names := step.Tasks
	*step = *old.DeepCopy()
	step.Tasks = names
	for i := range step.Tasks {
		switch {
		case len(old.Tasks) == 0:
			step.Tasks[i].Status = old.Status
		case i < len(old.Tasks) && old.Tasks[i].Name == step.Tasks[i].Name:
			step.Tasks[i] = old.Tasks[i]
		}
		if step.Tasks[i].Status != v1beta1.Complete && step.Status == v1beta1.Complete {
			step.Status, step.FinishedTimestamp = v1beta1.InProgress, nil
		}
	}
}

func isUnstarted(s v1beta1.ExecutionStatus) bool { return s == "" || s == v1beta1.NeverRun }

// reopen takes back a COMPLETE that does not hold.
func reopen(s v1beta1.ExecutionStatus) v1beta1.ExecutionStatus {
	if s == v1beta1.Complete {
		return v1beta1.InProgress
	}
	return s
}
