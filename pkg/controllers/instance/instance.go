// Package instance is the controller of Instances: it asks plans/trigger which plan a change starts, runs it through
// pkg/runner, and writes status.
package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/trust"
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
	Tarballs *fetch.Fetcher
	Sources  *paramsource.Reader
	Versions *runner.VersionCache
	Events   record.EventRecorder
	Clock    clock.Clock
	// Metrics counts the runs that have ended.
	Metrics *metrics.Runs
	// Judge returns the verdict of the PackagePolicies on a package.
	Judge func(context.Context, trust.Request) (trust.Verdict, error)
	// Settings returns what the administrator has decided; what cannot be read is the strict choice.
	Settings func(ctx context.Context) settings.Settings
	// ScheduledRuns is how many runs of schedules there may be at once.
	ScheduledRuns int
	// ProgressDelay is how long the status of a step may stay unwritten that only awaits the objects which it has applied; 0 for no time.
	ProgressDelay time.Duration
	// Enqueue requests a reconcile of an Instance.
	Enqueue func(types.NamespacedName)
	// Installer is kudo's own account, with whose rights plans run in privileged namespaces.
	Installer apply.Account

	// runs maps the name of an Instance to its run that is in progress.
	runs sync.Map
	// clusterScoped maps cluster-scoped objects to the Instances whose plans wrote them.
	clusterScoped clusterScopedIndex
	// drifts maps the name of an Instance to what was found out of its objects that others have changed.
	drifts sync.Map
	// places bounds the concurrent scheduled runs. ticks holds the times for which this process has started runs.
	places places
	ticks  ticks
	// kept are the objects that are annotated to be kept and that still have their Instance as an owner.
	kept keptObjects
}

// action is one reconcile of one Instance: what was observed, the run, and the parts that act on them.
type action struct {
	*scope
	*observer
	*execution
	schedules *scheduler
	crds      *crdInstaller
	objects   *objectChecker
}

func newAction(r *Reconciler, obj *loop.Object[*v1beta1.Instance]) *action {
	shared := &scope{Reconciler: r, Object: obj}
	schedules := &scheduler{scope: shared}
	return &action{
		scope: shared, observer: &observer{scope: shared, schedules: schedules}, execution: &execution{scope: shared, schedules: schedules},
		schedules: schedules, crds: &crdInstaller{scope: shared}, objects: &objectChecker{scope: shared},
	}
}

// reconcile is called by loop.Reconciler between read and commit. The status is also committed before objects are written, so
// that a crash loses none of them. An action that only prepares the Instance is followed by that of the state it leads to.
func (r *Reconciler) reconcile(ctx context.Context, obj *loop.Object[*v1beta1.Instance]) (loop.Result, error) {
	obj.LogValues = func() []any { return runner.LogValues(obj.Next.Status.PlanStatus) }
	a := newAction(r, obj)
	a.clearPending()
	err := a.reconcile(ctx)
	if err == nil { // else the next attempt decides
		a.schedules.leavePlaces()
	}
	newer := new(history.FormatError)
	if errors.As(err, &newer) {
		err = a.reportFormatUnknown(ctx, newer)
	}
	conditions.SetHeld(a.Next)
	a.schedules.report(a.blocked)
	a.reportDeadlines()
	a.schedules.requeue()
	a.requeueForRun()
	return a.result, err
}

// reconcile takes the actions of the states that the Instance goes through, up to one that ends the reconcile.
func (a *action) reconcile(ctx context.Context) error {
	for {
		if err := a.observe(ctx); err != nil {
			return err
		}
		s := a.state()
		a.State = string(s)
		prepared, err := a.prepare(ctx, s)
		if err != nil {
			return err
		}
		if !prepared {
			return a.act(ctx, s)
		}
	}
}

// prepare takes the action of a state that leads to another one, and reports whether it was such a state.
func (a *action) prepare(ctx context.Context, s state) (bool, error) {
	switch s {
	case statusRestored:
		return true, a.resetStatus(ctx)
	case statusUnclean:
		return true, a.cleanStatus(ctx)
	case finalizerOutdated:
		return true, a.SetFinalizer(ctx, v1beta1.CleanupFinalizer, !a.finalizer)
	case cancelRequested:
		return true, a.cancelRun(ctx)
	}
	return false, nil
}

// act takes the one action of a state.
func (a *action) act(ctx context.Context, s state) error {
	a.acknowledge()
	if s == released {
		a.result = loop.Done
		return nil
	}
	a.watchInventory(ctx)
	a.releaseKept(ctx)
	switch s {
	case releasable:
		return a.releaseInstance(ctx)
	case cleanupDue:
		return a.startCleanup(ctx)
	case cleanupRunning:
		return a.continueCleanup(ctx)
	case cleanupFailed:
		return a.holdForCleanup(ctx)
	case keyMissing, versionMissing, parametersMissing, specRefused, packageRefused, accountMissing, installPending:
		a.reportBlocked()
		return nil
	case restoreDue:
		return a.takeOverRestored(ctx)
	case startDue:
		return a.startPlan(ctx)
	case running:
		return a.continueRun(ctx)
	case idle, held:
		return a.checkObjects(ctx)
	}
	return fmt.Errorf("unknown state %q of Instance %s/%s", s, a.Next.Namespace, a.Next.Name)
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.Tarballs.Forget(key)
	r.clusterScoped.forget(key)
	r.runs.Delete(key)
	r.drifts.Delete(key)
	r.kept.forget(key)
	r.forgetSchedules(key)
}
