// Package changes carries the objects that the mirror saw change to the controllers.
package changes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// AsIs is for those who find out whom a change concerns: they read the cache as it is. To wait for kudo's own writes, as
// reconcilers do, would have one write whose answer is slow hold up the news of all objects. Who is not in the cache yet
// will be looked at when it is.
const AsIs = client.DisableReadYourWritesConsistency

// Changes carries changed objects to one controller.
type Changes chan event.TypedGenericEvent[*unstructured.Unstructured]

// Buffer is how many changes may wait for a controller before the watches do.
const Buffer = 1024

// New returns a channel of changes.
func New() Changes { return make(Changes, Buffer) }

// Saw hands a change on.
func (c Changes) Saw(obj *unstructured.Unstructured) {
	c <- event.TypedGenericEvent[*unstructured.Unstructured]{Object: obj}
}

// Instance stands for an Instance that is to be looked at.
func Instance(key types.NamespacedName) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	obj.SetNamespace(key.Namespace)
	obj.SetLabels(map[string]string{v1beta1.InstanceLabel: key.Name})
	return obj
}

// Holders names the Installations among an object's owners.
func Holders(obj *unstructured.Unstructured) []string {
	var out []string
	for _, owner := range obj.GetOwnerReferences() {
		if v1beta1.OwnedBy(owner, "Installation") {
			out = append(out, owner.Name)
		}
	}
	return out
}

// Deleted passes the update that sets the deletion timestamp.
type Deleted struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (Deleted) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
}
