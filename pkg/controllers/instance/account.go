package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/changes"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/settings"
)

// observeAccount decides with whose rights the next run of the Instance reads and writes:
//
//	spec.serviceAccountName                          that account of the namespace
//	else, in a privileged namespace                  kudo's own account for install plans
//	else                                             the default account of the namespace
//
// Nothing here gives the rights of the manager.
func (p *pass) observeAccount(ctx context.Context) (bool, error) {
	now := p.Settings(ctx)
	name := p.instance.Spec.ServiceAccountName
	if name == "" {
		privileged, err := p.namespacePrivileged(ctx, now)
		if err != nil {
			return true, err
		}
		if privileged {
			p.account, p.privileged = p.Installer, true
			return false, nil
		}
		name = now.DefaultAccount
	}
	p.account = apply.Account{Namespace: p.instance.Namespace, Name: name}
	return false, nil
}

// namespacePrivileged reports whether Instances of the namespace that name no account run as kudo's own one.
func (p *pass) namespacePrivileged(ctx context.Context, now settings.Settings) (bool, error) {
	if now.Mode == settings.Privileged {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	err := p.Client.Get(ctx, types.NamespacedName{Name: p.instance.Namespace}, namespace, changes.AsIs)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return namespace.Labels[v1beta1.PrivilegedLabel] == "true", err
}

// versionPrivate refuses an OperatorVersion of another namespace that keeps its versions to itself; nil if it may be run. The
// API server asks for the verb use when the Instance is written; the namespace may have been closed since.
func (p *pass) versionPrivate(ctx context.Context) (refusal, err error) {
	key := p.instance.OperatorVersionKey()
	if key.Namespace == p.instance.Namespace {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	err = p.Client.Get(ctx, types.NamespacedName{Name: key.Namespace}, namespace, changes.AsIs)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if namespace.Labels[v1beta1.VersionsLabel] == v1beta1.PrivateVersions {
		refusal = fmt.Errorf("spec.operatorVersion names %s, and Namespace %s is labelled %s=%s: name an OperatorVersion of namespace %s", key, key.Namespace, v1beta1.VersionsLabel, v1beta1.PrivateVersions, p.instance.Namespace)
	}
	return refusal, err
}

// accountMissing says that the account does not exist, and what to do about it; empty if it does. The API server lets the
// manager impersonate an account that does not exist, and answers that it has no rights.
func (p *pass) accountMissing(ctx context.Context) (string, error) {
	if p.privileged {
		return "", nil
	}
	key := types.NamespacedName{Namespace: p.account.Namespace, Name: p.account.Name}
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := p.Client.Get(ctx, key, account, changes.AsIs)
	if apierrors.IsNotFound(err) { // it may have been made this moment
		err = p.Reader.Get(ctx, key, account)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("waits for %s, with whose rights the plans run: kubectl kudo account create -n %s --instance %s shows the rights they need and makes it",
			p.account, p.instance.Namespace, p.instance.Name), nil
	}
	return "", err
}

// awaitAccount goes on with what runs, else waits for the account.
func (p *pass) awaitAccount(ctx context.Context, message string) (bool, error) {
	if running, st := p.running(); running != "" {
		if err := p.resume(ctx, running, st); err != nil {
			return true, err
		}
		p.once(v1beta1.EventServiceAccountMissing, message)
		return false, nil
	}
	p.transient = true // a watch that lags must not hold it up
	p.instance.Status.ObservedGeneration = p.instance.Generation
	return p.halted(ctx, v1beta1.ReasonServiceAccountNotFound, v1beta1.EventServiceAccountMissing, message)
}

// awaitCleanupAccount keeps an Instance that is being deleted until the account is there that its cleanup plan runs as.
// One that never ran anything has nothing to clean up.
func (p *pass) awaitCleanupAccount(ctx context.Context, message string) (bool, error) {
	base := p.instance.Status.Baseline
	if base == nil || base.Revision == 0 {
		return true, p.release(ctx)
	}
	going, err := p.namespaceGoes(ctx)
	switch {
	case err != nil:
		return true, err
	case going:
		return true, p.release(ctx)
	}
	p.result.RequeueAfter = requeue.Look // nothing tells that the namespace goes
	message = fmt.Sprintf("plan %s cannot be started: it %s. Or remove the finalizer %s, which leaves what the plan would clean up", v1beta1.CleanupPlan, message, v1beta1.CleanupFinalizer)
	return p.halted(ctx, v1beta1.ReasonServiceAccountNotFound, v1beta1.EventServiceAccountMissing, message)
}

// accountOf returns the account that a record names, and whether it is kudo's own. A run that KUDO has started has no record
// that names one: it goes on as the account that the next run has.
func (p *pass) accountOf(record history.Run) (apply.Account, bool) {
	switch {
	case record.Privileged:
		return p.Installer, true
	case record.ServiceAccount != "":
		return apply.Account{Namespace: p.instance.Namespace, Name: record.ServiceAccount}, false
	}
	return p.account, p.privileged
}

// privilegeLost says why a run that was started with the rights of kudo must not go on; empty if it may.
func (p *pass) privilegeLost(privileged bool, revision int64) string {
	if !privileged || p.privileged {
		return ""
	}
	return fmt.Sprintf("run %d of Instance %s/%s cannot go on: it was started with the rights of kudo, which namespace %s does not give any more; kubectl kudo plan retry starts it anew",
		revision, p.instance.Namespace, p.instance.Name, p.instance.Namespace)
}
