package operatorversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
)

// prepare puts the finalizer on the OperatorVersion and makes its Installation, before anything is installed.
func (p *pass) prepare(ctx context.Context) (bool, error) {
	if err := p.finalize(ctx, true); err != nil {
		return true, err
	}
	if p.holder != nil {
		p.ov.Status.Installation = p.holder.Name
		return p.holder.DeletionTimestamp != nil, nil // nothing is begun that is about to be released
	}
	holder := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{
		Name: p.ov.InstallationName(), Finalizers: []string{v1beta1.InstallationFinalizer},
		Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage},
	}}
	holder.Spec.For = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: p.ov.Namespace, Name: p.ov.Name, UID: p.ov.UID}
	if err := p.Client.Create(ctx, holder); err != nil {
		return true, fmt.Errorf("create Installation %s: %w", holder.Name, err)
	}
	p.holder, p.held = holder, nil
	p.ov.Status.Installation = holder.Name
	return false, nil
}

// finalize adds or removes the finalizer.
func (p *pass) finalize(ctx context.Context, wanted bool) error {
	if controllerutil.ContainsFinalizer(p.ov, v1beta1.OperatorVersionFinalizer) == wanted {
		return nil
	}
	status := p.ov.Status.DeepCopy()
	patch := client.MergeFromWithOptions(p.ov.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if wanted {
		controllerutil.AddFinalizer(p.ov, v1beta1.OperatorVersionFinalizer)
	} else {
		controllerutil.RemoveFinalizer(p.ov, v1beta1.OperatorVersionFinalizer)
	}
	if err := p.Client.Patch(ctx, p.ov, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.written = p.ov.DeepCopy()
	p.ov.Status = *status
	return nil
}

// decide starts the install plan:
//
//	it never ran                                    start
//	it runs, or has failed, and spec has changed    start again
//	it has failed, and a retry is asked for         start again
//	it has succeeded, and its name or parameters
//	    have changed                                start again
//	somebody has removed its Installation           start again
//
// An OperatorVersion that is edited in place in any other way starts nothing, as with Instances.
func (p *pass) decide(ctx context.Context) (bool, error) {
	status, plan := &p.ov.Status, p.ov.Spec.InstallPlan
	if plan == "" {
		return false, nil // it had one; what it installed is held on
	}
	switch plan {
	case v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan, v1beta1.CleanupPlan:
		return p.refused(ctx, fmt.Sprintf("spec.installPlan is %q, which Instances run: give the install plan a name of its own, such as install", plan))
	}
	if _, defined := p.ov.Spec.Plans[plan]; !defined {
		return p.refused(ctx, fmt.Sprintf("spec.installPlan is %q, and there is no plan of the name: it has %v", plan, plans.Names(p.ov.Spec.Plans)))
	}
	if unknown := params.Unknown(p.ov.Spec.Parameters, p.ov.Spec.InstallParameters); len(unknown) > 0 {
		return p.refused(ctx, fmt.Sprintf("spec.installParameters.%s is not defined in spec.parameters: correct its name", unknown[0]))
	}
	if problems := params.Validate(p.ov.Spec.Parameters, p.ov.Spec.InstallParameters); len(problems) > 0 {
		return p.refused(ctx, problems.Err().Error())
	}
	last := plans.Last(status.PlanStatus)
	st := status.PlanStatus[last]
	edited := status.ObservedGeneration != p.ov.Generation
	status.ObservedGeneration = p.ov.Generation
	switch {
	case last == "":
		return false, p.begin(ctx, "OperatorVersion created")
	case edited && (!st.Status.IsTerminal() || st.Status == v1beta1.FatalError):
		return false, p.begin(ctx, "OperatorVersion changed")
	case st.Status == v1beta1.FatalError && st.UID != "" && p.ov.Annotations[v1beta1.RetryAnnotation] == string(st.UID):
		return false, p.begin(ctx, fmt.Sprintf("retry of run %d", st.Revision))
	case st.Status == v1beta1.Complete && p.changed():
		return false, p.begin(ctx, "installPlan or installParameters changed")
	case st.Status == v1beta1.Complete && status.InstallationUID != p.holder.UID:
		return false, p.begin(ctx, "to restore its Installation, which was removed")
	}
	return false, nil
}

// refused says why the install plan cannot be run.
func (p *pass) refused(ctx context.Context, message string) (bool, error) {
	p.ov.Status.ObservedGeneration = p.ov.Generation
	p.ov.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.FatalError, Message: message}
	if meta.IsStatusConditionTrue(p.ov.Status.Conditions, v1beta1.InstalledCondition) { // what it installed is there
		p.condition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonInvalidSpec, message)
	} else {
		p.condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonInvalidSpec, message)
	}
	p.once(v1beta1.EventInvalidSpec, message)
	return true, p.commit(ctx)
}

