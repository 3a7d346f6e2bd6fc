// Package loop is the skeleton of a reconcile, the same for all controllers: it reads an object, calls the controller, commits the status,
// and decides when the object is reconciled again. It does not depend on any kind.
package loop

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apierror"
)

// Result says what follows a reconcile that has not failed.
type Result struct {
	// RequeueAfter is the time after which the object is reconciled again, should no watch enqueue it before; 0 for no time.
	RequeueAfter time.Duration
	// Transient is set if something failed that may succeed at the next attempt, which comes after a back-off.
	Transient bool
	// SkipCommit is set if there is no status to write, since the object has been released.
	SkipCommit bool
	// Undecided is set if the next reconcile decides anew: the status is not written, and the events that go with it are not recorded.
	Undecided bool
	// Hold is set if the status may be written by a later reconcile, which continues with it. Until then only memory has it: it is lost when
	// the object changes, or when the manager ends. It is written nevertheless if there are events that go with it.
	Hold bool
}

// Done is the result of a reconcile that writes no status and waits for nothing.
var Done = Result{SkipCommit: true}

// Options are the parts of a Reconciler.
type Options[T client.Object] struct {
	// Client reads from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader client.Reader
	Events record.EventRecorder
	// Act is called between read and commit. It changes the status of Object.Next, and nothing else of it.
	Act func(ctx context.Context, obj *Object[T]) (Result, error)
	// Forget drops what is remembered of an object that is not found; it may be nil.
	Forget func(key types.NamespacedName)
}

// Reconciler reconciles the objects of one kind.
type Reconciler[T client.Object] struct {
	Options[T]
	backoff *Backoff
	// warnings maps the key of an object to its *warnings.
	warnings sync.Map
	// held maps the key of an object to the object with the status that was not written.
	held sync.Map
}

// New returns a Reconciler.
func New[T client.Object](o Options[T]) *Reconciler[T] {
	return &Reconciler[T]{Options: o, backoff: NewBackoff()}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := req.NamespacedName
	current := newObject[T]()
	if err := r.backoff.Read(ctx, key, current, r.Client, r.Reader); err != nil {
		if apierror.IsObjectNotFound(err) {
			r.forget(key)
			return ctrl.Result{}, nil
		}
		return r.backoff.OnError(ctx, key, err)
	}
	known, _ := r.warnings.LoadOrStore(key, &warnings{})
	obj := NewObject(r.Client, r.Reader, r.Events, current)
	obj.warnings, obj.log = known.(*warnings), ctrl.LoggerFrom(ctx)
	if held, found := r.held.Load(key); found && held.(T).GetResourceVersion() == current.GetResourceVersion() {
		statusOf(obj.Next).Set(statusOf(copyOf(held.(T))))
	}
	result, err := r.act(ctx, obj)
	if err != nil {
		return r.backoff.OnError(ctx, key, err)
	}
	if !result.Undecided {
		obj.recordEvents()
	}
	ctrl.LoggerFrom(ctx).V(1).Info("reconciled", "state", obj.State, "requeueAfter", result.RequeueAfter, "transient", result.Transient)
	return r.backoff.OnSuccess(key, result), nil
}

// act lets the controller act, and commits. It panics if the controller has changed what users own: the status would be that
// of a spec that no user has written.
func (r *Reconciler[T]) act(ctx context.Context, obj *Object[T]) (Result, error) {
	result, err := r.Act(ctx, obj)
	if err != nil {
		return result, err
	}
	if !sameSpec(obj.Next, obj.Committed) {
		panic(fmt.Sprintf("the reconcile in state %q changed the spec of %s: controllers never write spec", obj.State, describe(obj.Next)))
	}
	if result.Undecided {
		return result, nil
	}
	key := client.ObjectKeyFromObject(obj.Committed)
	if result.Hold && len(obj.deferred) == 0 {
		held := copyOf(obj.Committed)
		statusOf(held).Set(statusOf(copyOf(obj.Next)))
		r.held.Store(key, held)
		return result, nil
	}
	if !result.SkipCommit {
		if err := obj.Commit(ctx); err != nil {
			return result, err
		}
	}
	r.held.Delete(key)
	return result, nil
}

func (r *Reconciler[T]) forget(key types.NamespacedName) {
	r.backoff.Forget(key)
	r.warnings.Delete(key)
	r.held.Delete(key)
	if r.Forget != nil {
		r.Forget(key)
	}
}

// newObject returns an empty object of a kind.
func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

func copyOf[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }

// statusOf returns the status of an object: every kind with the subresource has a field of the name.
func statusOf(obj client.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName("Status")
}

// sameSpec reports whether two objects have the same spec.
func sameSpec(a, b client.Object) bool {
	x, y := reflect.ValueOf(a).Elem().FieldByName("Spec"), reflect.ValueOf(b).Elem().FieldByName("Spec")
	return !x.IsValid() || reflect.DeepEqual(x.Interface(), y.Interface())
}

// describe names an object for errors.
func describe(obj client.Object) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return reflect.TypeOf(obj).Elem().Name() + " " + name
}
