// Package apply is the one object engine: it writes rendered objects by server-side apply so that nothing foreign is
// changed, nothing unchanged is sent, and the result is data (ChangeSet). The requests are those of docs/design/applying.md.
package apply

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"kudo.dev/kudo/pkg/keyring"
)

// ID names an object.
type ID struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// IDOf returns the ID of an object.
func IDOf(obj *unstructured.Unstructured) ID {
	return ID{obj.GroupVersionKind(), types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// Object is an object with this ID, and nothing else.
func (id ID) Object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(id.GroupVersionKind)
	obj.SetNamespace(id.Namespace)
	obj.SetName(id.Name)
	return obj
}

// String is how people read the object's name: `Deployment team-a/web`.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.NamespacedName.String()
}

// Record is what the inventory keeps of an object.
type Record struct {
	UID     types.UID
	Hash    string
	Version string
	// Fields is a digest of the fields that the field manager owned when it had written the object; empty if it is not
	// known.
	Fields string
}

// Action says what was done to an object.
type Action int

const (
	// Unchanged objects cost no request.
	Unchanged Action = iota
	// Created objects were not there before.
	Created
	// Configured objects were there and have been written.
	Configured
	// Awaited objects could not be written yet, since something must go first; Err says what.
	Awaited
	// Failed objects could not be written; Err says why.
	Failed
)

// Change is what came of one object.
type Change struct {
	ID     ID
	Action Action
	// Live is the object as it is now, or nil if it is not there.
	Live *unstructured.Unstructured
	// Record is for the inventory; zero if the object was not written.
	Record Record
	// Dropped is what was left out.
	Dropped []Dropped
	// Readopted is set if the object is taken over again: it was left by an earlier owner of the name, and has no other.
	Readopted bool
	// Err is set for Awaited and Failed.
	Err error
}

// ChangeSet is the result of an apply, in the order of the objects.
type ChangeSet []Change

// Claim says whose a live object is.
type Claim int

const (
	// Ours may be written.
	Ours Claim = iota
	// Shared was made by another of us: what we share is written, and conflicts are named.
	Shared
	// OwnerGone belonged to an owner that was deleted: the garbage collector deletes the object, which is awaited.
	OwnerGone
	// Foreign is never written.
	Foreign
)

// Options of an apply.
type Options struct {
	// Manager is the field manager.
	Manager string
	// Claim decides whose a live object is. The text names the owner for people.
	Claim func(ctx context.Context, live *unstructured.Unstructured) (Claim, string)
	// Known is the inventory.
	Known map[ID]Record
	// Labels that must stand on an object for it to count as unchanged.
	Labels map[string]string
	// SelectsPods reports whether something selects pods by kudo's labels, so that pods of objects that are taken over need them, too.
	// Without it nothing does.
	SelectsPods func() bool
	// Keys of the hashes of Secrets; without keys, Secrets count as changed.
	Keys *keyring.Ring
}

// Engine applies and deletes objects.
type Engine struct {
	client   dynamic.Interface
	metadata metadata.Interface
	// own reads metadata as the user of the client does.
	own    metadata.Interface
	mapper meta.RESTMapper
	mirror View
	kinds  *Kinds
	retain Retainer
	// names are those that are known to be taken; nil if none are.
	names *Names
}

// View shows live objects without a request each. A *Mirror is one; another shows what dry runs have answered.
type View interface {
	// Watch lets the view show the objects of kinds, as far as it can.
	Watch(ctx context.Context, kinds ...schema.GroupVersionKind)
	// Get returns an object, or nil if the view does not show it; complete is set if the view shows all objects of the kind. The object must
	// not be changed.
	Get(id ID) (obj *unstructured.Unstructured, complete bool)
	// RecordWrite takes what a write has answered. It may change the object.
	RecordWrite(obj *unstructured.Unstructured)
	// Digest is that of the fields that a manager owns of an object; known is false if the view does not show it.
	Digest(id ID, manager string) (digest string, known bool)
}

// Retainer keeps in a rendered object what runtime controllers own in the live one.
type Retainer interface {
	// Retain returns the object to write; it changes neither of its arguments. An error means that this is not known now:
	// nothing is written then.
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// New returns an engine, which acts as the user of the client; metadata is listed with a client of its own. The mirror shows
// the objects that carry kudo's heritage label. Without a retainer nothing is kept.
func New(client dynamic.Interface, metadata metadata.Interface, kinds *Kinds, mirror View, retain Retainer) *Engine {
	return &Engine{client: client, metadata: metadata, own: metadata, mapper: kinds.mapper, mirror: mirror, kinds: kinds, retain: retain}
}

// UseNames lets Preflight ask names before it looks at objects. It is called before the first Preflight.
func (e *Engine) UseNames(names *Names) { e.names = names }

// Writers is how many objects of one class are written at a time: with 8 writers 1,000 creates take half the time of one.
const Writers = 16

// Apply writes the objects, class by class, and stops before the next class if one fails or must be awaited. See
// Preflight for what is to be known before.
func (e *Engine) Apply(ctx context.Context, objs []*unstructured.Unstructured, o Options) ChangeSet {
	return InOrder(ctx, objs, func(ctx context.Context, i int) Change { return e.applyOne(ctx, objs[i], o) })
}

// InOrder writes objects class by class, some of a class at a time, and stops before the next class if one fails or
// must be awaited. write is given the index of an object.
func InOrder(ctx context.Context, objs []*unstructured.Unstructured, write func(ctx context.Context, i int) Change) ChangeSet {
	changes := make(ChangeSet, len(objs))
	for i, obj := range objs {
		changes[i] = Change{ID: IDOf(obj), Action: Awaited, Err: fmt.Errorf("%s is not written yet", IDOf(obj))}
	}
	for _, class := range classes(objs) {
		forEach(class, func(_, i int) { changes[i] = write(ctx, i) })
		for _, i := range class {
			if changes[i].Err == nil {
				changes[i].Err = checkUsable(changes[i].Live)
				if changes[i].Err != nil {
					changes[i].Action = Awaited
				}
			}
			if changes[i].Err != nil {
				return changes
			}
		}
	}
	return changes
}

// forEach calls do for all items, Writers at a time, and returns after the last one.
func forEach[T any](items []T, do func(i int, item T)) {
	var group errgroup.Group
	group.SetLimit(Writers)
	for i, item := range items {
		group.Go(func() error {
			do(i, item)
			return nil
		})
	}
	_ = group.Wait() // do returns no error
}

// Err returns the first failure that is final, else the first failure.
func (c ChangeSet) Err() error {
	var first error
	for _, change := range c {
		if change.Action != Failed {
			continue
		}
		if IsFatal(change.Err) {
			return change.Err
		}
		if first == nil {
			first = change.Err
		}
	}
	return first
}

// Readopted returns the names of the objects that were taken over again.
func (c ChangeSet) Readopted() []string {
	var names []string
	for _, change := range c {
		if change.Readopted {
			names = append(names, change.ID.String())
		}
	}
	return names
}
