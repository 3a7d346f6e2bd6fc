package loop

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// CacheOnlyRead is the option of reads that map a change to the objects that it concerns. They read the cache as it is: to wait
// for kudo's own writes, as reconciles do, would delay the changes of all objects until a slow write is answered. An object
// that is not in the cache is reconciled when it is added.
const CacheOnlyRead = client.DisableReadYourWritesConsistency

// changesBuffer is how many changes may wait for a controller before the watches wait, too.
const changesBuffer = 1024

// Changes carries objects that have changed to one controller.
type Changes chan event.TypedGenericEvent[*unstructured.Unstructured]

// NewChanges returns a channel of changes.
func NewChanges() Changes { return make(Changes, changesBuffer) }

// Send passes a change on.
func (c Changes) Send(obj *unstructured.Unstructured) {
	c <- event.TypedGenericEvent[*unstructured.Unstructured]{Object: obj}
}

// Source returns the source of a controller that handles the changes.
func (c Changes) Source(h handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) source.Source {
	return source.TypedChannel(c, h, source.WithBufferSize[*unstructured.Unstructured, reconcile.Request](changesBuffer))
}

// DeletionStarted passes the update that sets the deletion timestamp.
type DeletionStarted struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (DeletionStarted) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
}
