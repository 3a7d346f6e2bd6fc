// Package operatorversion is the controller of OperatorVersions: it runs their install plans, and watches over what they
// installed. What is installed is held by an Installation, which outlives its OperatorVersion until it is released.
package operatorversion

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/trust"
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
	Versions *runner.VersionCache
	Events   record.EventRecorder
	Clock    clock.Clock
	// Metrics counts the runs that have ended.
	Metrics *metrics.Runs
	// Judge returns the verdict of the PackagePolicies on a package.
	Judge func(context.Context, trust.Request) (trust.Verdict, error)
	// Installer is the account with whose rights install plans write.
	Installer apply.Account

	// begun maps the name of an OperatorVersion to the proof of the run that this manager has started, or whose record it has read.
	begun sync.Map
	// driftTrackers are the held objects that have changed, by OperatorVersion.
	driftTrackers sync.Map
}

// action is one reconcile of one OperatorVersion.
type action struct {
	*Reconciler
	*loop.Object[*v1beta1.OperatorVersion]
	observation
	// inventory is the inventory that will be written.
	inventory share.Inventory
	// run is the run of the running plan; nil while idle.
	run    *runner.Run
	result loop.Result
	// contents are those of the held objects before they are compared, as fingerprints.
	contents map[apply.ID]string
	// mismatches are the results of the comparison in this reconcile; nil before it.
	mismatches map[apply.ID]*share.MismatchError
}

// reconcile is called by loop.Reconciler between read and commit.
func (r *Reconciler) reconcile(ctx context.Context, obj *loop.Object[*v1beta1.OperatorVersion]) (loop.Result, error) {
	obj.LogValues = func() []any { return runner.LogValues(obj.Next.Status.PlanStatus) }
	o, err := r.observe(ctx, obj.Next)
	if err != nil {
		return loop.Result{}, err
	}
	a := &action{Reconciler: r, Object: obj, observation: o, contents: map[apply.ID]string{}}
	if o.installation != nil {
		a.inventory = o.installation.DeepCopy().Status.Resources
	}
	a.reportVerdict()
	s := o.state()
	obj.State = string(s)
	err = a.act(ctx, s)
	a.requeueForVerdict()
	newer := new(history.FormatError)
	if errors.As(err, &newer) {
		a.reportFormatUnknown(newer)
		err = nil
	}
	return a.result, err
}

// act takes the one action of a state.
func (a *action) act(ctx context.Context, s state) error {
	switch s {
	case released:
		a.result = loop.Done
		return nil
	case unmanaged:
		return nil
	case releasing:
		a.result = loop.Done
		return a.releaseVersion(ctx)
	case keyMissing:
		a.result.RequeueAfter = pollInterval
		a.reportKeyMissing()
		return nil
	case statusRestored:
		a.resetStatus()
		return nil
	case installationReleasing: // nothing is started that is about to be released
		a.result = loop.Done
		return a.SetFinalizer(ctx, v1beta1.OperatorVersionFinalizer, true)
	case packageRefused:
		a.refusePackage()
		return nil
	case specRefused:
		return a.refuseSpec(ctx)
	case startDue:
		return a.startInstall(ctx)
	case running:
		return a.continueInstall(ctx)
	case failed:
		return a.prepare(ctx)
	case idle:
		return a.watchObjects(ctx)
	}
	return fmt.Errorf("unknown state %q of OperatorVersion %s/%s", s, a.Next.Namespace, a.Next.Name)
}

// forget drops the state that the reconciler keeps of an OperatorVersion that is not found.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.driftTrackers.Delete(key)
	r.begun.Delete(key)
}

// warnInRun records a warning once in a run.
func (a *action) warnInRun(reason, message string) {
	a.WarnOnce(fmt.Sprintf("%s/%d", a.Next.UID, a.Next.Status.Revision), reason, message)
}
