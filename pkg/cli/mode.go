package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/install"
	"kudo.dev/kudo/pkg/settings"
)

const (
	// managerBinding is the ClusterRoleBinding whose first subject is the manager.
	managerBinding = "kudo-manager"
)

// isStrict reports whether the plans of a namespace surely write with the rights of a ServiceAccount, and no others: what
// this user may not read counts as unknown.
//
//	Namespace label     ConfigMap                 strict
//	privileged: true    any                       no
//	none, or unknown    not there                 yes, as for the manager
//	none, or unknown    may not be read           no: unknown
//	none, or unknown    mode: privileged          no
//	none, or unknown    any other mode, or none   yes
func isStrict(ctx context.Context, c client.Reader, namespace string) bool {
	place := &corev1.Namespace{}
	switch err := c.Get(ctx, client.ObjectKey{Name: namespace}, place); {
	case err == nil && place.Labels[v1beta1.PrivilegedLabel] == "true":
		return false
	case err != nil && !apierrors.IsNotFound(err):
		return false // it may be privileged
	}
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: managerAccount(ctx, c).Namespace, Name: settings.ConfigMap}, config)
	switch {
	case apierrors.IsNotFound(err):
		return true
	case err != nil:
		return false
	}
	return config.Data[settings.ModeKey] != string(settings.Privileged)
}

// managerAccount is the ServiceAccount that the manager runs under: that of the binding, or the usual one if this user may
// not read it.
func managerAccount(ctx context.Context, c client.Reader) types.NamespacedName {
	out := types.NamespacedName{Namespace: install.DefaultNamespace, Name: install.ServiceAccount}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := c.Get(ctx, client.ObjectKey{Name: managerBinding}, binding); err == nil {
		for _, s := range binding.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
			}
		}
	}
	return out
}

// defaultAccount is the ServiceAccount of Instances that name none: that of the settings, or the usual one if this user may
// not read them.
func defaultAccount(ctx context.Context, c client.Reader) string {
	config := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: managerAccount(ctx, c).Namespace, Name: settings.ConfigMap}, config); err != nil {
		return settings.DefaultAccount
	}
	now, _ := settings.Parse(config.Data) // a wrong name counts as none
	return now.DefaultAccount
}
