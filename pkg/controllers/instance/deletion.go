package instance

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// finalizer holds Instances whose OperatorVersion has a cleanup plan, and only those.
func (p *pass) finalizer(ctx context.Context) (bool, error) {
	if p.live == nil {
		return false, nil
	}
	_, wanted := p.live.Spec.Plans[v1beta1.CleanupPlan]
	if base := p.instance.Status.Baseline; base != nil && base.OperatorVersion != p.instance.OperatorVersionKey().String() {
		wanted = wanted || controllerutil.ContainsFinalizer(p.instance, v1beta1.CleanupFinalizer) // until the upgrade has begun
	}
	if wanted == controllerutil.ContainsFinalizer(p.instance, v1beta1.CleanupFinalizer) {
		return false, nil
	}
	return false, p.finalize(ctx, wanted)
}

// finalize adds or removes the finalizer: one patch.
func (p *pass) finalize(ctx context.Context, wanted bool) error {
	status := p.instance.Status.DeepCopy()
	patch := client.MergeFromWithOptions(p.instance.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if wanted {
		controllerutil.AddFinalizer(p.instance, v1beta1.CleanupFinalizer)
	} else {
		controllerutil.RemoveFinalizer(p.instance, v1beta1.CleanupFinalizer)
	}
	if err := p.Client.Patch(ctx, p.instance, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.instance.Status = *status
	status = p.written.Status.DeepCopy()
	p.written = p.instance.DeepCopy() // admission may have changed spec on the way
	p.written.Status = *status
	return nil
}

// deletion runs the cleanup plan of an Instance that is being deleted, and lets it go.
func (p *pass) deletion(ctx context.Context) (bool, error) {
	if p.instance.DeletionTimestamp == nil {
		return false, nil
	}
	if !controllerutil.ContainsFinalizer(p.instance, v1beta1.CleanupFinalizer) {
		return true, nil
	}
	version, err := p.cleanupVersion(ctx)
	if err != nil {
		return true, err
	}
	var spec *v1beta1.OperatorVersionSpec
	if version != nil {
		spec = version.Spec
	}
	switch trigger.Delete(p.instance, spec) {
	case trigger.Release:
		return true, p.release(ctx)
	case trigger.Hold:
		return p.hold(ctx, version)
	case trigger.CleanUp:
		return p.cleanUp(ctx, version, "instance deleted")
	}
	return p.clean(ctx)
}

// clean executes the cleanup plan that runs.
func (p *pass) clean(ctx context.Context) (bool, error) {
	if _, err := p.requests(ctx); err != nil {
		return true, err
	}
	if running, _ := p.running(); running != v1beta1.CleanupPlan {
		return true, p.release(ctx) // cancelled: the cleanup is given up
	}
	if done, err := p.execute(ctx); done || err != nil {
		return true, err
	}
	if _, err := p.settle(ctx); err != nil {
		return true, err
	}
	if p.instance.Status.PlanStatus[v1beta1.CleanupPlan].Status == v1beta1.Complete {
		return true, p.release(ctx)
	}
	return true, nil
}

// cleanUp starts the cleanup plan, whatever else runs. In a namespace that is going, it runs without being written down.
func (p *pass) cleanUp(ctx context.Context, version *runner.Version, cause string) (bool, error) {
	if name, st := p.running(); name != "" {
		plans.Fail(&st, "ended, since the Instance is being deleted", p.Clock.Now())
		p.finish(name, st)
	}
	p.instance.Status.Queue = nil
	if missing, err := p.accountMissing(ctx); err != nil {
		return true, err
	} else if missing != "" {
		return p.awaitCleanupAccount(ctx, missing)
	}
	values, err := p.lastValues(ctx)
	if err != nil {
		return true, err
	}
	err = p.begin(ctx, v1beta1.CleanupPlan, cause, version, false, values)
	going := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if apierrors.IsNotFound(err) { // the namespace may be gone, or a revision went in the meantime
		var failed error
		if going, failed = p.namespaceGoes(ctx); failed != nil {
			return true, failed
		}
	}
	switch {
	case going:
		return true, p.release(ctx)
	case unwritable(err):
		p.warn(v1beta1.EventInvalidSpec, "plan cleanup is given up, since it cannot be written down: %s", err)
		return true, p.release(ctx)
	case err != nil:
		return true, err
	}
	return p.clean(ctx)
}

// hold keeps an Instance whose cleanup plan has failed, until it is retried or given up, or the namespace goes.
func (p *pass) hold(ctx context.Context, version *runner.Version) (bool, error) {
	st := p.instance.Status.PlanStatus[v1beta1.CleanupPlan]
	uid := string(st.UID)
	switch {
	case uid != "" && p.instance.Annotations[v1beta1.CancelAnnotation] == uid:
		return true, p.release(ctx)
	case uid != "" && p.instance.Annotations[v1beta1.RetryAnnotation] == uid && version != nil:
		return p.cleanUp(ctx, version, "retry of cleanup")
	}
	going, err := p.namespaceGoes(ctx)
	switch {
	case err != nil:
		return true, err
	case going:
		return true, p.release(ctx)
	}
	p.result.RequeueAfter = requeue.Look // nothing tells that the namespace goes
	return p.settle(ctx)
}

// namespaceGoes tells whether the Instance's namespace is being deleted or gone.
func (p *pass) namespaceGoes(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := p.Reader.Get(ctx, types.NamespacedName{Name: p.instance.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return namespace.DeletionTimestamp != nil, err
}

// release lets the Instance go.
func (p *pass) release(ctx context.Context) error { return p.finalize(ctx, false) }

// cleanupVersion is the version whose cleanup plan counts: the live one, else the last snapshot.
func (p *pass) cleanupVersion(ctx context.Context) (*runner.Version, error) {
	base := p.instance.Status.Baseline
	if base == nil || p.live != nil && base.OperatorVersion == p.instance.OperatorVersionKey().String() {
		return p.live, nil
	}
	kept, err := p.kept(ctx, base.Snapshot)
	if history.Unusable(err) {
		if p.live == nil {
			p.warn(v1beta1.EventRecordUnusable, "plan %s is given up, since nothing tells any more whether there is one: OperatorVersion %s is gone, and %s",
				v1beta1.CleanupPlan, base.OperatorVersion, err)
		}
		return p.live, nil
	}
	return cmp.Or(kept, p.live), err
}
