package instance

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// observation is what the state depends on. Each fact is determined only if the ones before leave the state open, since some cost
// a request.
type observation struct {
	// deleted is set if the Instance is being deleted, finalizer if it is kept until it is cleaned up.
	deleted, finalizer bool
	// namespaceTerminating is set if the namespace is being deleted, too.
	namespaceTerminating bool
	// foreign is set if the status is that of an Instance with another uid.
	foreign bool
	// unclean is set if the status holds what an earlier version of kudo or another client has put there.
	unclean bool
	// deletion is what a deleted Instance needs, and cleanup the OperatorVersion whose cleanup plan counts, or nil if there is none.
	deletion trigger.Deletion
	cleanup  *runner.ParsedVersion
	// cleanupCanceled and cleanupRetry are set if a user gives a cleanup that failed up, or asks for another run of it.
	cleanupCanceled, cleanupRetry bool
	// outdated is set if the finalizer is not as the OperatorVersion needs it.
	outdated bool
	// canceled is set if a user asks to end the run.
	canceled bool
	// held is set if a hub has placed the Instance, and has not released it.
	held bool
	// running is set if a plan is running.
	running bool
	// blocked says why nothing can be started; nil if something can.
	blocked *blocked
	// decision is what spec asks for; nil if spec cannot be acted upon. start is the run to start, or nil if none is.
	decision *trigger.Decision
	start    *trigger.Request
	// restored is set if the Instance is to take over what a restore has created, in place of its first run.
	restored bool
}

// observer determines the observation.
type observer struct {
	*scope
	observation
	schedules *scheduler
}

// observe reads what the state depends on. It changes the status of the copy only.
func (o *observer) observe(ctx context.Context) error {
	o.observation = observation{deleted: o.Next.DeletionTimestamp != nil, finalizer: controllerutil.ContainsFinalizer(o.Next,
		v1beta1.CleanupFinalizer)}
	if err := o.observeKeys(ctx); err != nil || o.blocked != nil {
		return err
	}
	if o.foreign, o.unclean = history.IsForeign(o.Next.UID, o.Next.Status.PlanStatus), isStatusUnclean(o.Next); o.foreign || o.unclean {
		return nil
	}
	if err := o.observeInputs(ctx); err != nil {
		return err
	}
	name, st := o.activePlan()
	o.running = name != ""
	o.schedules.occupyPlace(o.running && st.Scheduled)
	if o.deleted {
		return o.observeDeletion(ctx)
	}
	o.schedules.observe()
	o.outdated = o.isFinalizerOutdated()
	o.canceled = isCanceled(o.Next, name, st)
	o.held = o.Next.IsHeld()
	if o.outdated || o.canceled || o.held {
		return nil
	}
	return o.observeDecision(ctx)
}

// observeKeys gets the keys. Without them nothing can be started, and an Instance is kept that would be cleaned up.
func (o *observer) observeKeys(ctx context.Context) error {
	ring, missing, err := history.TryRing(ctx, o.Keys)
	if err != nil {
		return err
	}
	o.ring = ring
	if missing == "" {
		return nil
	}
	o.blocked = &blocked{keyMissing, v1beta1.ReasonHistoryKeyMissing, v1beta1.EventHistoryKeyMissing, missing}
	if o.deleted && o.finalizer {
		o.namespaceTerminating, err = o.IsNamespaceTerminating(ctx)
	}
	return err
}

// observeDeletion determines what an Instance needs that is being deleted.
func (o *observer) observeDeletion(ctx context.Context) (err error) {
	if !o.finalizer {
		return nil
	}
	if o.cleanup, err = o.observeCleanup(ctx); err != nil {
		return err
	}
	var spec *v1beta1.OperatorVersionSpec
	if o.cleanup != nil {
		spec = o.cleanup.Spec
	}
	if o.deletion = trigger.Delete(o.Next, spec); o.deletion != trigger.Hold {
		return nil
	}
	st := o.Next.Status.PlanStatus[v1beta1.CleanupPlan]
	o.cleanupCanceled = isCanceled(o.Next, v1beta1.CleanupPlan, st)
	o.cleanupRetry = plans.IsRetryRequested(o.Next.Annotations, st) && o.cleanup != nil
	if !o.cleanupCanceled && !o.cleanupRetry {
		o.namespaceTerminating, err = o.IsNamespaceTerminating(ctx)
	}
	return err
}

