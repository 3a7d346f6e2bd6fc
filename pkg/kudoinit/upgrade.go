package kudoinit

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Downgrade is an attempt to install a version over a newer one.
type Downgrade struct{ Installed, Wanted string }

// Error implements error.
func (e *Downgrade) Error() string {
	return fmt.Sprintf("kudo %s is installed, and this is %s: an older version may not understand what a newer one has written. Use the "+
		"newer command, or --allow-downgrade", e.Installed, e.Wanted)
}

// TooOld is an attempt to upgrade from a version whose records and statuses this one does not promise to read.
type TooOld struct {
	Installed, Wanted string
	// Step is the minor version to upgrade to first.
	Step string
}

// Error implements error.
func (e *TooOld) Error() string {
	return fmt.Sprintf("kudo %s is installed, and this is %s, which continues what the %d minor versions before it have written: upgrade "+
		"to %s first", e.Installed, e.Wanted, readMinors, e.Step)
}

// CheckVersion returns a Refusal if a version must not be installed over what is there.
func (l *InstalledState) CheckVersion(o Options, upgrade, downgrade bool) error {
	return refuse(l.checkVersion(o, upgrade, downgrade))
}

func (l *InstalledState) checkVersion(o Options, upgrade, downgrade bool) error {
	switch {
	case upgrade && !l.Installed:
		return fmt.Errorf("kudo is not installed on this cluster, so there is nothing to upgrade: run kubectl kudo init")
	case !upgrade && l.Predecessor != "":
		return fmt.Errorf("KUDO's manager runs in namespace %s: kubectl kudo init --upgrade replaces it, and continues with its Instances",
			l.Predecessor)
	case l.Bound && o.Namespace != l.Namespace && !o.CRDsOnly:
		return fmt.Errorf("kudo is installed in namespace %s, and only one can work on a cluster: use -n %s, or remove that one with kubectl "+
			"kudo init --remove", l.Namespace, l.Namespace)
	case stepBefore(l.Version, o.Version) != "":
		return &TooOld{Installed: l.Version, Wanted: o.Version, Step: stepBefore(l.Version, o.Version)}
	case !downgrade && Older(o.Version, l.Version):
		return &Downgrade{l.Version, o.Version}
	}
	return nil
}

// Replace deletes KUDO's manager and the objects that would continue to write the webhooks' certificate, and waits until they are deleted:
// two managers must not reconcile the same Instance. Instances and all their objects stay.
func Replace(ctx context.Context, c client.Client, live *InstalledState, removed func(obj client.Object)) error {
	for _, obj := range predecessorObjects(live.Predecessor) {
		gone, err := deleteAwait(ctx, c, obj, metav1.DeletePropagationForeground)
		if err != nil {
			return err
		}
		if gone {
			removed(obj)
		}
	}
	return nil
}

// predecessorObjects are KUDO's manager and what would continue to write the webhooks' certificate, in KUDO's namespace.
func predecessorObjects(ns string) []client.Object {
	return []client.Object{
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: deploymentName}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: predecessorBinding}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: predecessorWebhook}},
		certManagers("Certificate", ns, certificate),
		certManagers("Issuer", ns, "selfsigned-issuer"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: webhookSecret}},
	}
}

func certManagers(kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(certManagerGroup + "/" + certManagerVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// deleteAwait deletes an object, and waits until it no longer exists. It returns false if it was not there.
func deleteAwait(ctx context.Context, c client.Client, obj client.Object, how metav1.DeletionPropagation) (bool, error) {
	name := obj.GetName()
	err := c.Delete(ctx, obj, client.PropagationPolicy(how))
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", name, err)
	}
	key := client.ObjectKeyFromObject(obj)
	err = poll(ctx, func() (string, error) {
		err := c.Get(ctx, key, obj)
		if absent(err) {
			return "", nil
		}
		return fmt.Sprintf("%s is being deleted (finalizers %v)", name, obj.GetFinalizers()), err
	})
	return true, err
}

// absent reports whether an error says that an object, or its whole kind, is not there.
func absent(err error) bool {
	return client.IgnoreNotFound(err) == nil && err != nil || meta.IsNoMatchError(err)
}

// poll asks until nothing is waited for.
func poll(ctx context.Context, ask func() (waiting string, err error)) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		waiting, err := ask()
		if err != nil || waiting == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", waiting, ctx.Err())
		case <-ticker.C:
		}
	}
}
