package history

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// SecretName is the name of the Secret in which kudo kept the sensitive values of an Instance's runs, before it sealed them
// into the records.
func SecretName(instance string) string { return instance + "-kudo-parameters" }

// DeleteSensitive deletes that Secret, if it is there and the Instance's.
func (s *Store) DeleteSensitive(ctx context.Context, instance *v1beta1.Instance) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: instance.Namespace, Name: SecretName(instance.Name)}, secret)
	if apierror.IsObjectNotFound(err) || err == nil && !metav1.IsControlledBy(secret, instance) {
		return nil
	}
	if err != nil {
		return err
	}
	uid := secret.UID
	return apierror.IgnoreObjectNotFound(s.client.Delete(ctx, secret, client.Preconditions{UID: &uid}))
}
