package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/settings"
)

// accountOf returns the account that a record names, and whether it is kudo's own. A run that KUDO has started has no record
// that names one: it goes on as the account that the next run has.
func (a *action) accountOf(record history.Run) (apply.Account, bool) {
	switch {
	case record.Privileged:
		return a.Installer, true
	case record.ServiceAccount != "":
		return apply.Account{Namespace: a.Next.Namespace, Name: record.ServiceAccount}, false
	}
	return a.serviceAccount, a.privileged
}

// privilegeProblem says why a run that was started with the rights of kudo must not go on; empty if it may.
func (a *action) privilegeProblem(privileged bool, revision int64) string {
	if !privileged || a.privileged {
		return ""
	}
	return fmt.Sprintf("run %d of Instance %s/%s cannot go on: it was started with the rights of kudo, which namespace %s does not give any "+
		"more; kubectl kudo plan retry starts it anew",
		revision, a.Next.Namespace, a.Next.Name, a.Next.Namespace)
}

// observeAccount determines with whose rights the next run of the Instance reads and writes:
//
//	spec.serviceAccountName                          that account of the namespace
//	else, in a privileged namespace                  kudo's own account for install plans
//	else                                             the default account of the namespace
//
// Nothing here gives the rights of the manager.
func (a *action) observeAccount(ctx context.Context) error {
	now := a.Settings(ctx)
	name := a.Next.Spec.ServiceAccountName
	if name == "" {
		privileged, err := a.namespacePrivileged(ctx, now)
		if err != nil {
			return err
		}
		if privileged {
			a.serviceAccount, a.privileged = a.Installer, true
			return nil
		}
		name = now.DefaultAccount
	}
	a.serviceAccount = apply.Account{Namespace: a.Next.Namespace, Name: name}
	return nil
}

// namespacePrivileged reports whether Instances of the namespace that name no account run as kudo's own one.
func (a *action) namespacePrivileged(ctx context.Context, now settings.Settings) (bool, error) {
	if now.Mode == settings.Privileged {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	err := a.readNamespace(ctx, a.Next.Namespace, namespace)
	if apierror.IsObjectNotFound(err) {
		return false, nil
	}
	return namespace.Labels[v1beta1.PrivilegedLabel] == "true", err
}

// confirmPrivilege reads the Namespace live before anything is started with the rights of kudo: the cache may still show the label
// that was removed before the Instance changed.
func (a *action) confirmPrivilege(ctx context.Context) error {
	now := a.Settings(ctx)
	if !a.privileged || now.Mode == settings.Privileged {
		return nil
	}
	namespace := &corev1.Namespace{}
	err := a.Reader.Get(ctx, types.NamespacedName{Name: a.Next.Namespace}, namespace)
	if err != nil && !apierror.IsObjectNotFound(err) {
		return err
	}
	if namespace.Labels[v1beta1.PrivilegedLabel] != "true" {
		a.serviceAccount, a.privileged = apply.Account{Namespace: a.Next.Namespace, Name: now.DefaultAccount}, false
	}
	return nil
}

// readNamespace reads a Namespace from the cache, or live if the cache lacks it: the Namespace may have been made this moment.
func (a *action) readNamespace(ctx context.Context, name string, into *corev1.Namespace) error {
	key := types.NamespacedName{Name: name}
	err := a.Client.Get(ctx, key, into, loop.CacheOnlyRead)
	if apierror.IsObjectNotFound(err) {
		return a.Reader.Get(ctx, key, into)
	}
	return err
}

// lastAccount returns the account of the last run if spec names none and the next run would have another one, else "".
// kudo has not checked whether the creator of the Instance may use the other one: its namespace was privileged, or the
// settings have changed.
func (a *action) lastAccount() string {
	base := a.Next.Status.Baseline
	if a.Next.Spec.ServiceAccountName != "" || base == nil || base.RunAs == types.NamespacedName(a.serviceAccount).String() {
		return ""
	}
	return base.RunAs
}

// accountMissing says that the account does not exist, and what to do about it; empty if it does. The API server lets the
// manager impersonate an account that does not exist, and answers that it has no rights.
func (a *action) accountMissing(ctx context.Context) (string, error) {
	if err := a.confirmPrivilege(ctx); err != nil || a.privileged {
		return "", err
	}
	if ran := a.lastAccount(); ran != "" {
		return fmt.Sprintf("waits for an account: it ran as ServiceAccount %s, which it does not name and which is not the account of "+
			"Instances that name none any more: set spec.serviceAccountName, or kubectl kudo account create -n %s --instance %s",
			ran, a.Next.Namespace, a.Next.Name), nil
	}
	key := types.NamespacedName{Namespace: a.serviceAccount.Namespace, Name: a.serviceAccount.Name}
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := a.Client.Get(ctx, key, account, loop.CacheOnlyRead)
	if apierror.IsObjectNotFound(err) { // it may have been made this moment
		err = a.Reader.Get(ctx, key, account)
	}
	if apierror.IsObjectNotFound(err) {
		return fmt.Sprintf("waits for %s, with whose rights the plans run: kubectl kudo account create -n %s --instance %s shows the rights "+
			"they need and makes it",
			a.serviceAccount, a.Next.Namespace, a.Next.Name), nil
	}
	return "", err
}
