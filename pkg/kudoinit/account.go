package kudoinit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
)

// managerBinding is the ClusterRoleBinding whose first subject is the manager.
const managerBinding = "kudo-manager"

// ReadSettings reads the settings of the cluster, with one request if kudo is in its default namespace. known is false if this
// user may not read them.
func ReadSettings(ctx context.Context, c client.Reader) (now settings.Settings, known bool) {
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: DefaultNamespace, Name: settings.ConfigMap}, config)
	if apierrors.IsNotFound(err) {
		if manager := ManagerAccount(ctx, c); manager.Namespace != DefaultNamespace {
			err = c.Get(ctx, client.ObjectKey{Namespace: manager.Namespace, Name: settings.ConfigMap}, config)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return settings.Default(), true // as for the manager
	case err != nil:
		return settings.Default(), false
	}
	now, _ = settings.Parse(config.Data) // a wrong value is the strict choice
	return now, true
}

// IsPrivilegedNamespace reports whether Instances of a namespace that name no account write with the rights of kudo. A Namespace that
// this user may not read counts as privileged, since it may have the label.
func IsPrivilegedNamespace(ctx context.Context, c client.Reader, namespace string) bool {
	place := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, place)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return place.Labels[v1beta1.PrivilegedLabel] == "true"
}

// DefaultAccount returns the ServiceAccount with whose rights Instances of a namespace read and write that name none, by the settings of
// kudo. privileged reports whether these are the rights of kudo; known is false if this user may not read the namespace, which decides,
// too.
func DefaultAccount(ctx context.Context, c client.Reader, now settings.Settings,
	namespace string) (account types.NamespacedName, privileged, known bool) {
	place := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, place)
	if now.Mode == settings.Privileged || place.Labels[v1beta1.PrivilegedLabel] == "true" {
		return types.NamespacedName{Namespace: ManagerAccount(ctx, c).Namespace, Name: settings.InstallerAccount}, true, true
	}
	return types.NamespacedName{Namespace: namespace, Name: now.DefaultAccount}, false, client.IgnoreNotFound(err) == nil
}

// ManagerAccount returns the ServiceAccount of the manager: the subject of its binding, or the default if this user may not
// read the binding.
func ManagerAccount(ctx context.Context, c client.Reader) types.NamespacedName {
	out := types.NamespacedName{Namespace: DefaultNamespace, Name: ServiceAccount}
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
