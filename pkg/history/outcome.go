package history

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// outcomeAnnotation holds what came of a run, once the status no longer does: the data of a ControllerRevision cannot
// be changed. It is not sealed: it is shown to people, and nothing that kudo does rests on it.
const outcomeAnnotation = "kudo.dev/outcome"

// Outcome is what came of a run.
type Outcome struct {
	Status   v1beta1.ExecutionStatus `json:"status"`
	Finished *metav1.MicroTime       `json:"finished,omitempty"`
	Message  string                  `json:"message,omitempty"`
}

// RecordOutcome writes down what came of a run whose status is about to be replaced.
func (s *Store) RecordOutcome(ctx context.Context, owner client.Object, st v1beta1.PlanStatus) error {
	if st.Revision == 0 {
		return nil
	}
	outcome, err := json.Marshal(Outcome{st.Status, st.FinishedTimestamp, st.Message})
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
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// OutcomeOf reads what came of a run; nil if the Instance's status has it.
func OutcomeOf(revision *appsv1.ControllerRevision) *Outcome {
	text := revision.Annotations[outcomeAnnotation]
	outcome := &Outcome{}
	if text == "" || json.Unmarshal([]byte(text), outcome) != nil {
		return nil
	}
	return outcome
}
