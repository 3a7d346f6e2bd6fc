package runner

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// Inventory is what the Instance's plans have written.
type Inventory map[apply.ID]apply.Record

// InventoryOf returns the inventory in the status of an Instance.
func InventoryOf(instance *v1beta1.Instance) Inventory {
	out := Inventory{}
	for _, r := range instance.Status.Resources {
		id := apply.ID{
			GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName:   types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		}
		out[id] = apply.Record{UID: r.UID, Hash: r.Hash, Version: r.ObservedVersion, Fields: r.FieldsHash}
	}
	return out
}
