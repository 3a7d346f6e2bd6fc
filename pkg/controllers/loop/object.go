package loop

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/pkg/apierror"
)

// Object is one object in one reconcile.
type Object[T client.Object] struct {
	// Next is the object that the reconcile works on. Commit writes its status.
	Next T
	// Committed is the object as the cluster has it.
	Committed T
	// State names the situation in which the reconcile has found the object, for the log.
	State string
	// LogValues returns keys and values for the log of events; it may be nil.
	LogValues func() []any
	// Summarize derives the conditions of Next before each commit; it may be nil.
	Summarize func()

	client   client.Client
	reader   client.Reader
	events   record.EventRecorder
	log      logr.Logger
	warnings *warnings
	// deferred are called when the status that goes with them has been committed.
	deferred []func()
}

// warnings are the warnings of one scope that have been recorded. Reconciles of one object come one after the other.
type warnings struct {
	scope    string
	recorded map[string]bool
}

// NewObject returns an object as it was read. The reader reads live.
func NewObject[T client.Object](c client.Client, reader client.Reader, events record.EventRecorder, current T) *Object[T] {
	return &Object[T]{
		Next: copyOf(current), Committed: copyOf(current), client: c, reader: reader, events: events, log: logr.Discard(),
		warnings: &warnings{},
	}
}

// Commit summarizes the status and writes it if it has changed: one patch, which fails if the object was changed in the
// meantime. It records the deferred events afterwards.
func (o *Object[T]) Commit(ctx context.Context) error {
	if o.Summarize != nil {
		o.Summarize()
	}
	if equality.Semantic.DeepEqual(statusOf(o.Next).Interface(), statusOf(o.Committed).Interface()) {
		o.recordEvents()
		return nil
	}
	written := copyOf(o.Next)
	patch := client.MergeFromWithOptions(o.Committed, client.MergeFromWithOptimisticLock{})
	if err := o.client.Status().Patch(ctx, o.Next, patch); err != nil {
		return fmt.Errorf("write status of %s: %w", describe(written), err)
	}
	statusOf(o.Next).Set(statusOf(written))
	o.Committed = copyOf(o.Next)
	o.recordEvents()
	return nil
}

// SetFinalizer adds or removes a finalizer, in one patch, which fails if the object was changed in the meantime. The status
// of Next stays as it is, uncommitted. It is no error if the object does not exist anymore.
func (o *Object[T]) SetFinalizer(ctx context.Context, finalizer string, wanted bool) error {
	if controllerutil.ContainsFinalizer(o.Next, finalizer) == wanted {
		return nil
	}
	before := copyOf(o.Next)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if wanted {
		controllerutil.AddFinalizer(o.Next, finalizer)
	} else {
		controllerutil.RemoveFinalizer(o.Next, finalizer)
	}
	if err := o.client.Patch(ctx, o.Next, patch); err != nil {
		return apierror.IgnoreObjectNotFound(err)
	}
	statusOf(o.Next).Set(statusOf(before))
	committed := o.Committed
	o.Committed = copyOf(o.Next) // admission may have changed spec
	statusOf(o.Committed).Set(statusOf(committed))
	return nil
}

// IsNamespaceTerminating reports whether the object's namespace is being deleted or not found. It reads live.
func (o *Object[T]) IsNamespaceTerminating(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := o.reader.Get(ctx, client.ObjectKey{Name: o.Next.GetNamespace()}, namespace)
	if apierror.IsObjectNotFound(err) {
		return true, nil
	}
	return namespace.DeletionTimestamp != nil, err
}

// Event records an event now, and logs it. It is for an effect that does not depend on the commit of the status.
func (o *Object[T]) Event(kind, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	o.events.Event(o.Next, kind, reason, message)
	values := []any{"type", kind, "reason", reason}
	if o.LogValues != nil {
		values = append(values, o.LogValues()...)
	}
	o.log.Info(message, values...)
}

// Warn records a warning now.
func (o *Object[T]) Warn(reason, format string, args ...any) {
	o.Event(corev1.EventTypeWarning, reason, format, args...)
}

// AfterCommit calls a function once the status is committed.
func (o *Object[T]) AfterCommit(do func()) { o.deferred = append(o.deferred, do) }

// EventAfterCommit records an event once the status that goes with it is committed: until then, all may be decided anew.
func (o *Object[T]) EventAfterCommit(kind, reason, format string, args ...any) {
	o.AfterCommit(func() { o.Event(kind, reason, format, args...) })
}

// WarnOnce records a warning now, unless it was recorded before in the same scope, in whichever reconcile. A scope ends when a
// warning is recorded in another one.
func (o *Object[T]) WarnOnce(scope, reason, message string) {
	if o.warnings.scope != scope || o.warnings.recorded == nil {
		*o.warnings = warnings{scope, map[string]bool{}}
	}
	text := reason + " " + message
	if o.warnings.recorded[text] {
		return
	}
	o.warnings.recorded[text] = true
	o.Warn(reason, "%s", message)
}

// recordEvents records the deferred events, in order, once.
func (o *Object[T]) recordEvents() {
	for _, record := range o.deferred {
		record()
	}
	o.deferred = nil
}
