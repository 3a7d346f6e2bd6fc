// Package operatorversion is the controller of OperatorVersions: it runs their install plans, and watches over what they
// installed. What is installed is held by an Installation, which outlives its OperatorVersion until it is released.
package operatorversion

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/events"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
)

// Reconciler runs install plans.
type Reconciler struct {
	// Client reads kudo's own kinds from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader  client.Reader
	History *history.Store
	// Keys of records and digests.
	Keys     history.Keys
	Runner   *runner.Runner
	Share    *share.Engine
	Versions *runner.Versions
	Events   record.EventRecorder
	Clock    clock.Clock
	// Installer is the account with whose rights install plans write.
	Installer apply.Account

	// begun maps the name of an OperatorVersion to the proof of the run that this manager has started, or whose record it has read.
	begun sync.Map
	queue *requeue.Queue
	// told are the warnings that were recorded in the last run of an OperatorVersion, by its name: *warned.
	told sync.Map
	// unrests are the held objects that have changed, by OperatorVersion.
	unrests sync.Map
}

// pass is one reconcile of one OperatorVersion.
type pass struct {
	*Reconciler
	// ov is worked on: its status is what will be written.
	ov *v1beta1.OperatorVersion
	// written is the OperatorVersion as the cluster has it.
	written *v1beta1.OperatorVersion
	// holder is the Installation, as the cluster has it; nil if there is none.
	holder *v1beta1.Installation
	// held is worked on: the inventory that will be written.
	held share.Inventory
	// ring holds the keys of records and digests.
	ring *keyring.Ring
	// run is what goes on; nil at rest.
	run *runner.Run
	// news are events, recorded when the status that goes with them has been committed.
	news      events.Pending
	result    ctrl.Result
	transient bool
}

// step is one step of a reconcile. It returns whether the pass ends here.
type step func(*pass, context.Context) (bool, error)

// steps of a reconcile, in order.
var steps = []step{
	(*pass).load,
	(*pass).deletion,
	(*pass).unlock,
	(*pass).prepare,
	(*pass).decide,
	(*pass).execute,
	(*pass).drift,
	(*pass).settle,
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ov := &v1beta1.OperatorVersion{}
	if err := r.queue.Read(ctx, req.NamespacedName, ov, r.Client, r.Reader); err != nil {
		if apierrors.IsNotFound(err) {
			r.queue.Forget(req.NamespacedName)
			r.unrests.Delete(req.NamespacedName)
			r.told.Delete(req.NamespacedName)
			r.begun.Delete(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return r.queue.Failed(ctx, req.NamespacedName, err)
	}
	p := &pass{Reconciler: r, ov: ov.DeepCopy(), written: ov.DeepCopy()}
	for _, step := range steps {
		done, err := step(p, ctx)
		if err != nil {
			return r.queue.Failed(ctx, req.NamespacedName, err)
		}
		if done {
			break
		}
	}
	p.news.Record()
	if !reflect.DeepEqual(p.ov.Spec, p.written.Spec) {
		panic(fmt.Sprintf("a step changed the spec of OperatorVersion %s: the controller never writes spec", req))
	}
	r.queue.Seen(req.NamespacedName)
	if p.transient {
		return r.queue.Transient(req.NamespacedName), nil
	}
	r.queue.Done(req.NamespacedName)
	return p.result, nil
}

// load gets the Installation. OperatorVersions without install plan have none, and nothing is done for them.
func (p *pass) load(ctx context.Context) (bool, error) {
	holder := &v1beta1.Installation{}
	err := p.Client.Get(ctx, types.NamespacedName{Name: p.ov.InstallationName()}, holder)
	switch {
	case err == nil:
		p.holder, p.held = holder, holder.DeepCopy().Status.Resources
	case !apierrors.IsNotFound(err):
		return true, fmt.Errorf("read Installation %s: %w", p.ov.InstallationName(), err)
	}
	return p.ov.Spec.InstallPlan == "" && p.holder == nil && p.ov.DeletionTimestamp == nil, nil
}

// commit writes the status if it has changed: one patch, which fails if the OperatorVersion was changed in the meantime.
func (p *pass) commit(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.ov.Status, p.written.Status) {
		p.news.Record()
		return nil
	}
	status := p.ov.Status.DeepCopy()
	patch := client.MergeFromWithOptions(p.written, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Status().Patch(ctx, p.ov, patch); err != nil {
		return fmt.Errorf("write status of OperatorVersion %s/%s: %w", p.ov.Namespace, p.ov.Name, err)
	}
	p.ov.Status = *status
	p.written = p.ov.DeepCopy()
	p.news.Record()
	return nil
}

// keep writes the inventory if it has changed.
func (p *pass) keep(ctx context.Context) error {
	holder := p.holder.DeepCopy()
	holder.Status.Take(p.held)
	if err := share.Commit(ctx, p.Client, p.holder, holder); err != nil {
		return err
	}
	p.holder, p.held = holder, holder.DeepCopy().Status.Resources
	if p.run != nil {
		p.run.Held = p.held
	}
	return nil
}

// warned are the warnings of a run that have been recorded. Passes of one OperatorVersion come one after the other.
type warned struct {
	run   string
	texts map[string]bool
}

// once warns of something once in a run.
func (p *pass) once(reason, message string) {
	key, run := client.ObjectKeyFromObject(p.ov), fmt.Sprintf("%s/%d", p.ov.UID, p.ov.Status.Revision)
	known, _ := p.told.Load(key)
	of, _ := known.(*warned)
	if of == nil || of.run != run {
		of = &warned{run, map[string]bool{}}
		p.told.Store(key, of)
	}
	if text := reason + " " + message; !of.texts[text] {
		of.texts[text] = true
		p.event(corev1.EventTypeWarning, reason, "%s", message)
	}
}

// happened records an event once the status that says so is committed.
func (p *pass) happened(kind, reason, format string, args ...any) {
	p.news.Add(func() { p.event(kind, reason, format, args...) })
}

// event records what has been done, whatever becomes of the status.
func (p *pass) event(kind, reason, format string, args ...any) {
	p.Events.Eventf(p.ov, kind, reason, format, args...)
}