// observeCleanup returns the version whose cleanup plan counts: the live one, else the last snapshot, else nil.
func (o *observer) observeCleanup(ctx context.Context) (*runner.ParsedVersion, error) {
	base := o.Next.Status.Baseline
	if base == nil || o.content != nil && base.OperatorVersion == o.Next.OperatorVersionKey().String() {
		return o.content, nil
	}
	kept, err := o.keptVersion(ctx, base.Snapshot)
	if history.Unusable(err) {
		if o.content == nil {
			o.Warn(v1beta1.EventRecordUnusable, "plan %s does not run, since it is not known whether there is one: OperatorVersion %s does not "+
				"exist, and %s",
				v1beta1.CleanupPlan, base.OperatorVersion, err)
		}
		return o.content, nil
	}
	return cmp.Or(kept, o.content), err
}

// isFinalizerOutdated reports whether the finalizer is to be added or removed: it is there while the OperatorVersion has a cleanup
// plan. The finalizer of the version before stays until the upgrade has begun.
func (o *observer) isFinalizerOutdated() bool {
	if o.content == nil {
		return false
	}
	_, wanted := o.content.Spec.Plans[v1beta1.CleanupPlan]
	if base := o.Next.Status.Baseline; base != nil && base.OperatorVersion != o.Next.OperatorVersionKey().String() {
		wanted = wanted || o.finalizer
	}
	return wanted != o.finalizer
}

// observeDecision asks the rules which plan the spec starts, and determines what blocks it.
func (o *observer) observeDecision(ctx context.Context) error {
	if o.content == nil {
		switch {
		case o.running:
		case !o.isSpecAnswered():
			o.blocked = o.versionMissing()
		case len(o.schedules.due) > 0: // nothing else is to be started, so Ready stays as it is
			o.schedules.reportDue(o.schedules.due[0], o.versionMissing().message)
		}
		return nil
	}
	private, err := o.versionPrivate(ctx)
	if err != nil {
		return err
	}
	if private != nil {
		o.blocked = refusedSpec(private)
		return nil
	}
	old, err := o.previousVersion(ctx)
	if err != nil {
		return err
	}
	if o.sourceError != "" {
		o.blocked = &blocked{parametersMissing, v1beta1.ReasonWaitingForParameters, v1beta1.EventParametersMissing, o.sourceError}
		return nil
	}
	decision, err := trigger.Decide(trigger.Input{Instance: o.Next, Given: o.specValues(), Version: *o.content.Spec, Old: old,
		Digests: o.digests()})
	if err != nil {
		o.blocked = refusedSpec(err)
		return nil
	}
	o.decision, o.start = &decision, decision.Start
	if o.start == nil && !o.running {
		if o.start, err = o.retryRequest(ctx); err != nil {
			return err
		}
		if o.start == nil {
			o.start = o.suspendRequest()
		}
	}
	o.queueDue()
	if o.start == nil {
		return o.observeDue(ctx)
	}
	o.restored = o.isRestored()
	return o.observeStart(ctx)
}

// observeStart determines what blocks the start of a run.
func (o *observer) observeStart(ctx context.Context) error {
	refused, err := o.packageRefused(ctx)
	if err != nil || refused != nil {
		o.blocked = refused
		return err
	}
	missing, err := o.accountMissing(ctx)
	if err != nil {
		return err
	}
	if missing != "" {
		o.blocked = &blocked{accountMissing, v1beta1.ReasonServiceAccountNotFound, v1beta1.EventServiceAccountMissing, missing}
		return nil
	}
	if problems := params.Validate(params.Sensitive(o.content.Spec.Parameters, o.sourceValues.Sensitive),
		o.runValues().given); len(problems) > 0 {
		o.blocked = refusedSpec(problems.Err())
		return nil
	}
	if o.running {
		return nil
	}
	if message := o.installPlanWait(); message != "" {
		o.blocked = &blocked{state: installPending, reason: v1beta1.ReasonWaitingForInstallPlan, message: message}
	}
	return nil
}
