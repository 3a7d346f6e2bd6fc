package act

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// FindInstance returns an Instance by its name. The error of one that does not exist has the remedy.
func FindInstance(ctx context.Context, c client.Client, namespace, name string) (*v1beta1.Instance, error) {
	instance := &v1beta1.Instance{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, instance)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("instance %s/%s does not exist: kubectl kudo get instances -n %s lists those that do", namespace, name, namespace)
	}
	return instance, err
}

// FindVersion returns the OperatorVersion that an Instance names. The error of one that does not exist has the remedies.
func FindVersion(ctx context.Context, c client.Client, instance *v1beta1.Instance) (*v1beta1.OperatorVersion, error) {
	ov, key := &v1beta1.OperatorVersion{}, instance.OperatorVersionKey()
	err := c.Get(ctx, key, ov)
	if apierrors.IsNotFound(err) {
		return nil, MissingVersion(instance)
	}
	if err != nil {
		return nil, fmt.Errorf("operatorversion %s of instance %s/%s: %w", key, instance.Namespace, instance.Name, err)
	}
	return ov, nil
}

// MissingVersion returns the error of an Instance whose OperatorVersion does not exist, with the remedies.
func MissingVersion(instance *v1beta1.Instance) error {
	key := instance.OperatorVersionKey()
	return fmt.Errorf("instance %[1]s/%[2]s names operatorversion %[3]s, which does not exist: install it again (kubectl kudo install "+
		"PACKAGE --skip-instance -n %[4]s), "+
		"move the instance to another version (kubectl kudo upgrade PACKAGE --instance %[2]s -n %[1]s), or remove it (kubectl kudo uninstall "+
		"--instance %[2]s -n %[1]s)",
		instance.Namespace, instance.Name, key, key.Namespace)
}

// ReadVersion returns the OperatorVersion that an Instance names, or nil if it does not exist.
func ReadVersion(ctx context.Context, c client.Client, instance *v1beta1.Instance) (*v1beta1.OperatorVersion, error) {
	version := &v1beta1.OperatorVersion{}
	err := c.Get(ctx, instance.OperatorVersionKey(), version)
	if apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	return version, err
}

// WhoAmI returns the name by which the API server knows the user; empty if it does not say.
func WhoAmI(ctx context.Context, c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
