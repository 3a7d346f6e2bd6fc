// Package installation is the controller of Installations: it migrates the stored versions of the definitions that they hold, and
// releases what they hold when the object that they are for is being deleted, or does not exist anymore.
package installation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
)

// Reconciler migrates stored versions and releases Installations.
type Reconciler struct {
	// Client reads kudo's own kinds from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader client.Reader
	Share  *share.Engine
	Events record.EventRecorder
	// Migrator rewrites the objects of definitions whose storage version has changed.
	Migrator Migrator
	Clock    clock.PassiveClock

	// page is held while a page of objects is rewritten.
	page sync.Mutex
	// contended is set if another Installation wanted to rewrite a page meanwhile.
	contended atomic.Bool
}

// action is one reconcile of one Installation.
type action struct {
	*Reconciler
	*loop.Object[*v1beta1.Installation]
	observation
}

// reconcile is called by loop.Reconciler between read and commit.
func (r *Reconciler) reconcile(ctx context.Context, obj *loop.Object[*v1beta1.Installation]) (loop.Result, error) {
	o, err := r.observe(ctx, obj.Next)
	if err != nil {
		return loop.Result{}, err
	}
	a := &action{Reconciler: r, Object: obj, observation: o}
	s := o.state()
	obj.State = string(s)
	return a.act(ctx, s)
}

// act takes the one action of a state.
func (a *action) act(ctx context.Context, s state) (loop.Result, error) {
	switch s {
	case held:
		return a.hold(), nil
	case migrating:
		return a.migrate(ctx)
	case released:
		return loop.Done, nil
	case orphaned:
		return loop.Done, a.deleteInstallation(ctx)
	case inUse:
		return a.reportBlocked(a.inUse), nil
	case releasing:
		return a.release(ctx)
	}
	return loop.Result{}, fmt.Errorf("unknown state %q of Installation %s", s, a.Next.Name)
}

// hold changes nothing, and has the Installation reconciled again if a definition may become due without an event.
func (a *action) hold() loop.Result {
	if a.definitions.waits {
		return loop.Result{RequeueAfter: pollInterval}
	}
	return loop.Result{}
}

// deleteInstallation asks for the deletion of the Installation: what it holds is released when it is being deleted.
func (a *action) deleteInstallation(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	err := a.Client.Delete(ctx, a.Next, &client.DeleteOptions{PropagationPolicy: &background,
		Preconditions: &metav1.Preconditions{UID: &a.Next.UID}})
	return client.IgnoreNotFound(err)
}

// reportBlocked puts into the status what the release waits for, with an event if the reason is new.
func (a *action) reportBlocked(block *share.ReleaseBlock) loop.Result {
	meta.SetStatusCondition(&a.Next.Status.Conditions, metav1.Condition{
		Type: v1beta1.ReleasedCondition, Status: metav1.ConditionFalse, Reason: block.Reason, Message: block.Message,
		ObservedGeneration: a.Next.Generation,
	})
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.ReleasedCondition)
	if before == nil || before.Reason != block.Reason {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventReleaseBlocked, "%s", block.Message)
	}
	return loop.Result{RequeueAfter: pollInterval}
}
