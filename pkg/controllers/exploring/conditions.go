package exploring

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore/config"
)

// ReadyCondition of Configs and of ResourceExploringWebhookConfigurations is true if all of it can be used. Once its
// observedGeneration is that of the object, answers are given by it.
const ReadyCondition = "Ready"

// Reasons of the condition of a Config.
const (
	ReasonLoaded  = "Loaded"
	ReasonInvalid = "Invalid"
)

// judge writes the condition of a Config, if it has changed. Admission refuses what is wrong, but it may have been away.
func (r *Reconciler) judge(ctx context.Context, c *configv1alpha1.Config, all []configv1alpha1.Config) error {
	written := c.DeepCopy()
	_, problems := config.Validate(c)
	problems = append(problems, config.Conflicts(c, all)...)
	ready := metav1.Condition{Type: ReadyCondition, Status: metav1.ConditionTrue, Reason: ReasonLoaded, ObservedGeneration: c.Generation}
	if len(problems) > 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonInvalid, shorten(errors.Join(problems...).Error())
	}
	c.Status.ObservedGeneration = c.Generation
	meta.SetStatusCondition(&c.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(written.Status, c.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, c, client.MergeFrom(written))
}

// maxMessage is the longest message of a condition in bytes, by its schema.
const maxMessage = 32768

func shorten(message string) string {
	if len(message) > maxMessage {
		return message[:maxMessage-3] + "..."
	}
	return message
}

// state writes the condition of a configuration of webhooks, if it has changed. Recovered is true if what could not be
// asked can be now.
func (r *Reconciler) state(ctx context.Context, c *configv1alpha1.ResourceExploringWebhookConfiguration) (recovered bool, err error) {
	state := r.Teachers.webhook.State(c.Name)
	written := c.DeepCopy()
	recovered = state.Ready && meta.IsStatusConditionFalse(c.Status.Conditions, ReadyCondition)
	status := metav1.ConditionFalse
	if state.Ready {
		status = metav1.ConditionTrue
	}
	c.Status.ObservedGeneration = c.Generation
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: ReadyCondition, Status: status, Reason: state.Reason, Message: state.Message, ObservedGeneration: c.Generation})
	if equality.Semantic.DeepEqual(written.Status, c.Status) {
		return false, nil
	}
	return recovered, r.Client.Status().Patch(ctx, c, client.MergeFrom(written))
}
