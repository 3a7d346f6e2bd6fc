package installation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/storedversions"
)

// definitions are the CustomResourceDefinitions of an Installation that may have to be migrated.
type definitions struct {
	// due are those that the Installation migrates.
	due []storedversions.Definition
	// unseen are the names of those that are not known at the moment.
	unseen []string
	// waits is set if something may become due without an event: another Installation migrates a definition, or one is not known.
	waits bool
}

// observeDefinitions finds the held definitions with objects in several versions that the Installation is responsible for. It reads what
// the mirror shows, and no object of a definition.
func (r *Reconciler) observeDefinitions(ctx context.Context, i *v1beta1.Installation) (found definitions, err error) {
	for _, held := range i.Status.Resources {
		if !isOwnDefinition(held) {
			continue
		}
		live, known, err := r.Share.Observe(ctx, held)
		if err != nil {
			return found, err
		}
		if !known {
			found.unseen, found.waits = append(found.unseen, held.Name), true
			continue
		}
		if live == nil || live.GetUID() != held.UID || live.GetDeletionTimestamp() != nil || !share.Managed(live) ||
			!share.Owns(live, i) {
			continue
		}
		d, err := storedversions.Parse(live)
		if err != nil {
			return found, err
		}
		if len(d.Old()) == 0 {
			if m := i.Status.Migration(d.Name); m != nil { // complete, which the status does not say yet
				found.due = append(found.due, d)
			}
			continue
		}
		responsible, err := r.isResponsible(ctx, i, live)
		switch {
		case err != nil:
			return found, err
		case responsible:
			found.due = append(found.due, d)
		default:
			found.waits = true
		}
	}
	return found, nil
}

// isOwnDefinition reports whether an entry of the inventory is of a definition that was installed, and is to stay.
func isOwnDefinition(held v1beta1.HeldResource) bool {
	return held.Kind == "CustomResourceDefinition" && held.UID != "" && held.State != v1beta1.HoldExisting &&
		held.State != v1beta1.HoldReleasing
}

// isResponsible reports whether an Installation is the first owner of a definition that exists and is not being deleted: of those that
// share the definition, one migrates it.
func (r *Reconciler) isResponsible(ctx context.Context, i *v1beta1.Installation, live *unstructured.Unstructured) (bool, error) {
	for _, owner := range live.GetOwnerReferences() {
		if !v1beta1.OwnedBy(owner, "Installation") {
			continue
		}
		if owner.UID == i.UID {
			return true, nil
		}
		other := &v1beta1.Installation{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: owner.Name}, other, loop.CacheOnlyRead)
		if err != nil && !apierror.IsObjectNotFound(err) {
			return false, fmt.Errorf("read Installation %s: %w", owner.Name, err)
		}
		if err == nil && other.UID == owner.UID && other.DeletionTimestamp == nil {
			return false, nil
		}
	}
	return false, nil
}
