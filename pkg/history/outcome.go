package history

import (
	"context"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/plans"
)

// outcomeAnnotation holds what came of a run, once the status no longer does: the data of a ControllerRevision cannot
// be changed. It is not sealed: it is shown to people, and nothing that kudo does rests on it.
const outcomeAnnotation = "kudo.dev/outcome"

// Outcome is what came of a run.
type Outcome struct {
	Status   v1beta1.ExecutionStatus `json:"status"`
	Finished *metav1.MicroTime       `json:"finished,omitempty"`
	Message  string                  `json:"message,omitempty"`
	// Steps are how long the steps of a complete run took, in milliseconds, by their keys.
	Steps map[string]int64 `json:"steps,omitempty"`
}

// maxSteps is of how many steps an outcome has the durations.
const maxSteps = 200

// newOutcome returns what came of a run, from its status.
func newOutcome(st v1beta1.PlanStatus) Outcome {
	out := Outcome{Status: st.Status, Finished: st.FinishedTimestamp, Message: st.Message}
	if st.Status != v1beta1.Complete {
		return out
	}
	out.Steps = map[string]int64{}
	for _, phase := range st.Phases {
		for _, step := range phase.Steps {
			if step.StartedTimestamp != nil && step.FinishedTimestamp != nil && len(out.Steps) < maxSteps {
				out.Steps[plans.StepKey(phase.Name, step.Name)] = step.FinishedTimestamp.Sub(step.StartedTimestamp.Time).Milliseconds()
			}
		}
	}
	return out
}

// UsualDurations returns how long the steps of a plan, by their keys, took at most in the complete runs before a revision that the history
// still has. It reads at most Limit records. A record that cannot be used does not count.
func (s *Store) UsualDurations(ctx context.Context, owner client.Object, plan string, before int64) (map[string]time.Duration, error) {
	usual := map[string]time.Duration{}
	if before <= 1 {
		return usual, nil
	}
	ring, err := s.keys.Ring(ctx)
	if err != nil {
		return nil, err
	}
	for revision := before - 1; revision > max(0, before-1-Limit); revision-- {
		record, err := s.find(ctx, owner, NameFor(owner, revision))
		if err != nil {
			return nil, err
		}
		if record == nil {
			continue
		}
		run, err := open(ring, owner, revision, record)
		outcome := OutcomeOf(record)
		if err != nil || run.Plan != plan || outcome == nil || outcome.Status != v1beta1.Complete {
			continue
		}
		for key, milliseconds := range outcome.Steps {
			usual[key] = max(usual[key], time.Duration(min(milliseconds, maxDuration.Milliseconds()))*time.Millisecond)
		}
	}
	return usual, nil
}

// maxDuration bounds how long a step is said to have taken, so that twice the time can be counted.
const maxDuration = 365 * 24 * time.Hour

// Words of the history for runs that did not end by themselves. The status of a plan has none of them.
const (
	// Superseded is a run that another one has replaced.
	Superseded v1beta1.ExecutionStatus = "SUPERSEDED"
	// Cancelled is a run that a user has ended.
	Cancelled v1beta1.ExecutionStatus = "CANCELLED"
)

// InHistory returns an outcome with the status words of the history. next is the start of the following run, or nil for the newest run.
// Runs do not overlap, so that a run without an end has ended at the start of the following one.
func (o Outcome) InHistory(next *metav1.MicroTime) Outcome {
	switch {
	case plans.IsCanceled(o.Status, o.Message):
		o.Status = Cancelled
	case next != nil && o.Status.IsRunning():
		o.Status, o.Finished = Superseded, next
	}
	return o
}

// RecordOutcome writes down what came of a run whose status is about to be replaced.
func (s *Store) RecordOutcome(ctx context.Context, owner client.Object, st v1beta1.PlanStatus) error {
	if st.Revision == 0 {
		return nil
	}
	outcome, err := json.Marshal(newOutcome(st))
	if err != nil {
		return err
	}
	annotations := map[string]string{outcomeAnnotation: string(outcome)}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	old := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: NameFor(owner, st.Revision)}}
	err = s.client.Patch(ctx, old, client.RawPatch(types.MergePatchType, patch))
	if apierror.IsObjectNotFound(err) {
		return nil
	}
	return err
}

// OutcomeOf reads what came of a run; it returns nil if the Instance's status has it.
func OutcomeOf(revision *appsv1.ControllerRevision) *Outcome {
	text := revision.Annotations[outcomeAnnotation]
	outcome := &Outcome{}
	if text == "" || json.Unmarshal([]byte(text), outcome) != nil {
		return nil
	}
	return outcome
}