// begin starts a run, as with Instances: what it is started with is written down first; the status patch with the run's
// uid is the commit; the first task comes after its answer.
func (p *pass) begin(ctx context.Context, cause string) error {
	status, plan := &p.ov.Status, p.ov.Spec.InstallPlan
	revision := status.Revision + 1
	run := history.Run{
		Plan: plan, Cause: cause, UID: history.RunUID(p.ov.UID, revision), OperatorVersion: p.ov.Namespace + "/" + p.ov.Name,
		Parameters: p.ov.Spec.InstallParameters, Sensitive: p.sensitive(), Started: metav1.NewMicroTime(p.Clock.Now()),
	}
	if err := p.History.Begin(ctx, p.ov, revision, run); err != nil {
		return err
	}
	if err := p.History.Trim(ctx, p.ov, revision, ""); err != nil {
		return err
	}
	if old := status.PlanStatus[plan]; old.Revision != 0 {
		if err := p.History.Close(ctx, p.ov, old); err != nil {
			return err
		}
	}
	if status.PlanStatus == nil {
		status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	if running := plans.Running(status.PlanStatus); running != "" && running != plan {
		old := status.PlanStatus[running]
		plans.Fail(&old, fmt.Sprintf("given up: spec.installPlan is %s now", plan), p.Clock.Now())
		status.PlanStatus[running] = old
	}
	status.Revision, status.Inputs, status.InstallationUID = revision, p.ring.Digest(p.inputs()...), p.holder.UID
	status.PlanStatus[plan] = plans.Start(plan, p.ov.Spec.Plans[plan], run.UID, revision, p.Clock.Now())
	p.begun.Store(client.ObjectKeyFromObject(p.ov), proof{run.UID, p.ring.Current()})
	p.derive()
	if err := p.commit(ctx); err != nil {
		return err
	}
	p.happened(corev1.EventTypeNormal, v1beta1.EventPlanStarted, "Execution of install plan %s started (%s)", plan, cause)
	return nil
}

// execute goes through the install plan, if it runs.
func (p *pass) execute(ctx context.Context) (bool, error) {
	name := plans.Running(p.ov.Status.PlanStatus)
	if name == "" {
		return false, nil
	}
	st := p.ov.Status.PlanStatus[name]
	if lost, err := p.lost(ctx, name, st); lost || err != nil {
		return err != nil, err
	}
	if err := p.newRun(name); err != nil {
		return true, err
	}
	done, err := p.Runner.Execute(ctx, p.run, nil, &st, p.Clock, &hooks{p})
	if err != nil {
		return true, err
	}
	p.transient = done.Transient && !st.Status.IsTerminal()
	p.ov.Status.PlanStatus[name] = st
	if err := p.keep(ctx); err != nil {
		return true, p.Share.Session(p.holder, share.Policy{}, p.held).Orphaned(ctx, p.held, err)
	}
	if !st.Status.IsTerminal() {
		p.result.RequeueAfter = lookAgain
		return false, nil
	}
	p.finished(name, st)
	return false, nil
}

func (p *pass) finished(name string, st v1beta1.PlanStatus) {
	if st.Status == v1beta1.FatalError {
		p.happened(corev1.EventTypeWarning, v1beta1.EventPlanFailed, "Install plan %s failed: %s", name, st.Message)
	}
	p.happened(corev1.EventTypeNormal, v1beta1.EventPlanFinished, "Execution of install plan %s finished with status %s", name, st.Status)
}

// sensitive are the install parameters whose values are not to be seen.
func (p *pass) sensitive() []string {
	var out []string
	for _, def := range p.ov.Spec.Parameters {
		if _, set := p.ov.Spec.InstallParameters[def.Name]; set && def.Sensitive {
			out = append(out, def.Name)
		}
	}
	return out
}

func (p *pass) newRun(plan string) error {
	version, err := p.Versions.Of(p.ov)
	if err != nil {
		return err
	}
	policy := share.Policy{}
	if given := p.ov.Spec.InstallPolicy; given != nil {
		policy.SameOperator = given.SharedUpdates == v1beta1.SameOperatorUpdates
	}
	p.run = &runner.Run{
		Subject: runner.Subject{Kind: "OperatorVersion", Namespace: p.ov.Namespace, Name: p.ov.Name, UID: p.ov.UID},
		Source:  p.ov.Namespace + "/" + p.ov.Name, Version: version, Plan: plan, UID: p.ov.Status.PlanStatus[plan].UID,
		Given: p.ov.Spec.InstallParameters, Sensitive: p.sensitive(), Account: p.Installer, Holder: p.holder, Policy: policy, Held: p.held, Keys: p.ring,
	}
	return nil
}

// hooks connect the execution of the install plan to the OperatorVersion and its Installation.
type hooks struct{ *pass }

// Intend commits the objects that are about to be written for the first time: what is not in the inventory is not
// released; and what has been done that must not be done twice.
func (h *hooks) Intend(ctx context.Context, st v1beta1.PlanStatus, ids []apply.ID, done bool) error {
	h.ov.Status.PlanStatus[st.Name] = st
	for _, id := range ids {
		if h.held.Find(id) < 0 {
			r := share.Held(apply.Change{ID: id}, h.holder)
			r.State = v1beta1.HoldPending
			h.held = append(h.held, r)
		}
	}
	if err := h.keep(ctx); err != nil || !done {
		return err
	}
	h.derive()
	return h.commit(ctx)
}

// Take puts what a task did into the inventory.
func (h *hooks) Take(effects runner.Effects) {
	for _, change := range effects.Written {
		h.put(share.Held(change, h.holder))
	}
	for _, change := range effects.Failed {
		var mismatch *share.MismatchError
		if !errors.As(change.Err, &mismatch) {
			continue
		}
		r := v1beta1.HeldResource{}
		if at := h.held.Find(change.ID); at >= 0 {
			r = h.held[at]
		} else {
			r = share.Held(apply.Change{ID: change.ID}, h.holder)
		}
		r.State, r.Message = v1beta1.HoldMismatch, bounded(change.Err.Error())
		h.put(r)
	}
	for _, id := range effects.Gone {
		if at := h.held.Find(id); at >= 0 && h.held[at].State != v1beta1.HoldExisting {
			h.held = slices.Delete(h.held, at, at+1)
		}
	}
	h.run.Held = h.held
	for _, e := range effects.Events {
		h.once(e[0], e[1])
	}
}

// put puts an entry into the inventory, at its place if it has one.
func (p *pass) put(r v1beta1.HeldResource) {
	id := share.IDOf(r)
	if at := p.held.Find(id); at >= 0 {
		p.held[at] = r
		return
	}
	p.held = append(p.held, r)
}

// maxMessage bounds a message in the inventory, in bytes.
const maxMessage = 1024

func bounded(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage] + "…"
	}
	return text
}

// namespaceGoes tells whether the OperatorVersion's namespace is being deleted.
func (p *pass) namespaceGoes(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := p.Reader.Get(ctx, client.ObjectKey{Name: p.ov.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return namespace.DeletionTimestamp != nil, err
}
