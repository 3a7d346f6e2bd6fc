// Package placement is the controller of Instances on a hub: it has the engine of the hub carry them to clusters, and sums their status up.
// It is the only writer of their status there. It runs no plans.
package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// Reconciler places the Instances of a hub.
type Reconciler struct {
	// Client reads from a cache that shows what was written through it.
	Client client.Client
	// Reader reads live.
	Reader client.Reader
	Engine clusters.Engine
	// Finalizer keeps an Instance until the engine has removed it from all clusters. An engine that follows the deletion of the Instance
	// itself needs none.
	Finalizer bool
	// Forget gives up the copy of an Instance in a cluster that is to lose it; nil if the engine cannot.
	Forget func(instance types.NamespacedName, cluster string) error
	// Decide returns what the decision of an Instance has come to; nil if the engine reads no decisions. A *clusters.HoldError says why
	// the decision is not to be acted upon.
	Decide func(ctx context.Context, instance *v1beta1.Instance) (*v1beta1.DecisionStatus, error)
	Events record.EventRecorder
	Clock  clock.Clock
}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	changes := make(chan event.TypedGenericEvent[types.NamespacedName])
	if err := mgr.Add(forward(r.Engine.Events(), changes)); err != nil {
		return err
	}
	enqueue := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: key}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("placement").
		For(&v1beta1.Instance{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}, loop.DeletionStarted{}))).
		Watches(&v1beta1.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(r.usersOf),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.TypedChannel(changes, enqueue)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: loop.Limiter()}).
		Complete(r.loop())
}

// loop returns the skeleton of the controller.
func (r *Reconciler) loop() *loop.Reconciler[*v1beta1.Instance] {
	return loop.New(loop.Options[*v1beta1.Instance]{Client: r.Client, Reader: r.Reader, Events: r.Events, Act: r.reconcile})
}

// forward carries the events of an engine to the controller.
type forwarder func(ctx context.Context) error

func forward(from <-chan types.NamespacedName, to chan<- event.TypedGenericEvent[types.NamespacedName]) forwarder {
	return func(ctx context.Context) error {
		for {
			select {
			case key := <-from:
				select {
				case to <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
				case <-ctx.Done():
					return nil
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// Start implements manager.Runnable.
func (f forwarder) Start(ctx context.Context) error { return f(ctx) }

// usersOf maps an OperatorVersion to the Instances of its namespace that name it.
func (r *Reconciler) usersOf(ctx context.Context, ov client.Object) []reconcile.Request {
	list := &v1beta1.InstanceList{}
	if r.Client.List(ctx, list, client.InNamespace(ov.GetNamespace()), loop.CacheOnlyRead) != nil {
		return nil
	}
	var out []reconcile.Request
	for n := range list.Items {
		if i := &list.Items[n]; i.OperatorVersionKey() == client.ObjectKeyFromObject(ov) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(i)})
		}
	}
	return out
}

// action is one reconcile of one Instance.
type action struct {
	*Reconciler
	*loop.Object[*v1beta1.Instance]
	observation
	result loop.Result
}

// reconcile is called by loop.Reconciler between read and commit.
func (r *Reconciler) reconcile(ctx context.Context, obj *loop.Object[*v1beta1.Instance]) (loop.Result, error) {
	a := &action{Reconciler: r, Object: obj}
	if err := a.forgetClusters(); err != nil {
		return a.result, err
	}
	if err := a.observe(ctx); err != nil {
		return a.result, err
	}
	s := a.state()
	a.State = string(s)
	err := a.act(ctx, s)
	return a.result, err
}

// act takes the one action of a state.
func (a *action) act(ctx context.Context, s state) error {
	switch s {
	case released:
		a.result = loop.Done
		return nil
	case removing:
		return a.remove(ctx)
	case unplaced:
		conditions.SetPlaced(a.Next, refused(v1beta1.ReasonInvalidSpec, "spec.placement is missing, and a hub runs no plans: say in "+
			"spec.placement.clusters where the Instance runs, or create it in a cluster"), false, true)
		return nil
	case invalid:
		conditions.SetPlaced(a.Next, refused(v1beta1.ReasonInvalidSpec, a.problem.Error()), false, true)
		return nil
	case unprotected:
		a.result.RequeueAfter = 1 // no watch shows a finalizer
		return a.SetFinalizer(ctx, v1beta1.PlacementFinalizer, true)
	case undecided:
		a.result.RequeueAfter = loop.RecheckInterval
		conditions.SetPlaced(a.Next, metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonDecisionHeld,
			Message: a.undecided}, true, false)
		return nil
	case placed:
		return a.place(ctx)
	}
	return fmt.Errorf("unknown state %q of Instance %s/%s", s, a.Next.Namespace, a.Next.Name)
}

// remove has the engine remove the Instance from all clusters, and lets the Instance go when none has it anymore.
func (a *action) remove(ctx context.Context) error {
	left, err := a.Engine.Remove(ctx, a.Next)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		a.result = loop.Done
		return a.SetFinalizer(ctx, v1beta1.PlacementFinalizer, false)
	}
	a.result.RequeueAfter = loop.RecheckInterval
	conditions.SetPlaced(a.Next, refused(v1beta1.ReasonMembersLost, removalMessage(left)), true, false)
	return nil
}

