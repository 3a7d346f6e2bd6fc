package plans

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// StepKey names a step as users do: `<phase>/<step>`.
func StepKey(phase, step string) string { return phase + "/" + step }

// Late says what has passed its deadline in a run, and what takes longer than usual.
type Late struct {
	// Plan is the text of the run; empty if the run is in time.
	Plan string
	// Steps maps keys of steps to their texts.
	Steps map[string]string
	// Slow maps keys of steps that take longer than usual to their texts, which stand behind those of Steps.
	Slow map[string]string
}

// Add sets the text of a step, or without a key that of the run.
func (l *Late) Add(step, text string) {
	switch {
	case step == "":
		l.Plan = text
	case l.Steps == nil:
		l.Steps = map[string]string{step: text}
	default:
		l.Steps[step] = text
	}
}

// AddSlow sets the text of a step that takes longer than usual.
func (l *Late) AddSlow(step, text string) {
	if l.Slow == nil {
		l.Slow = map[string]string{}
	}
	l.Slow[step] = text
}

// MarkLate replaces what the status says of passed deadlines and of slow steps, and returns the texts of deadlines that are new. Steps that
// have not been started or are complete have none, and a run that has ended is left alone.
func MarkLate(plan v1beta1.Plan, st *v1beta1.PlanStatus, late Late, now time.Time) (added []string) {
	if st.Status.IsTerminal() {
		return nil
	}
	before := st.DeepCopy()
	set := func(field *string, text, slow string) {
		if text != "" && !strings.HasPrefix(*field, text) {
			added = append(added, text)
		}
		if *field = text; slow != "" {
			*field = strings.TrimPrefix(text+", "+slow, ", ")
		}
	}
	set(&st.Late, late.Plan, "")
	for i := range st.Phases {
		phase := &st.Phases[i]
		for j := range phase.Steps {
			step := &phase.Steps[j]
			if step.StartedTimestamp == nil || step.Status.IsTerminal() {
				continue
			}
			key := StepKey(phase.Name, step.Name)
			set(&step.Late, late.Steps[key], late.Slow[key])
		}
	}
	Summarize(plan, st, now)
	stampChange(before, st, now)
	return added
}

// FailStep fails the step at a place and with it the run, with a message. Its tasks stay as they are: none of them has failed.
func FailStep(st *v1beta1.PlanStatus, at Place, message string, now time.Time) {
	if st.Status.IsTerminal() {
		return
	}
	message = text.Truncate(message, maxMessage)
	phase := &st.Phases[at.Phase]
	step, end := &phase.Steps[at.Step], metav1.NewMicroTime(now)
	step.Status, step.Message, step.Late, step.FinishedTimestamp = v1beta1.FatalError, message, "", &end
	phase.Status, phase.Message = v1beta1.FatalError, message
	finish(st, v1beta1.FatalError, message, now)
}

// withLate adds to a message that a deadline has passed. The message stays in front, since tests look for its beginning.
func withLate(message, late string) string {
	switch {
	case late == "":
		return message
	case message == "":
		return late
	}
	return message + " (" + late + ")"
}
