package kudoinit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// release uninstalls all Instances, then all OperatorVersions that hold something.
func (r *Remover) release(ctx context.Context) error {
	for _, i := range r.held.instances {
		r.Report(resultOf(&i, true, "after its cleanup plan"))
	}
	for _, i := range r.held.installations {
		r.Report(resultOf(&i, true, "once all that it holds is released"))
	}
	if r.DryRun || len(r.held.instances)+len(r.held.installations) == 0 {
		return nil
	}
	if _, err := Leader(ctx, r.Client, r.live.Namespace); err != nil {
		return fmt.Errorf("nothing can be released: %w. Start a manager, or give --instances=keep", err)
	}
	owned := slices.Clone(r.held.instances)
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	for n := range r.held.instances {
		if err := r.Client.Delete(ctx, &r.held.instances[n], background); err != nil && !absent(err) {
			return fmt.Errorf("delete Instance %s: %w", r.held.instances[n].Name, err)
		}
	}
	if err := poll(ctx, r.remaining(ctx, false)); err != nil {
		return fmt.Errorf("the release is not done: %w", err)
	}
	if err := poll(ctx, r.uncollected(ctx, owned)); err != nil {
		return fmt.Errorf("the release is not done: %w", err)
	}
	for n := range r.held.versions {
		if v := &r.held.versions[n]; v.Status.Installation != "" {
			if err := r.Client.Delete(ctx, v, background); err != nil && !absent(err) {
				return fmt.Errorf("delete OperatorVersion %s: %w", v.Name, err)
			}
		}
	}
	if err := poll(ctx, r.remaining(ctx, true)); err != nil {
		return fmt.Errorf("the release is not done: %w", err)
	}
	return r.observe(ctx)
}

// uncollected returns a function that names the objects of deleted Instances that still exist. The garbage collector deletes them, but not
// if the kind of their owner is deleted first, since it then does not notice that the owner does not exist.
func (r *Remover) uncollected(ctx context.Context, gone []v1beta1.Instance) func() (string, error) {
	return func() (string, error) {
		for _, i := range gone {
			for _, held := range i.Status.Resources {
				obj := &metav1.PartialObjectMetadata{}
				obj.SetGroupVersionKind(schema.FromAPIVersionAndKind(held.APIVersion, held.Kind))
				err := r.Client.Get(ctx, types.NamespacedName{Namespace: held.Namespace, Name: held.Name}, obj)
				if absent(err) {
					continue
				}
				if err != nil {
					return "", err
				}
				if v1beta1.HasOwner(obj, i.UID) {
					message := fmt.Sprintf("%s %s/%s, which Instance %s had, is being collected", held.Kind, held.Namespace, held.Name, i.Name)
					r.Waiting(message)
					return message, nil
				}
			}
		}
		return "", nil
	}
}

// remaining says what has not been released yet.
func (r *Remover) remaining(ctx context.Context, installations bool) func() (string, error) {
	told := ""
	say := func(message string) (string, error) {
		if message != told {
			told = message
			r.Waiting(message)
		}
		return message, nil
	}
	return func() (string, error) {
		if err := r.observe(ctx); err != nil {
			return "", err
		}
		if len(r.held.instances) > 0 {
			i := r.held.instances[0]
			return say(strings.TrimSpace(fmt.Sprintf("Instance %s/%s is being deleted: %s %s", i.Namespace, i.Name,
				i.Status.PlanStatus[v1beta1.CleanupPlan].Status, i.Status.AggregatedStatus.Message)))
		}
		if !installations || len(r.held.installations) == 0 {
			return "", nil
		}
		i := r.held.installations[0]
		why := ""
		if waits := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReleasedCondition); waits != nil {
			why = ": " + waits.Message
		}
		return say(fmt.Sprintf("what %s %s/%s holds is being released%s", i.Spec.Subject.Kind, i.Spec.Subject.Namespace,
			i.Spec.Subject.Name, why))
	}
}
