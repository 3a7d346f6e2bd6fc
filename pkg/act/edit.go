package act

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

// Edit is an Action that edits its Instance and writes nothing else.
type Edit interface {
	Action
	// Change returns the edit. It returns an error if the action cannot be done, with the remedy.
	Change(ctx context.Context, c client.Client) (Change, error)
	// Preview asks the cluster what the edit would do: the one that is written later, and no other.
	Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error)
}

// Change is an edit of an Instance.
type Change struct {
	// Verb says what the edit does, for people: in the past tense, or as a sentence.
	Verb  string
	Apply func(*v1beta1.Instance)
	// IsBound is set if the edit names the run that it is for, so that it is right also for an Instance that has changed since it was read.
	IsBound bool
}

// Write edits an Instance, which then is as the API server has it. If it is locked, the API server refuses the edit of an Instance that has
// changed since it was read, as a conflict.
func Write(ctx context.Context, c client.Client, i *v1beta1.Instance, locked bool, edit func(*v1beta1.Instance),
	opts ...client.PatchOption) error {
	patch := client.MergeFrom(i.DeepCopy())
	if locked {
		patch = client.MergeFromWithOptions(i.DeepCopy(), client.MergeFromWithOptimisticLock{})
	}
	edit(i)
	data, err := patch.Data(i)
	if err != nil {
		return err
	}
	// The answer is read into an empty Instance: fields that the server has no longer would stay in one that had them.
	answer := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name}}
	if err := c.Patch(ctx, answer, client.RawPatch(patch.Type(), data), opts...); err != nil {
		return err
	}
	*i = *answer
	return nil
}
