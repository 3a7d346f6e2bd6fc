package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// prepareToggle applies if the parameter is true, and deletes if it is false.
func (r *Runner) prepareToggle(ctx context.Context, run *Run, w *PreparedTask, t task.Toggle, v render.Variables) *PreparedTask {
	on, err := run.boolParameter(t.Parameter)
	if err != nil {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: %s", w.Name, err))
	}
	if on {
		return r.prepareApply(ctx, run, w, t.Resources, v)
	}
	return r.prepareDelete(run, w, t.Resources, v)
}

// boolParameter is the value of a parameter that decides.
func (run *Run) boolParameter(parameter string) (bool, error) {
	value, defined := run.values[parameter]
	if slices.Contains(run.unset, parameter) {
		return false, fmt.Errorf("parameter %q is required but has no value and no default: set it with --install-parameter %s=…", parameter,
			parameter)
	}
	if !defined {
		return false, fmt.Errorf("parameter %q is not defined in the OperatorVersion", parameter)
	}
	text, _ := value.(string)
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("parameter %s is %q: set it to true or false", parameter, text)
	}
	return on, nil
}

// dummy sets the outcome of a Dummy, as its fields say. It does nothing else.
func (w *PreparedTask) dummy(t task.Dummy) *PreparedTask {
	switch {
	case t.WantErr && t.Fatal:
		return w.decide(plans.Fatal, fmt.Sprintf("task %q was told to fail with a fatal error", w.Name))
	case t.WantErr:
		return w.decide(plans.Transient, fmt.Sprintf("task %q was told to fail", w.Name))
	case !t.Done:
		return w.decide(plans.Waiting, fmt.Sprintf("task %q is never done: cancel the plan with kubectl kudo plan cancel", w.Name))
	}
	return w.decide(plans.Done, "")
}

// NeverCompletes reports whether the work is a Dummy that is never done.
func (w *PreparedTask) NeverCompletes() bool {
	d, ok := w.task.(task.Dummy)
	return ok && !d.Done && !d.WantErr
}
