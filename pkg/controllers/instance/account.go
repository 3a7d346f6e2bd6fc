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
// that names one: it continues as the account that the next run has.
func (s *scope) accountOf(record history.Run) (apply.Account, bool) {
	switch {
	case record.Privileged:
		return s.Installer, true
	case record.ServiceAccount != "":
		return apply.Account{Namespace: s.Next.Namespace, Name: record.ServiceAccount}, false
	}
	return s.serviceAccount, s.privileged
}

// privilegeProblem says why a run that was started with the rights of kudo must not continue; empty if it may.
func (s *scope) privilegeProblem(privileged bool, revision int64) string {
	if !privileged || s.privileged {
		return ""
	}
	return fmt.Sprintf("run %d of Instance %s/%s cannot continue: it was started with the rights of kudo, which namespace %s does not give "+
		"any more; kubectl kudo plan retry starts it anew",
		revision, s.Next.Namespace, s.Next.Name, s.Next.Namespace)
}

// observeAccount determines with whose rights the next run of the Instance reads and writes:
//
//	spec.serviceAccountName                          that account of the namespace
//	else, in a privileged namespace                  kudo's own account for install plans
//	else                                             the default account of the namespace
//
// Nothing here gives the rights of the manager.
func (s *scope) observeAccount(ctx context.Context) error {
	return s.determineAccount(ctx, s.readNamespace)
}

// confirmPrivilege reads the Namespace live before anything is started or read with the rights of kudo: the cache may still show the label
// that was removed before the Instance changed.
func (s *scope) confirmPrivilege(ctx context.Context) error {
	if !s.privileged {
		return nil
	}
	return s.determineAccount(ctx, func(ctx context.Context, name string, into *corev1.Namespace) error {
		return s.Reader.Get(ctx, types.NamespacedName{Name: name}, into)
	})
}

// readFunc reads a Namespace.
type readFunc func(ctx context.Context, name string, into *corev1.Namespace) error

// determineAccount is observeAccount with a Namespace that is read by a function.
func (s *scope) determineAccount(ctx context.Context, read readFunc) error {
	now := s.Settings(ctx)
	name, privileged := s.Next.Spec.ServiceAccountName, false
	if name == "" {
		var err error
		if privileged, err = s.namespacePrivileged(ctx, now, read); err != nil {
			return err
		}
		name = now.DefaultAccount
	}
	s.serviceAccount, s.privileged = apply.Account{Namespace: s.Next.Namespace, Name: name}, privileged
	if privileged {
		s.serviceAccount = s.Installer
	}
	return nil
}

// namespacePrivileged reports whether Instances of the namespace that name no account run as kudo's own one.
func (s *scope) namespacePrivileged(ctx context.Context, now settings.Settings, read readFunc) (bool, error) {
	if now.Mode == settings.Privileged {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	err := read(ctx, s.Next.Namespace, namespace)
	if apierror.IsObjectNotFound(err) {
		return false, nil
	}
	return namespace.Labels[v1beta1.PrivilegedLabel] == "true", err
}

// readNamespace reads a Namespace from the cache, or live if the cache lacks it: the Namespace may have been made this moment.
func (s *scope) readNamespace(ctx context.Context, name string, into *corev1.Namespace) error {
	key := types.NamespacedName{Name: name}
	err := s.Client.Get(ctx, key, into, loop.CacheOnlyRead)
	if apierror.IsObjectNotFound(err) {
		return s.Reader.Get(ctx, key, into)
	}
	return err
}

// lastAccount returns the account of the last run if spec names none and the next run would have another one, else "".
// kudo has not checked whether the creator of the Instance may use the other one: its namespace was privileged, or the
// settings have changed.
func (s *scope) lastAccount() string {
	base := s.Next.Status.Baseline
	if s.Next.Spec.ServiceAccountName != "" || base == nil || base.RunAs == types.NamespacedName(s.serviceAccount).String() {
		return ""
	}
	return base.RunAs
}

// accountMissing says that the account does not exist, and what to do about it; empty if it does. The API server lets the
// manager impersonate an account that does not exist, and answers that it has no rights.
func (s *scope) accountMissing(ctx context.Context) (string, error) {
	if err := s.confirmPrivilege(ctx); err != nil || s.privileged {
		return "", err
	}
	if ran := s.lastAccount(); ran != "" {
		return fmt.Sprintf("waits for an account: it ran as ServiceAccount %s, which it does not name and which is not the account of "+
			"Instances that name none any more: set spec.serviceAccountName, or kubectl kudo account create -n %s --instance %s",
			ran, s.Next.Namespace, s.Next.Name), nil
	}
	key := types.NamespacedName{Namespace: s.serviceAccount.Namespace, Name: s.serviceAccount.Name}
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := s.Client.Get(ctx, key, account, loop.CacheOnlyRead)
	if apierror.IsObjectNotFound(err) { // it may have been made this moment
		err = s.Reader.Get(ctx, key, account)
	}
	if apierror.IsObjectNotFound(err) {
		return fmt.Sprintf("waits for %s, with whose rights the plans run: kubectl kudo account create -n %s --instance %s shows the rights "+
			"they need and makes it",
			s.serviceAccount, s.Next.Namespace, s.Next.Name), nil
	}
	return "", err
}
