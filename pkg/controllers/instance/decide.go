package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/crds"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// requests answers the annotations that ask to cancel or to retry a run. Their value is the uid of the run, so that they
// can stay: they do not fit the next run.
func (p *pass) requests(ctx context.Context) (bool, error) {
	name, st := p.running()
	if name != "" && st.UID != "" && p.instance.Annotations[v1beta1.CancelAnnotation] == string(st.UID) {
		plans.Fail(&st, "cancelled", p.Clock.Now())
		p.finish(name, st)
		p.happened(corev1.EventTypeNormal, v1beta1.EventPlanCancelled, "Execution of plan %s was cancelled", name)
		p.derive(nil)
		return false, p.commit(ctx)
	}
	return false, nil
}

// decide asks the rules which plan the spec starts, and begins it.
func (p *pass) decide(ctx context.Context) (bool, error) {
	if p.live == nil {
		return p.withoutVersion(ctx)
	}
	if private, err := p.versionPrivate(ctx); err != nil {
		return true, err
	} else if private != nil {
		return p.refused(ctx, private)
	}
	old, err := p.before(ctx)
	if err != nil {
		return true, err
	}
	if p.unsourced != "" {
		return p.withoutValues(ctx)
	}
	input := trigger.Input{Instance: p.instance, Given: p.wanted(), Version: *p.live.Spec, Old: old, Digests: p.digests()}
	decision, err := trigger.Decide(input)
	if err != nil {
		return p.refused(ctx, err)
	}
	p.instance.Status.ObservedGeneration = p.instance.Generation
	p.ignored(decision.Ignored)
	start := decision.Start
	if running, _ := p.running(); start == nil && running == "" {
		if start, err = p.retried(ctx); err != nil {
			return true, err
		}
		if start == nil {
			start = p.suspension()
		}
	}
	if start == nil {
		p.takeOver(decision)
		return false, nil
	}
	if missing, err := p.accountMissing(ctx); err != nil {
		return true, err
	} else if missing != "" {
		return p.awaitAccount(ctx, missing)
	}
	if problems := params.Validate(params.Sensitive(p.live.Spec.Parameters, p.sourced.Sensitive), p.values().given); len(problems) > 0 {
		return p.refused(ctx, problems.Err())
	}
	if running, _ := p.running(); running == "" {
		if message := p.uninstalled(); message != "" {
			return p.pending(ctx, start.Plan, v1beta1.ReasonWaitingForInstallPlan, message)
		}
		message, err := p.definitions(ctx)
		var wrong *crds.Error
		if errors.As(err, &wrong) {
			return p.refused(ctx, err)
		}
		if err != nil {
			return true, err
		}
		if message != "" {
			return p.pendingCRDs(ctx, start.Plan, message)
		}
	}
	given, err := p.valuesWithout(ctx, decision.Held)
	if err != nil {
		return true, err
	}
	upgrade := start.Upgrade
	if decision.Restart {
		if upgrade, err = p.upgrading(ctx); err != nil {
			return true, err
		}
	}
	p.takeOver(decision)
	err = p.begin(ctx, start.Plan, start.Cause, p.live, upgrade, given)
	if unwritable(err) { // nothing was started, and nothing is answered
		p.instance.Status = *p.written.Status.DeepCopy()
		return p.refused(ctx, err)
	}
	return false, err
}

// unwritable tells whether a run can never be written down, as with a name that is too long for a label. What is more than
// etcd takes is answered with a 500, like errors that pass.
func unwritable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "request is too large")
}

// takeOver puts a decision into the status. The baseline keeps what the rules know nothing of.
func (p *pass) takeOver(decision trigger.Decision) {
	status := &p.instance.Status
	p.queued(decision.Queue)
	status.Queue = decision.Queue
	if decision.Baseline == nil {
		return
	}
	if old := status.Baseline; old != nil {
		decision.Baseline.Revision, decision.Baseline.Snapshot, decision.Baseline.Content = old.Revision, old.Snapshot, old.Content
		decision.Baseline.Suspended, decision.Baseline.Sensitive = old.Suspended, old.Sensitive
	}
	status.Baseline = decision.Baseline
}

// before is the OperatorVersion of the baseline, if spec names another one.
func (p *pass) before(ctx context.Context) (*v1beta1.OperatorVersionSpec, error) {
	base := p.instance.Status.Baseline
	if base == nil || base.OperatorVersion == p.instance.OperatorVersionKey().String() {
		return nil, nil
	}
	kept, err := p.kept(ctx, base.Snapshot)
	if err == nil && kept != nil {
		return kept.Spec, nil
	}
	if err != nil && !history.Unusable(err) {
		return nil, err
	}
	ov := &v1beta1.OperatorVersion{}
	err = p.Client.Get(ctx, key(base.OperatorVersion), ov)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &ov.Spec, err
}

