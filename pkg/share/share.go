// Package share holds cluster resources for several owners at once: it creates an object, or joins an existing one that is as wanted, and
// on release deletes only objects that kudo created and that no owner holds any more. It is the only writer of the annotation
// kudo.dev/managed. The requests are those of docs/design/install-plans.md.
package share

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
)

// manager is the field manager of shared objects: one for all holders, since what is shared has one content.
const manager = "kudo/shared"

// CRDComparer judges changes of CustomResourceDefinitions.
type CRDComparer interface {
	// CheckUpdate returns an error that lists what the change would break, or nil.
	CheckUpdate(ctx context.Context, live, wanted *unstructured.Unstructured) error
	// IsSuperset reports whether the live definition allows all that the wanted one does.
	IsSuperset(live, wanted *unstructured.Unstructured) bool
}

// View shows the objects that kudo has made. *apply.Mirror is one.
type View interface {
	apply.View
	// UnobservedWrite returns what was written last and Get may not show yet, or nil if there is nothing. It may be deleted: a caller that
	// relies on it names its uid.
	UnobservedWrite(id apply.ID) *unstructured.Unstructured
}

// Policy says what a holder may change.
type Policy struct {
	// SameOperator lets the holder change what only versions of the same operator hold.
	SameOperator bool
	// Tarball is set for the CustomResourceDefinitions of one Instance. A definition that holds all that they want, and
	// more, is as they want it: Instances of several versions run side by side.
	Tarball bool
	// SafeCRDs lets the holder change CustomResourceDefinitions that others hold, if the change is safe.
	SafeCRDs bool
}

// Engine joins and leaves shared objects.
type Engine struct {
	// Keys returns the keys of the digests of Secrets, or nil if there are none. It is set before the first use; without it,
	// each Secret is compared anew.
	Keys func() *keyring.Ring

	objects *apply.Engine
	mirror  View
	kinds   *apply.Kinds
	// reader reads kudo's own kinds live.
	reader client.Reader
	retain apply.Retainer
	safety CRDComparer
	clock  clock.Clock
	// matched remembers contents of live objects that a dry run has found to match, by object and digest of the rendered object: if many
	// holders want the same content, one dry run suffices for all.
	matched *lru.Cache
	// locks serializes the writes of this process to one object, so that holders of the same object do not conflict.
	locks keymutex.KeyMutex
	guard *guardOwner
}

// locks is how many objects can be worked on at a time without sharing a lock by chance.
const locks = 1024

// remembered is how many matches are remembered.
const remembered = 8192

// Options are the parts that an Engine works with.
type Options struct {
	Objects *apply.Engine
	Kinds   *apply.Kinds
	// Mirror is nil where objects are only read.
	Mirror View
	// Reader reads live.
	Reader client.Reader
	Retain apply.Retainer
	Safety CRDComparer
	Clock  clock.Clock
}

// New returns an engine over the object engine.
func New(o Options) *Engine {
	return &Engine{
		objects: o.Objects, kinds: o.Kinds, mirror: o.Mirror, reader: o.Reader, retain: o.Retain, safety: o.Safety, clock: o.Clock,
		matched: lru.New(remembered), locks: keymutex.NewHashed(locks), guard: &guardOwner{reader: o.Reader},
	}
}

func (e *Engine) ring() *keyring.Ring {
	if e.Keys == nil {
		return nil
	}
	return e.Keys()
}

// Record is the inventory's record of a live object that is as it was rendered.
func (e *Engine) Record(live, obj *unstructured.Unstructured) apply.Record {
	return apply.Record{UID: live.GetUID(), Hash: apply.Hash(obj, e.ring()), Version: e.Fingerprint(live)}
}

// Fingerprint is the hash of a live object's content that its Record holds.
func (e *Engine) Fingerprint(live *unstructured.Unstructured) string {
	return Fingerprint(live, e.ring())
}

