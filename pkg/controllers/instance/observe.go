package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// inputs are what is read once in a reconcile: actions that prepare the Instance do not change them.
type inputs struct {
	// read is set when all of it has been read.
	read bool
	// ring holds the keys of records and digests.
	ring *keyring.Ring
	// version is what spec.operatorVersion names, and content its parsed content, or nil if it does not exist.
	version *v1beta1.OperatorVersion
	content *runner.ParsedVersion
	// serviceAccount is the one that the next run has; privileged is set if it is kudo's own.
	serviceAccount apply.Account
	privileged     bool
	// sourceValues is what spec.parametersFrom gives, and sourceError says why it cannot be determined.
	sourceValues paramsource.Values
	sourceError  string
}

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
	// canceled is set if a user asks to end the run that goes on.
	canceled bool
	// running is set if a run goes on.
	running bool
	// blocked says why nothing can be started; nil if something can.
	blocked *blocked
	// decision is what spec asks for; nil if spec cannot be acted upon. start is the run to start, or nil if none is.
	decision *trigger.Decision
	start    *trigger.Request
	// restored is set if the Instance is to take over what a restore has created, in place of its first run.
	restored bool
}

// observe reads what the state depends on. It changes the status of the copy only.
func (a *action) observe(ctx context.Context) error {
	a.observation = observation{deleted: a.Next.DeletionTimestamp != nil, finalizer: controllerutil.ContainsFinalizer(a.Next,
		v1beta1.CleanupFinalizer)}
	if err := a.observeKeys(ctx); err != nil || a.blocked != nil {
		return err
	}
	if a.foreign, a.unclean = history.IsForeign(a.Next.UID, a.Next.Status.PlanStatus), a.isStatusUnclean(); a.foreign || a.unclean {
		return nil
	}
	if err := a.observeInputs(ctx); err != nil {
		return err
	}
	name, st := a.activePlan()
	a.running = name != ""
	a.occupyPlace(a.running && st.Scheduled)
	if a.deleted {
		return a.observeDeletion(ctx)
	}
	a.observeSchedules()
	a.outdated = a.isFinalizerOutdated()
	a.canceled = isCanceled(a.Next, name, st)
	if a.outdated || a.canceled {
		return nil
	}
	return a.observeDecision(ctx)
}

// observeKeys gets the keys. Without them nothing can be started, and an Instance is kept that would be cleaned up.
func (a *action) observeKeys(ctx context.Context) error {
	ring, missing, err := history.TryRing(ctx, a.Keys)
	if err != nil {
		return err
	}
	a.ring = ring
	if missing == "" {
		return nil
	}
	a.blocked = &blocked{keyMissing, v1beta1.ReasonHistoryKeyMissing, v1beta1.EventHistoryKeyMissing, missing}
	if a.deleted && a.finalizer {
		a.namespaceTerminating, err = a.IsNamespaceTerminating(ctx)
	}
	return err
}

// observeInputs reads the inputs, once.
func (a *action) observeInputs(ctx context.Context) error {
	if a.read {
		return nil
	}
	a.clearKeylessHashes()
	for _, observe := range []func(context.Context) error{a.observeVersion, a.observeAccount, a.observeParameters} {
		if err := observe(ctx); err != nil {
			return err
		}
	}
	a.rehashDigests()
	a.read = true
	return nil
}

// observeVersion gets the OperatorVersion that spec names.
func (a *action) observeVersion(ctx context.Context) error {
	ov := &v1beta1.OperatorVersion{}
	err := a.Client.Get(ctx, a.Next.OperatorVersionKey(), ov)
	if apierror.IsObjectNotFound(err) || a.Next.Spec.OperatorVersion.Name == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("OperatorVersion %s: %w", a.Next.OperatorVersionKey(), err)
	}
	a.version = ov
	a.content, err = a.Versions.ForObject(ov)
	return err
}

