package cli

import (
	"context"
	"time"

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
	// settingsTimeout is how long `version` waits for a cluster that may be away.
	settingsTimeout = 5 * time.Second
)

// readSettings reads what the administrator has decided: one request where kudo is in its usual namespace. known is false if
// this user may not read it.
func readSettings(ctx context.Context, c client.Reader) (now settings.Settings, known bool) {
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: install.DefaultNamespace, Name: settings.ConfigMap}, config)
	if apierrors.IsNotFound(err) {
		if manager := managerAccount(ctx, c); manager.Namespace != install.DefaultNamespace {
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

// isPrivileged reports whether Instances of a namespace that name no account write with the rights of kudo, as far as this
// user may know: a Namespace that may not be read may be labelled so.
func isPrivileged(ctx context.Context, c client.Reader, namespace string) bool {
	place := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, place)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return place.Labels[v1beta1.PrivilegedLabel] == "true"
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
