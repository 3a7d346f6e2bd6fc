package plans

import (
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// OnlyApplied reports whether a status of a run differs from an earlier one by no more than that Apply tasks await the objects which they
// have written. Such a task may be done again without any effect. It returns when the first of the steps that wait was begun.
func OnlyApplied(kinds map[string]string, before, after v1beta1.PlanStatus) (began time.Time, only bool) {
	if before.UID != after.UID || after.Status != v1beta1.InProgress || len(before.Phases) != len(after.Phases) {
		return began, false
	}
	for i, phase := range after.Phases {
		if len(before.Phases[i].Steps) != len(phase.Steps) {
			return began, false
		}
		for j, step := range phase.Steps {
			waits, same := compareTasks(kinds, before.Phases[i].Steps[j].Tasks, step.Tasks)
			if !same {
				return began, false
			}
			if started := step.StartedTimestamp; waits && started != nil && (!only || started.Time.Before(began)) {
				began, only = started.Time, true
			}
		}
	}
	return began, only
}

// compareTasks compares the tasks of a step with those of an earlier status. same is set if they differ by no more than that Apply tasks
// have written objects, and waits if such a task awaits them.
func compareTasks(kinds map[string]string, before, after []v1beta1.TaskStatus) (waits, same bool) {
	if len(before) != len(after) {
		return false, false
	}
	for k, task := range after {
		switch {
		case task.Status == v1beta1.InProgress && kinds[task.Name] == v1beta1.ApplyTask && task.Total > 0 && task.Culprit == nil:
			waits = true
		case task.Status == v1beta1.Pending, task.Status == v1beta1.Complete:
			if task.Status != before[k].Status {
				return false, false
			}
		default:
			return false, false
		}
	}
	return waits, true
}
