package history

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// IsForeign reports whether the status of plans is that of an owner with another uid, as a restore leaves it that keeps the status: the
// uid of a run follows from its owner's and from its number, and no run of the status has the one that it should have.
func IsForeign(owner types.UID, all map[string]v1beta1.PlanStatus) bool {
	found := false
	for _, st := range all {
		if st.Revision == 0 {
			continue
		}
		if st.UID == RunUID(owner, st.Revision) {
			return false
		}
		found = true
	}
	return found
}

// maxFormer bounds the numbers of former records: a number beyond it cannot have been reached, and would leave none for new runs.
const maxFormer = 1 << 53

// FormerError says that the records of an owner's first runs have the names of former records, which stay: the first run takes the
// number after the newest of them.
type FormerError struct {
	Namespace, Name string
}

// Error implements error.
func (e *FormerError) Error() string {
	return fmt.Sprintf("ControllerRevision %s/%s is the record of a run from before a restore: it was kept", e.Namespace, e.Name)
}

// IsFormer reports whether a ControllerRevision is the record of a run of the owner from before a restore: it has the owner's name and
// another uid. Its seal is for that uid, so that no run goes by it.
func IsFormer(record *appsv1.ControllerRevision, owner client.Object) bool {
	uid, recorded := record.Labels[v1beta1.HistoryLabel]
	controller := metav1.GetControllerOf(record)
	return recorded && uid != string(owner.GetUID()) && record.Namespace == owner.GetNamespace() &&
		record.Name == NameFor(owner, record.Revision) && record.Revision > 0 && record.Revision < maxFormer &&
		(controller == nil || controller.UID == owner.GetUID())
}

// AdoptFormer makes an Instance the owner of the records of its runs from before a restore, so that they are deleted with it and are
// trimmed like its own. It returns the number of the newest one.
func (s *Store) AdoptFormer(ctx context.Context, owner *v1beta1.Instance) (int64, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := s.reader.List(ctx, list, client.InNamespace(owner.Namespace),
		client.MatchingLabels{v1beta1.InstanceLabel: owner.Name}); err != nil {
		return 0, fmt.Errorf("list the records of Instance %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	newest := int64(0)
	for i := range list.Items {
		record := &list.Items[i]
		if !IsFormer(record, owner) {
			continue
		}
		newest = max(newest, record.Revision)
		if err := s.adopt(ctx, owner, record); err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// adopt makes an Instance the owner of a former record.
func (s *Store) adopt(ctx context.Context, owner *v1beta1.Instance, record *appsv1.ControllerRevision) error {
	if metav1.IsControlledBy(record, owner) {
		return nil
	}
	reference := *metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind(kind(owner)))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": record.UID, "resourceVersion": record.ResourceVersion, "ownerReferences": append(record.OwnerReferences, reference),
	}})
	if err != nil {
		return err
	}
	if err := s.client.Patch(ctx, record, client.RawPatch(types.MergePatchType, patch)); apierror.IgnoreObjectNotFound(err) != nil {
		return fmt.Errorf("make Instance %s/%s the owner of ControllerRevision %s: %w", owner.Namespace, owner.Name, record.Name, err)
	}
	return nil
}