// observeParameters reads what spec.parametersFrom names.
func (a *action) observeParameters(ctx context.Context) error {
	if a.content == nil || len(a.Next.Spec.ParametersFrom) == 0 {
		return nil
	}
	values, err := a.Sources.Values(ctx, a.Next, types.NamespacedName(a.serviceAccount), a.content.Spec.Parameters)
	var missing *paramsource.MissingError
	if errors.As(err, &missing) {
		a.sourceError = missing.Message
		return nil
	}
	a.sourceValues = values
	return err
}

// observeDeletion determines what an Instance needs that is being deleted.
func (a *action) observeDeletion(ctx context.Context) (err error) {
	if !a.finalizer {
		return nil
	}
	if a.cleanup, err = a.observeCleanup(ctx); err != nil {
		return err
	}
	var spec *v1beta1.OperatorVersionSpec
	if a.cleanup != nil {
		spec = a.cleanup.Spec
	}
	if a.deletion = trigger.Delete(a.Next, spec); a.deletion != trigger.Hold {
		return nil
	}
	uid := string(a.Next.Status.PlanStatus[v1beta1.CleanupPlan].UID)
	a.cleanupCanceled = uid != "" && a.Next.Annotations[v1beta1.CancelAnnotation] == uid
	a.cleanupRetry = uid != "" && a.Next.Annotations[v1beta1.RetryAnnotation] == uid && a.cleanup != nil
	if !a.cleanupCanceled && !a.cleanupRetry {
		a.namespaceTerminating, err = a.IsNamespaceTerminating(ctx)
	}
	return err
}

// observeCleanup returns the version whose cleanup plan counts: the live one, else the last snapshot, else nil.
func (a *action) observeCleanup(ctx context.Context) (*runner.ParsedVersion, error) {
	base := a.Next.Status.Baseline
	if base == nil || a.content != nil && base.OperatorVersion == a.Next.OperatorVersionKey().String() {
		return a.content, nil
	}
	kept, err := a.keptVersion(ctx, base.Snapshot)
	if history.Unusable(err) {
		if a.content == nil {
			a.Warn(v1beta1.EventRecordUnusable, "plan %s does not run, since it is not known whether there is one: OperatorVersion %s does not "+
				"exist, and %s",
				v1beta1.CleanupPlan, base.OperatorVersion, err)
		}
		return a.content, nil
	}
	return cmp.Or(kept, a.content), err
}

// isFinalizerOutdated reports whether the finalizer is to be added or removed: it is there while the OperatorVersion has a cleanup
// plan. The finalizer of the version before stays until the upgrade has begun.
func (a *action) isFinalizerOutdated() bool {
	if a.content == nil {
		return false
	}
	_, wanted := a.content.Spec.Plans[v1beta1.CleanupPlan]
	if base := a.Next.Status.Baseline; base != nil && base.OperatorVersion != a.Next.OperatorVersionKey().String() {
		wanted = wanted || a.finalizer
	}
	return wanted != a.finalizer
}

// observeDecision asks the rules which plan the spec starts, and determines what blocks it.
func (a *action) observeDecision(ctx context.Context) error {
	if a.content == nil {
		switch {
		case a.running:
		case !a.isSpecAnswered():
			a.blocked = a.versionMissing()
		case len(a.due) > 0: // nothing else is to be started, so Ready stays as it is
			a.reportDue(a.due[0], a.versionMissing().message)
		}
		return nil
	}
	private, err := a.versionPrivate(ctx)
	if err != nil {
		return err
	}
	if private != nil {
		a.blocked = refusedSpec(private)
		return nil
	}
	old, err := a.previousVersion(ctx)
	if err != nil {
		return err
	}
	if a.sourceError != "" {
		a.blocked = &blocked{parametersMissing, v1beta1.ReasonWaitingForParameters, v1beta1.EventParametersMissing, a.sourceError}
		return nil
	}
	decision, err := trigger.Decide(trigger.Input{Instance: a.Next, Given: a.specValues(), Version: *a.content.Spec, Old: old,
		Digests: a.digests()})
	if err != nil {
		a.blocked = refusedSpec(err)
		return nil
	}
	a.decision, a.start = &decision, decision.Start
	if a.start == nil && !a.running {
		if a.start, err = a.retryRequest(ctx); err != nil {
			return err
		}
		if a.start == nil {
			a.start = a.suspendRequest()
		}
	}
	a.queueDue()
	if a.start == nil {
		return a.observeDue(ctx)
	}
	a.restored = a.isRestored()
	return a.observeStart(ctx)
}

