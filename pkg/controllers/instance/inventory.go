package instance

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/runner"
)

// readInventory reads status.resources.
func (s *scope) readInventory() runner.Inventory {
	return runner.InventoryOf(s.Next)
}

// writeInventory writes status.resources, in order.
func (s *scope) writeInventory(inventory runner.Inventory) {
	last := map[types.UID]v1beta1.ResourceStatus{}
	for _, r := range s.Next.Status.Resources {
		last[r.UID] = r
	}
	out := make([]v1beta1.ResourceStatus, 0, len(inventory))
	for id, record := range inventory {
		apiVersion, kind := id.ToAPIVersionAndKind()
		out = append(out, v1beta1.ResourceStatus{
			APIVersion: apiVersion, Kind: kind, Namespace: id.Namespace, Name: id.Name,
			UID: record.UID, Hash: record.Hash, ObservedVersion: record.Version, FieldsHash: record.Fields,
			Status: last[record.UID].Status, Omitted: last[record.UID].Omitted, StatusUnknown: last[record.UID].StatusUnknown,
		})
	}
	slices.SortFunc(out, func(x, y v1beta1.ResourceStatus) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Namespace+x.APIVersion, y.Namespace+y.APIVersion))
	})
	if len(out) == 0 {
		out = nil
	}
	s.Next.Status.Resources = out
	s.clusterScoped.set(types.NamespacedName{Namespace: s.Next.Namespace, Name: s.Next.Name}, inventory)
}
