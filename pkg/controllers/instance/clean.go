package instance

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/history"
)

// isStatusUnclean reports whether the status has entries that no plan of the Instance can have written, or a Secret of an earlier
// version of kudo.
func isStatusUnclean(instance *v1beta1.Instance) bool {
	base := instance.Status.Baseline
	return base != nil && base.Sensitive || slices.ContainsFunc(instance.Status.Resources, func(r v1beta1.ResourceStatus) bool {
		return isForeign(instance, r)
	})
}

// isForeign reports whether an entry of the inventory is of another namespace.
func isForeign(instance *v1beta1.Instance, r v1beta1.ResourceStatus) bool {
	return r.Namespace != "" && r.Namespace != instance.Namespace
}

// cleanStatus removes from the inventory the entries that no plan of the Instance can have written. It commits at once, so that this is
// reported once, whatever is decided afterwards.
func (a *action) cleanStatus(ctx context.Context) error {
	status := &a.Next.Status
	status.Resources = slices.DeleteFunc(slices.Clone(status.Resources), func(r v1beta1.ResourceStatus) bool {
		if isForeign(a.Next, r) {
			a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventResourceIgnored, "ignored %s %s/%s of status.resources: it is of another "+
				"namespace", r.Kind, r.Namespace, r.Name)
		}
		return isForeign(a.Next, r)
	})
	if len(status.Resources) != len(a.Committed.Status.Resources) {
		if err := a.Commit(ctx); err != nil {
			return err
		}
	}
	if base := status.Baseline; base != nil && base.Sensitive {
		return a.discard(ctx, base)
	}
	return nil
}

// clearKeylessHashes empties the hashes of Secrets that are not keyed, on which a reader of the status can try out guesses. The
// next run that names the Secret compares it by a write.
func clearKeylessHashes(instance *v1beta1.Instance) {
	for i, r := range instance.Status.Resources {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
		if apply.Keyless(id, r.Hash) {
			instance.Status.Resources[i].Hash = ""
		}
	}
}

// discard deletes the Secret in which kudo kept sensitive values before records were sealed.
func (a *action) discard(ctx context.Context, base *v1beta1.Baseline) error {
	err := a.History.DeleteSensitive(ctx, a.Next)
	if apierrors.IsForbidden(err) {
		name := history.SecretName(a.Next.Name)
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventSecretKept, "Secret %s/%s is not used any more and could not be deleted: %s; "+
			"delete it with kubectl delete secret %s -n %s",
			a.Next.Namespace, name, err, name, a.Next.Namespace)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("delete Secret %s of Instance %s/%s, which is not used any more: %w", history.SecretName(a.Next.Name), a.Next.Namespace,
			a.Next.Name, err)
	}
	base.Sensitive = false
	return nil
}
