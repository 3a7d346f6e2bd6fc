package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

// checkTemplate returns an error if the Instance is none that a hub places on clusters.
func checkTemplate(i *v1beta1.Instance) error {
	switch {
	case i.Spec.Placement == nil:
		return fmt.Errorf("instance %s/%s has no spec.placement: it is not placed on clusters", i.Namespace, i.Name)
	case i.PlacedTemplate() != "":
		return fmt.Errorf("instance %s/%s is the copy that a hub has placed on this cluster: run the command on the hub", i.Namespace, i.Name)
	case !i.IsTemplate():
		return fmt.Errorf("instance %s/%s was left by a hub in this cluster: kubectl kudo placement free --instance %s -n %s lets it run by "+
			"itself", i.Namespace, i.Name, i.Name, i.Namespace)
	}
	return nil
}

// FreePlacement takes spec.placement out of an Instance that a hub has left in its cluster, so that its plans run again.
type FreePlacement struct{ Instance *v1beta1.Instance }

// Change implements Edit.
func (f FreePlacement) Change(context.Context, client.Client) (Change, error) {
	i := f.Instance
	switch {
	case i.Spec.Placement == nil:
		return Change{}, fmt.Errorf("instance %s/%s has no spec.placement: it is free already", i.Namespace, i.Name)
	case i.PlacedTemplate() != "":
		return Change{}, fmt.Errorf("a hub manages instance %s/%s: to take it from the hub, set spec.placement.onDelete to Orphan there, delete "+
			"the Instance there, and run this command again; to remove it, take this cluster out of spec.placement.clusters there", i.Namespace,
			i.Name)
	case i.Status.Wave != nil || len(i.Status.Members) > 0:
		return Change{}, fmt.Errorf("instance %s/%s is placed on clusters from here: run the command in a cluster where the hub has left it",
			i.Namespace, i.Name)
	}
	return Change{Verb: "freed: no hub manages it any more", Apply: f.Apply}, nil
}

// HasUnreleased reports whether spec may have a change that the hub has not released: plans start for it.
func (f FreePlacement) HasUnreleased() bool {
	return f.Instance.Status.ObservedGeneration < f.Instance.Generation
}

// Apply edits an Instance.
func (f FreePlacement) Apply(i *v1beta1.Instance) {
	i.Spec.Placement = nil
	for _, name := range []string{v1beta1.ReleasedAnnotation, v1beta1.DefaultedAnnotation} {
		delete(i.Annotations, name)
	}
}

// Preview implements Edit.
func (f FreePlacement) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "free", f.Instance, change.Apply)
}

// Command implements Action.
func (f FreePlacement) Command() string { return commandOf("placement free", f.Instance) }

// PauseRollout holds the next wave of an Instance.
type PauseRollout struct{ Instance *v1beta1.Instance }

// Change implements Edit.
func (r PauseRollout) Change(context.Context, client.Client) (Change, error) {
	i := r.Instance
	if err := checkTemplate(i); err != nil {
		return Change{}, err
	}
	switch placement := i.Spec.Placement; {
	case placement.Waves != nil && placement.Waves.Paused:
		return Change{}, fmt.Errorf("the rollout of instance %s/%s is paused already: kubectl kudo placement resume goes on with it", i.Namespace,
			i.Name)
	case len(i.WaveGroups()) < 2:
		return Change{}, fmt.Errorf("instance %s/%s has one wave, and there is no next one to hold: make waves with kubectl kudo update "+
			"--instance %s -n %s --wave CLUSTER", i.Namespace, i.Name, i.Name, i.Namespace)
	}
	return Change{Verb: "paused: no further wave begins", Apply: func(i *v1beta1.Instance) { setPaused(i, true) }}, nil
}

func setPaused(i *v1beta1.Instance, paused bool) {
	if i.Spec.Placement.Waves == nil {
		i.Spec.Placement.Waves = &v1beta1.Waves{}
	}
	i.Spec.Placement.Waves.Paused = paused
}

// Preview implements Edit.
func (r PauseRollout) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "pause", r.Instance, change.Apply)
}

// Command implements Action.
func (r PauseRollout) Command() string { return commandOf("placement pause", r.Instance) }

// ResumeRollout goes on with the rollout of an Instance: of one that is stopped, it accepts the failures so far, and of one that is paused,
// it lets the next wave begin.
type ResumeRollout struct{ Instance *v1beta1.Instance }

// Change implements Edit.
func (r ResumeRollout) Change(context.Context, client.Client) (Change, error) {
	i := r.Instance
	if err := checkTemplate(i); err != nil {
		return Change{}, err
	}
	wave := i.Status.Wave
	isStopped := wave != nil && wave.State == v1beta1.WaveStopped && wave.Generation == i.Generation
	isPaused := i.Spec.Placement.Waves != nil && i.Spec.Placement.Waves.Paused
	switch {
	case isStopped:
		verb := fmt.Sprintf("resumed: wave %d of %d goes on, and what has failed so far does not count", wave.Index, wave.Of)
		if isPaused {
			verb += "; the waves behind it are paused"
		}
		request := uuid.NewString()
		return Change{Verb: verb, Apply: func(i *v1beta1.Instance) {
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.ResumeAnnotation, request)
		}}, nil
	case isPaused:
		return Change{Verb: "resumed: the next wave begins when the one before it is ready", Apply: func(i *v1beta1.Instance) {
			setPaused(i, false)
		}}, nil
	}
	return Change{}, errors.New(describeRollout(i))
}

// describeRollout says why there is nothing to resume.
func describeRollout(i *v1beta1.Instance) string {
	out := fmt.Sprintf("the rollout of instance %s/%s is neither stopped nor paused", i.Namespace, i.Name)
	if wave := i.Status.Wave; wave != nil {
		out += fmt.Sprintf(": wave %d of %d is %s", wave.Index, wave.Of, wave.State)
	}
	return out + "; kubectl kudo placement show says what it waits for"
}

// Preview implements Edit.
func (r ResumeRollout) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "resume", r.Instance, change.Apply)
}

// Command implements Action.
func (r ResumeRollout) Command() string { return commandOf("placement resume", r.Instance) }
