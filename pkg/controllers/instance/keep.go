package instance

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/plans"
)

// keepInterval is how long an Instance that is being deleted waits for the next attempt to release an object that is kept.
const keepInterval = time.Second

// keptObjects are the objects that are annotated to be kept and that still have an Instance as an owner. Events show them, also those that
// are in no inventory: an upgrade has dropped them, or KUDO has written them.
type keptObjects struct {
	mu sync.Mutex
	// objects maps each object to the time at which the API server has last refused to change its owners; zero for never.
	objects map[types.NamespacedName]map[apply.ID]time.Time
}

// note adds an object of an Instance that an event shows. It removes the object if it is not kept, or has no Instance as an owner.
func (k *keptObjects) note(key types.NamespacedName, o *unstructured.Unstructured) {
	id := apply.IDOf(o)
	if !apply.IsKeptByInstance(o) || o.GetDeletionTimestamp() != nil {
		k.drop(key, id)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.objects == nil {
		k.objects = map[types.NamespacedName]map[apply.ID]time.Time{}
	}
	if k.objects[key] == nil {
		k.objects[key] = map[apply.ID]time.Time{}
	}
	if _, known := k.objects[key][id]; !known {
		k.objects[key][id] = time.Time{}
	}
}

// refuse notes that the API server has refused to change the owners of an object.
func (k *keptObjects) refuse(key types.NamespacedName, id apply.ID, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.objects[key][id]; known {
		k.objects[key][id] = now
	}
}

// drop removes an object of an Instance.
func (k *keptObjects) drop(key types.NamespacedName, id apply.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.objects[key], id); len(k.objects[key]) == 0 {
		delete(k.objects, key)
	}
}

// of returns the objects of an Instance.
func (k *keptObjects) of(key types.NamespacedName) map[apply.ID]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.objects[key])
}

// forget removes all objects of an Instance.
func (k *keptObjects) forget(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.objects, key)
}

// releaseKept removes the Instance from the owners of the objects that users have annotated to be kept: the garbage collector would delete
// them with the Instance. It reports whether an object is left that a later attempt may release.
func (a *action) releaseKept(ctx context.Context) (left bool) {
	key := client.ObjectKeyFromObject(a.Next)
	kept := a.kept.of(key)
	if len(kept) == 0 {
		return false
	}
	if a.serviceAccount.IsZero() {
		if err := a.observeAccount(ctx); err != nil {
			a.result.Transient = true
			return true
		}
	}
	inventory, changed := a.readInventory(), false
	for id, refused := range kept {
		if a.Clock.Since(refused) < loop.RecheckInterval {
			continue
		}
		live, _ := a.Mirror.Get(id)
		if live == nil || !apply.IsKeptByInstance(live) || !v1beta1.HasOwner(live, a.Next.UID) {
			a.kept.drop(key, id)
			continue
		}
		record, listed := inventory[id]
		now, err := a.Runner.RemoveOwner(ctx, a.serviceAccount, a.Next, live, record)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // an admission policy may deny by either
			last, _ := plans.LatestRun(a.Next.Status.PlanStatus)
			a.WarnOnce(string(a.Next.Status.PlanStatus[last].UID), v1beta1.EventResourceNotKept,
				id.String()+" is annotated to be kept, but will be deleted with the Instance, since its ownerReferences cannot be changed: "+
					err.Error())
			a.kept.refuse(key, id, a.Clock.Now())
			a.result.RequeueAfter = cmp.Or(a.result.RequeueAfter, loop.RecheckInterval)
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // it does not exist any more
		case err != nil: // it has changed, or the API server is away
			a.result.Transient, left = true, true
		default:
			if listed && record.UID == live.GetUID() {
				inventory[id], changed = now, true
			}
			a.Event(corev1.EventTypeNormal, v1beta1.EventResourceKept, "%s is annotated to be kept: the Instance does not own it any more", id)
		}
	}
	if changed {
		a.writeInventory(inventory)
	}
	return left
}
