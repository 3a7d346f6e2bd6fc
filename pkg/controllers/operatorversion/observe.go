package operatorversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// observation is what a reconcile has read.
type observation struct {
	// deleted is set if the OperatorVersion is being deleted, finalizer if it is kept until what it installed is released.
	deleted, finalizer bool
	// installation is the Installation, as the cluster has it, or nil if there is none.
	installation *v1beta1.Installation
	// ring holds the keys of records and digests; keyMissing says what is missing without it.
	ring       *keyring.Ring
	keyMissing string
	// foreign is set if the status is that of an OperatorVersion with another uid, as a restore leaves it that keeps the status.
	foreign bool
	// hasPlan is set if spec names an install plan.
	hasPlan bool
	// refusal says why the install plan that spec names cannot be run; empty if it can.
	refusal string
	// verdict is that of the PackagePolicies, and packageRefusal its message if they refuse the package; empty if it may run.
	verdict        trust.Verdict
	packageRefusal string
	// cause says why the install plan is to be started; empty if it is not.
	cause string
	// running is set if the plan is running, failed if the last one has failed.
	running, failed bool
}

// observe reads what the state depends on. It reads the cache only.
func (r *Reconciler) observe(ctx context.Context, ov *v1beta1.OperatorVersion) (o observation, err error) {
	o.deleted, o.finalizer = ov.DeletionTimestamp != nil, controllerutil.ContainsFinalizer(ov, v1beta1.OperatorVersionFinalizer)
	o.hasPlan = ov.Spec.InstallPlan != ""
	if o.verdict, err = r.observeVerdict(ctx, ov); err != nil {
		return o, err
	}
	if !o.verdict.Allowed {
		o.packageRefusal = o.verdict.Message
	}
	if o.installation, err = r.observeInstallation(ctx, ov.InstallationName()); err != nil || o.deleted || !o.hasPlan &&
		o.installation == nil {
		return o, err
	}
	if o.ring, o.keyMissing, err = history.TryRing(ctx, r.Keys); err != nil || o.keyMissing != "" {
		return o, err
	}
	o.foreign = history.IsForeign(ov.UID, ov.Status.PlanStatus)
	o.running = plans.Running(ov.Status.PlanStatus) != ""
	_, last := plans.LatestRun(ov.Status.PlanStatus)
	o.failed = last.Status == v1beta1.FatalError
	if o.hasPlan { // without one, an Installation may still hold the objects of a former plan
		if o.refusal = refusalOf(ov); o.refusal == "" {
			o.cause = startCause(ov, o.installation, o.ring)
		}
	}
	return o, nil
}

func (r *Reconciler) observeInstallation(ctx context.Context, name string) (*v1beta1.Installation, error) {
	installation := &v1beta1.Installation{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, installation)
	switch {
	case apierror.IsObjectNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Installation %s: %w", name, err)
	}
	return installation, nil
}

// refusalOf says why the install plan cannot be run; empty if it can.
func refusalOf(ov *v1beta1.OperatorVersion) string {
	plan := ov.Spec.InstallPlan
	switch plan {
	case v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan, v1beta1.CleanupPlan:
		return fmt.Sprintf("spec.installPlan is %q, which Instances run: give the install plan a name of its own, such as install", plan)
	}
	if _, defined := ov.Spec.Plans[plan]; !defined {
		return fmt.Sprintf("spec.installPlan is %q, and there is no plan of the name: it has %v", plan, plans.Names(ov.Spec.Plans))
	}
	if unknown := params.Unknown(ov.Spec.Parameters, ov.Spec.InstallParameters); len(unknown) > 0 {
		return fmt.Sprintf("spec.installParameters.%s is not defined in spec.parameters: correct its name", unknown[0])
	}
	if problems := params.ValidateGiven(ov.Spec.Parameters, ov.Spec.InstallParameters); len(problems) > 0 {
		return problems.Err().Error()
	}
	return ""
}

// startCause says why the install plan is started; empty if it is not:
//
//	it never ran                                    start
//	it runs, or has failed, and spec has changed    start again
//	it has failed, and a retry is asked for         start again
//	it has succeeded, and its name or parameters
//	    have changed                                start again
//	another client has deleted its Installation     start again
//
// An OperatorVersion that is edited in place in any other way starts nothing, as with Instances. Nor does a change of its provenance.
func startCause(ov *v1beta1.OperatorVersion, installation *v1beta1.Installation, ring *keyring.Ring) string {
	last, st := plans.LatestRun(ov.Status.PlanStatus)
	edited := isEdited(ov, ring)
	switch {
	case last == "":
		return trigger.CauseVersionCreated
	case edited && (!st.Status.IsTerminal() || st.Status == v1beta1.FatalError):
		return trigger.CauseVersionChanged
	case plans.IsRetryRequested(ov.Annotations, st):
		return fmt.Sprintf("%s run %d", trigger.CauseRetry, st.Revision)
	case st.Status == v1beta1.Complete && hasInputChanged(ov, ring):
		return trigger.CauseInstallChanged
	case st.Status == v1beta1.Complete && (installation == nil || ov.Status.InstallationUID != installation.UID):
		return trigger.CauseRestoreOfShared + " its Installation, which was removed"
	}
	return ""
}

// isEdited reports whether something of spec that a run reads has changed since spec was acted upon.
func isEdited(ov *v1beta1.OperatorVersion, ring *keyring.Ring) bool {
	if ov.Status.ObservedGeneration == ov.Generation {
		return false
	}
	digest, err := content.Digest(ov)
	return err != nil || ov.Status.Content != digest || hasInputChanged(ov, ring)
}