// forgetClusters gives up the copies in clusters that the annotation lists. A cluster that the Instance is placed on, or that a decision
// may name which is not known, is not given up, unless the Instance is being deleted.
func (a *action) forgetClusters() error {
	list := a.Next.Annotations[v1beta1.ForgetAnnotation]
	if a.Forget == nil || list == "" {
		return nil
	}
	for _, name := range strings.Split(list, ",") {
		placement := a.Next.Spec.Placement
		isOpen := placement != nil && placement.Decision != nil && a.Next.DecisionFingerprint() == ""
		if (isOpen || a.Next.IsPlacedOn(name)) && a.Next.DeletionTimestamp == nil {
			continue
		}
		if err := a.Forget(client.ObjectKeyFromObject(a.Next), name); err != nil {
			return err
		}
		a.Next.Status.Members = slices.DeleteFunc(a.Next.Status.Members, func(m v1beta1.MemberStatus) bool { return m.Cluster == name })
	}
	return nil
}

// place advances the change over the clusters, and writes what places the Instance. The wave, and the clusters that a decision names, are
// committed before anything is placed by them, so that a hub that ends between the two goes on where it stood.
func (a *action) place(ctx context.Context) error {
	before := a.Committed.Status.Wave
	a.advance()
	if a.undecided != "" && (a.result.RequeueAfter == 0 || a.result.RequeueAfter > loop.RecheckInterval) {
		a.result.RequeueAfter = loop.RecheckInterval // no event shows that the hub serves decisions again
	}
	a.report()
	a.announceStop(before)
	if before == nil || before.Generation != a.wave.Generation || before.Decision != a.wave.Decision || before.Index != a.wave.Index {
		a.announceWave()
		if err := a.Commit(ctx); err != nil {
			return err
		}
	}
	err := a.Engine.Place(ctx, a.targets())
	refusal := new(clusters.RefusedError)
	if errors.As(err, &refusal) {
		a.engine.Refused = refusal
		a.result.Transient = true // no watch shows when the other object is deleted
		a.report()
		return nil
	}
	return err
}

// advance opens the waves that are due. While the engine's reports are not fresh, or it has not settled, none is.
func (a *action) advance() {
	now := a.Clock.Now()
	a.wave = clusters.BeginRollout(a.Next, now)
	for {
		a.summary = clusters.Summarize(a.Next, a.engine, a.wave, now)
		if a.engine.Silent != "" || a.engine.Refused != nil || !a.engine.Settled {
			return
		}
		index := a.wave.Index
		a.Next.Status.Members = a.summary.Members
		a.wave, a.result.RequeueAfter = clusters.AdvanceRollout(a.Next, a.wave, a.summary.Members, now)
		if a.wave.Index == index {
			return
		}
	}
}

// report puts the summary into the status.
func (a *action) report() {
	a.summary = clusters.Summarize(a.Next, a.engine, a.wave, a.Clock.Now())
	status := &a.Next.Status
	status.Members, status.Wave, status.AggregatedStatus = a.summary.Members, &a.wave, a.summary.Aggregated
	conditions.SetPlaced(a.Next, a.summary.Ready, a.summary.Reconciling, a.summary.Stalled)
}

// announceStop records an event for a wave that stops.
func (a *action) announceStop(before *v1beta1.WaveStatus) {
	if a.wave.State == v1beta1.WaveStopped &&
		(before == nil || before.State != v1beta1.WaveStopped || before.Generation != a.wave.Generation || before.Decision != a.wave.Decision) {
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventWaveStopped, "%s", a.summary.Ready.Message)
	}
}

// announceWave records an event for a wave that opens.
func (a *action) announceWave() {
	if a.wave.Of == 0 {
		return
	}
	a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventWaveOpened, "Wave %d of %d of generation %d is open", a.wave.Index, a.wave.Of,
		a.wave.Generation)
}

// targets returns what each cluster gets. A cluster is released only once the engine has settled (C12). One that has the release keeps it:
// the engine may be unsettled for a moment by a change of its own.
func (a *action) targets() clusters.Placed {
	open, placed := clusters.Released(a.Next, a.wave), a.Next.PlacedClusters()
	var shares map[string]int64
	if value := clusters.DividedValue(a.Next); value != nil {
		shares = clusters.Shares(*value, placed)
	}
	out := clusters.Placed{Instance: a.Next}
	for _, c := range placed {
		t := clusters.Target{Name: c.Name, Weight: c.EffectiveWeight(), Parameters: c.Parameters}
		if share, divided := shares[c.Name]; divided {
			t.Share = &share
		}
		template := a.Next.Template()
		report := a.engine.Members[c.Name].Report
		if open[c.Name] && (a.engine.Settled || report != nil && report.Released == template) {
			t.Released = template
		}
		out.Clusters = append(out.Clusters, t)
	}
	return out
}