// observeStart determines what blocks the start of a run.
func (a *action) observeStart(ctx context.Context) error {
	refused, err := a.packageRefused(ctx)
	if err != nil || refused != nil {
		a.blocked = refused
		return err
	}
	missing, err := a.accountMissing(ctx)
	if err != nil {
		return err
	}
	if missing != "" {
		a.blocked = &blocked{accountMissing, v1beta1.ReasonServiceAccountNotFound, v1beta1.EventServiceAccountMissing, missing}
		return nil
	}
	if problems := params.Validate(params.Sensitive(a.content.Spec.Parameters, a.sourceValues.Sensitive),
		a.runValues().given); len(problems) > 0 {
		a.blocked = refusedSpec(problems.Err())
		return nil
	}
	if a.running {
		return nil
	}
	if message := a.installPlanWait(); message != "" {
		a.blocked = &blocked{state: installPending, reason: v1beta1.ReasonWaitingForInstallPlan, message: message}
	}
	return nil
}

// previousVersion is the OperatorVersion of the baseline, if spec names another one.
func (a *action) previousVersion(ctx context.Context) (*v1beta1.OperatorVersionSpec, error) {
	base := a.Next.Status.Baseline
	if base == nil || base.OperatorVersion == a.Next.OperatorVersionKey().String() {
		return nil, nil
	}
	kept, err := a.keptVersion(ctx, base.Snapshot)
	if err == nil && kept != nil {
		return kept.Spec, nil
	}
	if err != nil && !history.Unusable(err) {
		return nil, err
	}
	ov := &v1beta1.OperatorVersion{}
	err = a.Client.Get(ctx, key(base.OperatorVersion), ov)
	if apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	return &ov.Spec, err
}

func key(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// unresolvedReasons are reasons of an Instance that waits for something to be put right.
var unresolvedReasons = []string{v1beta1.ReasonInvalidSpec, v1beta1.ReasonRecordNameTaken, v1beta1.ReasonOperatorVersionNotFound,
	v1beta1.ReasonWaitingForParameters, v1beta1.ReasonServiceAccountNotFound}

// isSpecAnswered reports whether all that spec asks for has been started. Schedules are no such request.
func (a *action) isSpecAnswered() bool {
	status := a.Next.Status
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ReadyCondition)
	if a.wasPending() || ready != nil && (slices.Contains(unresolvedReasons, ready.Reason)) {
		return false
	}
	isRequested := func(q v1beta1.QueuedPlan) bool { return !trigger.IsScheduled(q.Cause) }
	return status.ObservedGeneration == a.Next.Generation && !slices.ContainsFunc(status.Queue, isRequested) &&
		status.Baseline != nil && status.Baseline.OperatorVersion == a.Next.OperatorVersionKey().String()
}

// pendingReasons are reasons of an Instance that is PENDING.
var pendingReasons = []string{v1beta1.ReasonPackageNotVerified, v1beta1.ReasonWaitingForInstallPlan, v1beta1.ReasonWaitingForCRDs,
	v1beta1.ReasonWaitingForDeletion}

// wasPending reports whether the Instance was pending when it was written last.
func (a *action) wasPending() bool {
	ready := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.ReadyCondition)
	return ready != nil && slices.Contains(pendingReasons, ready.Reason)
}

// activePlan returns the name and status of the plan that runs, or "".
func (a *action) activePlan() (string, v1beta1.PlanStatus) {
	name := plans.Running(a.Next.Status.PlanStatus)
	return name, a.Next.Status.PlanStatus[name]
}
