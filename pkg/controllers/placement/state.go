package placement

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// observation is what the state depends on, and what the engine shows.
type observation struct {
	// deleted is set if the Instance is being deleted, finalizer if it is kept until it is removed from all clusters.
	deleted, finalizer bool
	// hasPlacement is set if spec.placement is there.
	hasPlacement bool
	// problem says what is wrong with spec.placement; nil if nothing is.
	problem error
	// undecided says why the clusters that the decision names are not known, or not known to be the present ones; "" if they are.
	undecided string
	// unplaceable is set if no clusters are known that the decision has named before either.
	unplaceable bool
	// lacksFinalizer is set if the engine needs the finalizer, and it is not there.
	lacksFinalizer bool

	engine  clusters.Observation
	wave    v1beta1.WaveStatus
	summary clusters.Summary
}

// observe reads what the state depends on.
func (a *action) observe(ctx context.Context) error {
	o := &a.observation
	o.deleted, o.finalizer = a.Next.DeletionTimestamp != nil, controllerutil.ContainsFinalizer(a.Next, v1beta1.PlacementFinalizer)
	o.hasPlacement = a.Next.Spec.Placement != nil
	if o.deleted || !o.hasPlacement {
		return nil
	}
	version := &v1beta1.OperatorVersion{}
	var spec *v1beta1.OperatorVersionSpec
	if err := a.Client.Get(ctx, a.Next.OperatorVersionKey(), version); err == nil {
		spec = &version.Spec
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	o.problem = clusters.Validate(a.Next, spec)
	o.lacksFinalizer = a.Finalizer && !o.finalizer
	if o.problem == nil {
		if err := a.decide(ctx); err != nil {
			return err
		}
	}
	if o.state() != placed {
		return nil
	}
	var err error
	o.engine, err = a.Engine.Observe(ctx, a.Next)
	o.engine.Undecided = o.undecided
	return err
}

// decide puts into the status which clusters the decision of the Instance names. One that cannot be acted upon leaves the status as it is,
// so that what is placed stays (C45).
func (a *action) decide(ctx context.Context) error {
	decision, status := a.Next.Spec.Placement.Decision, &a.Next.Status
	switch {
	case decision == nil:
		status.Decision = nil
		return nil
	case a.Decide == nil:
		a.problem = clusters.ErrNoDecisions
		return nil
	}
	decided, err := a.Decide(ctx, a.Next)
	if err == nil {
		if problem := clusters.ValidateDecided(a.Next, decided.Clusters); problem != nil {
			err = &clusters.HoldError{Message: problem.Error()}
		}
	}
	switch hold := new(clusters.HoldError); {
	case errors.As(err, &hold):
		a.undecided = hold.Message
	case err != nil:
		return err
	default:
		status.Decision = decided
		return nil
	}
	a.unplaceable = a.Next.DecisionFingerprint() == ""
	if !a.unplaceable { // a lower value may leave some of the former clusters without a share
		a.problem = clusters.ValidateDecided(a.Next, status.Decision.Clusters)
	}
	return nil
}

// state names the situation of an Instance.
type state string

const (
	// released: it is being deleted, and the engine follows or has removed all copies.
	released state = "released"
	// removing: it is being deleted, and clusters may have copies of it.
	removing state = "removing"
	// unplaced: it has no placement.
	unplaced state = "unplaced"
	// invalid: its placement cannot be acted upon.
	invalid state = "invalid"
	// unprotected: it lacks the finalizer that the engine needs.
	unprotected state = "unprotected"
	// undecided: its decision names clusters that are not known.
	undecided state = "undecided"
	// placed: the engine carries it to clusters.
	placed state = "placed"
)

// state returns the state of what was observed. The first line that applies counts.
func (o observation) state() state {
	switch {
	case o.deleted && !o.finalizer:
		return released
	case o.deleted:
		return removing
	case !o.hasPlacement:
		return unplaced
	case o.problem != nil:
		return invalid
	case o.lacksFinalizer:
		return unprotected
	case o.unplaceable:
		return undecided
	}
	return placed
}

// refused returns the condition Ready of an Instance that cannot be placed.
func refused(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// removalMessage says which clusters still have a copy of an Instance that is being deleted.
func removalMessage(left []string) string {
	return "is being deleted, and waits for " + strings.Join(left, ", ")
}
