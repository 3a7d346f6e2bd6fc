package exploreconfig

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/text"
)

// ReadyCondition of Configs and of ResourceExploringWebhookConfigurations is true if all of it can be used. Once its
// observedGeneration is that of the object, answers are given by it.
const ReadyCondition = "Ready"

// Reasons of the condition of a Config.
const (
	ReasonLoaded  = "Loaded"
	ReasonInvalid = "Invalid"
)

// maxMessage is the longest message of a condition in bytes, by its schema.
const maxMessage = 32768

// updateStatus writes the conditions that have changed.
func (r *Reconciler) updateStatus(ctx context.Context, o *observation) error {
	var errs []error
	for i := range o.configs {
		errs = append(errs, client.IgnoreNotFound(r.updateConfigStatus(ctx, &o.configs[i], o.configs)))
	}
	for i := range o.hooks {
		errs = append(errs, client.IgnoreNotFound(r.updateWebhookStatus(ctx, &o.hooks[i])))
	}
	return errors.Join(errs...)
}

// updateConfigStatus writes the condition of a Config, if it has changed. Admission refuses invalid Configs, but only while
// the webhooks answer.
func (r *Reconciler) updateConfigStatus(ctx context.Context, current *configv1alpha1.Config, all []configv1alpha1.Config) error {
	obj := loop.NewObject(r.Client, r.Client, nil, current)
	_, problems := config.Validate(current)
	problems = append(problems, config.Conflicts(current, all)...)
	ready := metav1.Condition{Type: ReadyCondition, Status: metav1.ConditionTrue, Reason: ReasonLoaded, ObservedGeneration: current.Generation}
	if len(problems) > 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonInvalid, text.Truncate(errors.Join(problems...).Error(),
			maxMessage)
	}
	obj.Next.Status.ObservedGeneration = current.Generation
	meta.SetStatusCondition(&obj.Next.Status.Conditions, ready)
	return obj.Commit(ctx)
}

// updateWebhookStatus writes the condition of a configuration of webhooks, if it has changed.
func (r *Reconciler) updateWebhookStatus(ctx context.Context, current *configv1alpha1.ResourceExploringWebhookConfiguration) error {
	obj := loop.NewObject(r.Client, r.Client, nil, current)
	found := r.Interpreter.webhook.State(current.Name)
	ready := metav1.Condition{Type: ReadyCondition, Status: metav1.ConditionFalse, Reason: found.Reason,
		Message: text.Truncate(found.Message, maxMessage), ObservedGeneration: current.Generation}
	if found.Ready {
		ready.Status = metav1.ConditionTrue
	}
	obj.Next.Status.ObservedGeneration = current.Generation
	meta.SetStatusCondition(&obj.Next.Status.Conditions, ready)
	return obj.Commit(ctx)
}
