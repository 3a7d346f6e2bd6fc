// Package instance is the controller of Instances: it asks plans/trigger which plan a change starts, runs it through
// pkg/runner, and writes status.
package instance

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
	"kudo.dev/kudo/pkg/controllers/tarball"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/sources"
	"kudo.dev/kudo/plans"
)

// Reconciler runs the plans of Instances.
type Reconciler struct {
	// Client reads kudo's own kinds from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader  client.Reader
	History *history.Store
	// Keys of records and digests.
	Keys     history.Keys
	Runner   *runner.Runner
	Mirror   *apply.Mirror
	Share    *share.Engine
	Tarballs *tarball.Fetcher
	Sources  *sources.Sources
	Versions *runner.Versions
	Events   record.EventRecorder
	Clock    clock.Clock
	// Settings returns what the administrator has decided; what cannot be read is the strict choice.
	Settings func(ctx context.Context) settings.Settings
	// Installer is kudo's own account, with whose rights plans run in privileged namespaces.
	Installer apply.Account

	// runs maps the name of an Instance to its run that is going on.
	runs sync.Map
	// wide maps cluster-scoped objects to the Instances whose plans wrote them.
	wide wide
	// drifts maps the name of an Instance to what was found out of its objects that others have changed.
	drifts sync.Map
	queue  *requeue.Queue
}

// pass is one reconcile of one Instance.
type pass struct {
	*Reconciler
	// instance is worked on: its status is what will be written.
	instance *v1beta1.Instance
	// written is the Instance as the cluster has it.
	written *v1beta1.Instance
	// version is what spec.operatorVersion names, and live its content; nil if it is not there.
	version *v1beta1.OperatorVersion
	live    *runner.Version
	// account is the one that the next run has; privileged is set if it is kudo's own.
	account    apply.Account
	privileged bool
	// sourced is what spec.parametersFrom gives, and unsourced says why it cannot be told.
	sourced   sources.Values
	unsourced string
	// ring holds the keys of records and digests.
	ring *keyring.Ring
	// run is what goes on; nil at rest.
	run *runner.Run
	// told are the warnings of the run that have been recorded.
	told map[string]bool
	// news are events, recorded when the status that goes with them has been committed.
	news   events.Pending
	result ctrl.Result
	// transient is set if something failed that may pass.
	transient bool
}

// step is one step of a reconcile. It returns whether the pass ends here.
type step func(*pass, context.Context) (bool, error)

// steps of a reconcile, in order.
var steps = []step{
	(*pass).wake,
	(*pass).unlock,
	(*pass).clear,
	(*pass).loadVersion,
	(*pass).observeAccount,
	(*pass).gather,
	(*pass).rekey,
	(*pass).deletion,
	(*pass).finalizer,
	(*pass).requests,
	(*pass).decide,
	(*pass).execute,
	(*pass).settle,
}

// Reconcile implements reconcile.Reconciler: get, steps, one status patch.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	instance := &v1beta1.Instance{}
	if err := r.queue.Read(ctx, req.NamespacedName, instance, r.Client, r.Reader); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return r.queue.Failed(ctx, req.NamespacedName, err)
	}
	p := &pass{Reconciler: r, instance: instance.DeepCopy(), written: instance.DeepCopy()}
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
	if !reflect.DeepEqual(p.instance.Spec, p.written.Spec) {
		panic(fmt.Sprintf("a step changed the spec of Instance %s: the controller never writes spec", req))
	}
	r.queue.Seen(req.NamespacedName)
	if p.transient {
		return r.queue.Transient(req.NamespacedName), nil
	}
	r.queue.Done(req.NamespacedName)
	return p.result, nil
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.queue.Forget(key)
	r.Tarballs.Forget(key)
	r.wide.forget(key)
	r.runs.Delete(key)
	r.drifts.Delete(key)
}

// commit writes the status if it has changed: one patch, which fails if the Instance was changed in the meantime.
func (p *pass) commit(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.instance.Status, p.written.Status) {
		p.news.Record()
		return nil
	}
	status := p.instance.Status.DeepCopy()
	patch := client.MergeFromWithOptions(p.written, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Status().Patch(ctx, p.instance, patch); err != nil {
		return fmt.Errorf("write status of Instance %s/%s: %w", p.instance.Namespace, p.instance.Name, err)
	}
	p.instance.Status = *status
	p.written = p.instance.DeepCopy()
	p.news.Record()
	return nil
}

// happened records an event once the status that says so is committed: until then all may be decided anew.
func (p *pass) happened(kind, reason, format string, args ...any) {
	p.news.Add(func() { p.event(kind, reason, format, args...) })
}

// event records what has been done, whatever becomes of the status.
func (p *pass) event(kind, reason, format string, args ...any) {
	p.Events.Eventf(p.instance, kind, reason, format, args...)
}

func (p *pass) warn(reason, format string, args ...any) {
	p.event(corev1.EventTypeWarning, reason, format, args...)
}

// loadVersion gets what spec.operatorVersion names.
func (p *pass) loadVersion(ctx context.Context) (bool, error) {
	ov := &v1beta1.OperatorVersion{}
	err := p.Client.Get(ctx, p.instance.OperatorVersionKey(), ov)
	if apierrors.IsNotFound(err) || p.instance.Spec.OperatorVersion.Name == "" {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("OperatorVersion %s: %w", p.instance.OperatorVersionKey(), err)
	}
	p.version = ov
	p.live, err = p.Versions.Of(ov)
	return err != nil, err
}

// running returns the name and status of the plan that runs, or "".
func (p *pass) running() (string, v1beta1.PlanStatus) {
	name := plans.Running(p.instance.Status.PlanStatus)
	return name, p.instance.Status.PlanStatus[name]
}