func key(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// retried is the request of the annotation that asks to run a failed run again.
func (p *pass) retried(ctx context.Context) (*trigger.Request, error) {
	uid := types.UID(p.instance.Annotations[v1beta1.RetryAnnotation])
	if uid == "" {
		return nil, nil
	}
	for name, st := range p.instance.Status.PlanStatus {
		if _, defined := p.live.Spec.Plans[name]; st.UID != uid || st.Status != v1beta1.FatalError || !defined || name == v1beta1.CleanupPlan {
			continue
		}
		failed, err := p.History.Read(ctx, p.instance, st.Revision)
		if err != nil && !history.Unusable(err) {
			return nil, err
		}
		return &trigger.Request{Plan: name, Cause: fmt.Sprintf("retry of run %d", st.Revision), Upgrade: err == nil && failed.Upgrade}, nil
	}
	return nil, nil
}

// suspension is the request for the plan that suspends or resumes the Instance; nil if it is as spec.suspend wants it.
func (p *pass) suspension() *trigger.Request {
	base := p.instance.Status.Baseline
	if base == nil || base.Revision == 0 || base.Suspended == p.instance.Spec.Suspend {
		return nil
	}
	plan := plans.FirstOf(p.live.Spec.Plans, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	if plan == "" {
		return nil
	}
	cause := "spec.suspend set"
	if base.Suspended {
		cause = "spec.suspend taken back"
	}
	return &trigger.Request{Plan: plan, Cause: cause}
}

// upgrading tells whether the running plan, which is about to be restarted, takes the Instance from another version.
func (p *pass) upgrading(ctx context.Context) (bool, error) {
	name, st := p.running()
	if known := p.goingOn(name, st); known != nil {
		return known.run.Upgrade, nil
	}
	if st.Revision == 0 {
		return false, nil
	}
	record, err := p.History.Read(ctx, p.instance, st.Revision)
	if history.Unusable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return record.Upgrade, nil
}

// refused says why the spec cannot be acted upon. What runs goes on; until its end the spec does not count as seen, so
// that nobody takes that end for the answer to it.
func (p *pass) refused(ctx context.Context, cause error) (bool, error) {
	if running, st := p.running(); running != "" {
		p.instance.Status.ObservedGeneration = p.written.Status.ObservedGeneration
		if err := p.resume(ctx, running, st); err != nil {
			return true, err
		}
		p.once(v1beta1.EventInvalidSpec, cause.Error())
		return false, nil
	}
	p.instance.Status.ObservedGeneration = p.instance.Generation
	return p.halted(ctx, v1beta1.ReasonInvalidSpec, v1beta1.EventInvalidSpec, cause.Error())
}

// withoutVersion goes on with what runs, else waits for the OperatorVersion.
func (p *pass) withoutVersion(ctx context.Context) (bool, error) {
	if running, _ := p.running(); running != "" {
		return false, nil
	}
	if p.answered() {
		return false, nil // nothing is to be started, so that it is missing does not matter
	}
	message := fmt.Sprintf("waits for OperatorVersion %s, which does not exist: install the package or correct spec.operatorVersion", p.instance.OperatorVersionKey())
	if p.instance.Spec.OperatorVersion.Name == "" {
		message = "spec.operatorVersion.name is empty: name the OperatorVersion to run"
	}
	return p.halted(ctx, v1beta1.ReasonOperatorVersionNotFound, v1beta1.EventInvalidOperatorVersion, message)
}

// unanswered are reasons of an Instance that waits for something to be put right.
var unanswered = []string{v1beta1.ReasonInvalidSpec, v1beta1.ReasonOperatorVersionNotFound, v1beta1.ReasonWaitingForParameters, v1beta1.ReasonServiceAccountNotFound}

// answered tells whether all that spec asks for has been started.
func (p *pass) answered() bool {
	status := p.instance.Status
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ReadyCondition)
	if p.waited() || ready != nil && (slices.Contains(unanswered, ready.Reason)) {
		return false
	}
	return status.ObservedGeneration == p.instance.Generation && len(status.Queue) == 0 &&
		status.Baseline != nil && status.Baseline.OperatorVersion == p.instance.OperatorVersionKey().String()
}

// halted writes a condition that says why nothing is started, with an event if it is new.
func (p *pass) halted(ctx context.Context, reason, event, message string) (bool, error) {
	conditions.Refused(p.instance, reason, message)
	before := meta.FindStatusCondition(p.written.Status.Conditions, v1beta1.ReadyCondition)
	now := meta.FindStatusCondition(p.instance.Status.Conditions, v1beta1.ReadyCondition)
	if before == nil || before.Reason != now.Reason || before.Message != now.Message {
		p.happened(corev1.EventTypeWarning, event, "%s", message)
	}
	return true, p.commit(ctx)
}

// ignored warns once of parameters that the OperatorVersion does not define.
func (p *pass) ignored(names []string) {
	if len(names) > 0 && p.written.Status.ObservedGeneration != p.instance.Generation {
		p.happened(corev1.EventTypeWarning, v1beta1.EventUnknownParameter, "spec.parameters %s are not defined by OperatorVersion %s and ignored: remove or correct them",
			strings.Join(names, ", "), p.instance.OperatorVersionKey())
	}
}

// queued tells of plans that are new in the queue.
func (p *pass) queued(queue []v1beta1.QueuedPlan) {
	for _, q := range queue {
		known := false
		for _, old := range p.instance.Status.Queue {
			known = known || old.PlanName == q.PlanName
		}
		if !known {
			p.happened(corev1.EventTypeNormal, v1beta1.EventPlanQueued, "Plan %s is queued: %s", q.PlanName, q.Cause)
		}
	}
}

// begin starts a run (docs/design/engine.md, starting a run): what it is started with is written down first; the status
// patch with the run's uid is the commit; the first task comes after its answer.
func (p *pass) begin(ctx context.Context, plan, cause string, version *runner.Version, upgrade bool, values values) error {
	status := &p.instance.Status
	if status.Baseline == nil {
		status.Baseline = &v1beta1.Baseline{OperatorVersion: p.instance.OperatorVersionKey().String()}
	}
	revision := status.Baseline.Revision + 1
	uid := history.RunUID(p.instance.UID, revision)
	suspend := status.Baseline.Suspended // other plans leave it as it is, so that it is still asked for after them
	if plans.Shapes(plan) {
		suspend = p.instance.Spec.Suspend
	}
	record := history.Run{
		Plan: plan, Cause: cause, UID: uid, OperatorVersion: status.Baseline.OperatorVersion,
		Upgrade: upgrade, Suspend: suspend, Privileged: p.privileged, Parameters: values.given, Sensitive: values.sensitive, Started: metav1.NewMicroTime(p.Clock.Now()),
	}
	if !p.privileged {
		record.ServiceAccount = p.account.Name
	}
	if err := p.content(&record, revision, version); err != nil {
		return err
	}
	if err := p.History.Begin(ctx, p.instance, revision, record); err != nil {
		return err
	}
	if err := p.History.Trim(ctx, p.instance, revision, status.Baseline.Snapshot); err != nil {
		return err
	}
	if old := status.PlanStatus[plan]; old.Revision != 0 {
		if !old.Status.IsTerminal() {
			old.Message = fmt.Sprintf("started again as run %d", revision)
		}
		if err := p.History.Close(ctx, p.instance, old); err != nil {
			return err
		}
	}
	p.Tarballs.Forget(client.ObjectKeyFromObject(p.instance))
	status.Baseline.Revision, status.Baseline.Suspended = revision, record.Suspend
	status.Baseline.Snapshot, status.Baseline.Content = record.Snapshot, p.contentDigest(version)
	status.PlanStatus = plans.List(status.PlanStatus, version.Spec.InstancePlans())
	status.PlanStatus[plan] = plans.Start(plan, version.Spec.Plans[plan], uid, revision, p.Clock.Now())
	p.remember(p.newRun(record, version), p.ring.Current())
	p.happened(corev1.EventTypeNormal, v1beta1.EventPlanStarted, "Execution of plan %s started", plan)
	return nil
}

// content lets a run that is about to be written down refer to the ControllerRevision that holds the OperatorVersion's
// content for the run before, or hold it itself.
func (p *pass) content(record *history.Run, revision int64, version *runner.Version) (err error) {
	base := p.instance.Status.Baseline
	if base.Snapshot != "" && base.Content == p.contentDigest(version) {
		record.Snapshot = base.Snapshot
		return nil
	}
	record.Snapshot = history.Name(p.instance.Name, revision)
	record.Spec, err = history.Pack(version.Spec)
	return err
}

// contentDigest is the digest of what a snapshot holds, and names the key that the snapshot is sealed with: with another
// key, a run holds its own.
func (p *pass) contentDigest(version *runner.Version) string {
	return p.ring.Current() + "." + version.Hash
}

func (p *pass) newRun(record history.Run, version *runner.Version) *runner.Run {
	account, privileged := p.accountOf(record)
	return &runner.Run{
		Subject: runner.Subject{
			Kind: "Instance", Namespace: p.instance.Namespace, Name: p.instance.Name, UID: p.instance.UID, Annotations: p.instance.Annotations, Owners: p.instance.OwnerReferences,
		},
		Source: p.instance.OperatorVersionKey().String(), Version: version, Plan: record.Plan, UID: record.UID, Given: record.Parameters, Sensitive: record.Sensitive,
		Upgrade: record.Upgrade, Suspend: record.Suspend, Account: account, Privileged: privileged, Owners: p.owners, Keys: p.ring,
	}
}

// owners tells whether an Instance of the uid exists.
func (r *Reconciler) owners(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	other := &v1beta1.Instance{}
	err := r.Client.Get(ctx, key, other)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return other.UID == uid, err
}