// Inventory is what a holder holds, in the order in which it was installed.
type Inventory []v1beta1.HeldResource

// IDOf names a held object.
func IDOf(r v1beta1.HeldResource) apply.ID {
	id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)}
	id.Namespace, id.Name = r.Namespace, r.Name
	return id
}

// Find returns the place of an object in the inventory, whatever the version of its API; -1 if it is not there.
func (i Inventory) Find(id apply.ID) int {
	return slices.IndexFunc(i, func(r v1beta1.HeldResource) bool {
		at := IDOf(r)
		return at.GroupKind() == id.GroupKind() && at.NamespacedName == id.NamespacedName
	})
}

// record returns the entry of an object in the inventory; an empty one if it has none.
func (i Inventory) record(id apply.ID) v1beta1.HeldResource {
	if at := i.Find(id); at >= 0 {
		return i[at]
	}
	return v1beta1.HeldResource{}
}

// reference is the ownerReference of a holder.
func reference(holder *v1beta1.Installation) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: holder.Name, UID: holder.UID}
}

// Managed reports whether kudo created an object and may delete it.
func Managed(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[v1beta1.ManagedAnnotation] == "true"
}

// owned returns the place of the holder among an object's owners; -1 if it is not there.
func owned(live *unstructured.Unstructured, holder *v1beta1.Installation) int {
	return slices.IndexFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == holder.UID })
}

// Owns reports whether the holder is among an object's owners.
func Owns(live *unstructured.Unstructured, holder *v1beta1.Installation) bool {
	return owned(live, holder) >= 0
}

// Observe returns a held object from the mirror, or live where the mirror does not have it. known is false if the state of the object
// cannot be determined yet. The object must not be changed; it is nil if it does not exist.
func (e *Engine) Observe(ctx context.Context, r v1beta1.HeldResource) (live *unstructured.Unstructured, known bool, err error) {
	id := IDOf(r)
	e.mirror.Watch(ctx, id.GroupVersionKind)
	live, complete := e.mirror.Get(id)
	if !complete {
		return nil, false, nil
	}
	if live != nil && live.GetUID() == r.UID && live.GetAnnotations()[apply.TrimmedAnnotation] == "" {
		return live, true, nil
	}
	live, err = e.Live(ctx, r) // the mirror shows labeled objects only
	return live, err == nil, err
}

// Live reads a held object; it returns nil if it does not exist.
func (e *Engine) Live(ctx context.Context, r v1beta1.HeldResource) (*unstructured.Unstructured, error) {
	obj := IDOf(r).Object()
	resource, err := e.objects.Resource(obj)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	var live *unstructured.Unstructured
	if err == nil {
		live, err = apply.GetOrNil(ctx, resource, r.Name)
	}
	if err != nil {
		return nil, e.objects.Classify(ctx, obj, err)
	}
	return live, nil
}

// State says how a holder holds a live object.
func State(live *unstructured.Unstructured, holder *v1beta1.Installation) v1beta1.HoldState {
	if !Managed(live) {
		return v1beta1.HoldExisting
	}
	for _, owner := range live.GetOwnerReferences() {
		if v1beta1.OwnedBy(owner, "Installation") {
			if owner.UID == holder.UID {
				return v1beta1.HoldCreated
			}
			return v1beta1.HoldShared
		}
	}
	return v1beta1.HoldShared
}

// HeldResourceFor is the inventory's entry of a change.
func HeldResourceFor(change apply.Change, holder *v1beta1.Installation) v1beta1.HeldResource {
	apiVersion, kind := change.ID.ToAPIVersionAndKind()
	r := v1beta1.HeldResource{
		APIVersion: apiVersion, Kind: kind, Namespace: change.ID.Namespace, Name: change.ID.Name,
		UID: change.Record.UID, Hash: change.Record.Hash, ContentHash: change.Record.Version,
	}
	if change.Live != nil {
		r.State = State(change.Live, holder)
	}
	return r
}
